"""terraform/README.md says what is there, and its way of taking a cluster down forgets nothing but the documents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3] / "terraform"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def called(environment: str) -> set[str]:
    return set(
        re.findall(r'^module "(\w+)"', (ROOT / "environments" / environment / "main.tf").read_text(), re.MULTILINE)
    )


def test_the_table_names_every_module() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", README.partition("\n## ")[0], re.MULTILINE))
    assert rows == {path.name for path in (ROOT / "modules").iterdir()} - {"manifests"}


def test_taking_down_names_every_module_but_the_bucket() -> None:
    targets = set(re.findall(r"-target=module\.(\w+)", README))
    assert targets == called("aws") - {"object_store"}


def test_outputs_that_are_named_are_there() -> None:
    outputs = (ROOT / "environments" / "aws" / "outputs.tf").read_text(encoding="utf-8")
    named = re.findall(r"terraform output -raw (\w+)", README)
    for name in [*named, "bucket_url", "job_server", "node_selectors", "service_accounts"]:
        assert name in README and f'output "{name}"' in outputs


def test_versions_that_are_named_are_the_pinned_ones() -> None:
    pins = (ROOT / "environments" / "aws" / "versions.tf").read_text(encoding="utf-8")
    found = re.findall(r"\b(aws|helm|kubernetes) (\d+\.\d+\.\d+)", README)
    assert len(found) == 3
    for provider, version in found:
        assert re.search(rf'hashicorp/{provider}"\s+version = "{version}"', pins)
    kuberay = (ROOT / "modules" / "kuberay" / "variables.tf").read_text(encoding="utf-8")
    assert all(f'"{version}"' in kuberay for version in re.findall(r"`kuberay-operator` (\d+\.\d+\.\d+)", README))
