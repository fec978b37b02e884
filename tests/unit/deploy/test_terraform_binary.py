"""terraform/ with the terraform binary: form, validation and tests, against providers that only know their schemas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.deploy.terraform_providers import running

ROOT = Path(__file__).resolve().parents[3] / "terraform"
ENVIRONMENTS = sorted(path.name for path in (ROOT / "environments").iterdir())
TESTED = sorted({str(path.parents[1].relative_to(ROOT)) for path in ROOT.rglob("tests/*.tftest.hcl")})

pytestmark = pytest.mark.skipif(shutil.which("terraform") is None, reason="the terraform binary is not installed")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running() as providers:
        home = tmp_path_factory.mktemp("home")
        (home / "cli.hcl").write_text("", encoding="utf-8")
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TF_CLI_CONFIG_FILE": str(home / "cli.hcl"),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
        } | providers


def terraform(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["terraform", f"-chdir={folder}", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def validated(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    started = terraform(folder, environment, "init", "-backend=false", "-input=false", "-no-color")
    assert started.returncode == 0, started.stderr
    return terraform(folder, environment, "validate", "-no-color")


def test_files_have_terraforms_own_form(environment: dict[str, str]) -> None:
    result = terraform(ROOT, environment, "fmt", "-check", "-recursive", "-diff", ".")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_is_valid(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    copy = shutil.copytree(ROOT, tmp_path / "terraform")
    result = validated(copy / "environments" / name, environment)
    assert result.returncode == 0, result.stderr


def copied(to: Path) -> Path:
    """A copy of terraform/ beside the manifests, dashboards and rules of this repository."""
    for read in ("deploy", "monitoring"):
        (to / read).symlink_to(ROOT.parent / read)
    return shutil.copytree(ROOT, to / "terraform")


def planned(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    started = terraform(folder, environment, "init", "-backend=false", "-input=false", "-no-color")
    assert started.returncode == 0, started.stderr
    return terraform(folder, environment, "test", "-no-color")


@pytest.mark.parametrize("name", TESTED)
def test_plans_are_what_they_should_be(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    result = planned(copied(tmp_path) / name, environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 failed" in result.stdout and "0 passed" not in result.stdout


def test_every_module_has_tests_and_every_example_is_planned() -> None:
    assert {f"modules/{path.name}" for path in (ROOT / "modules").iterdir()} <= set(TESTED)
    named = (ROOT / "modules" / "workload" / "tests" / "workload.tftest.hcl").read_text(encoding="utf-8")
    for example in (ROOT.parent / "deploy" / "examples").glob("*.rendered.yaml"):
        assert f'"{example.name.partition(".")[0]}"' in named, example.name


WRONG_PLANS = {
    "another service account": ("modules/identity/main.tf", "kubernetes-service-account", "kubernetes-pod-name"),
    "a claim that is not there": ("environments/local/main.tf", "claims         = [k", 'claims         = ["x"] #'),
    "the node's credentials": ("modules/kuberay/network.tf", "169.254.169.254", "169.254.169.253"),
    "an image from elsewhere": ("modules/models/main.tf", "${var.chart.registry}/csi", "public.ecr.aws/csi"),
}


@pytest.mark.parametrize("kind", WRONG_PLANS)
def test_a_mistake_in_a_plan_is_found(kind: str, tmp_path: Path, environment: dict[str, str]) -> None:
    file, old, new = WRONG_PLANS[kind]
    target = copied(tmp_path) / file
    text = target.read_text(encoding="utf-8")
    assert old in text
    target.write_text(text.replace(old, new), encoding="utf-8")
    result = planned(target.parent, environment)
    assert result.returncode == 1 and " failed" in result.stdout, result.stdout


MISTAKES = {
    "argument": ("modules/network/main.tf", "enable_dns_support ", "enable_dns_suport ", "Unsupported argument"),
    "attribute": ("modules/cluster/outputs.tf", "this.endpoint", "this.end_point", "Unsupported attribute"),
    "type": (
        "modules/cluster/main.tf",
        "enable_key_rotation     = true",
        "enable_key_rotation     = []",
        "bool required",
    ),
    "too many": ("modules/cluster/main.tf", "  storage_config {", "  compute_config {", "Unsupported block type"),
    "two of one": (
        "modules/cluster/main.tf",
        "  access_config {",
        "  upgrade_policy {}\n  access_config {",
        "Too many",
    ),
    "cycle": (
        "modules/cluster/main.tf",
        "= var.name\n  version",
        "= aws_eks_access_entry.admin[0].id\n  version",
        "Cycle",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_found(kind: str, tmp_path: Path, environment: dict[str, str]) -> None:
    file, old, new, said = MISTAKES[kind]
    copy = shutil.copytree(ROOT, tmp_path / "terraform")
    text = (copy / file).read_text(encoding="utf-8")
    assert old in text
    (copy / file).write_text(text.replace(old, new), encoding="utf-8")
    result = validated((copy / file).parent, environment)
    assert result.returncode != 0
    assert said in result.stderr


def scanned(root: Path) -> tuple[list[str], int]:
    """What checkov finds, and how many of its checks passed."""
    command = ["checkov", "--directory", str(root), "--framework", "terraform", "--quiet", "--skip-download"]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}  # it has another package named hcl2
    result = subprocess.run(
        [*command, "--output", "json"], env=own, capture_output=True, text=True, timeout=280, check=False
    )
    report = json.loads(result.stdout)
    return [one["check_id"] for one in report["results"]["failed_checks"]], report["summary"]["passed"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("checkov") is None, reason="checkov is not installed")
def test_the_scan_finds_nothing_but_a_mistake(tmp_path: Path) -> None:
    failed, passed = scanned(ROOT)
    assert not failed and passed > 50
    copy = shutil.copytree(ROOT, tmp_path / "terraform")
    file = copy / "modules" / "object_store" / "main.tf"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("restrict_public_buckets = true", "restrict_public_buckets = false"), encoding="utf-8")
    assert scanned(copy)[0] == ["CKV_AWS_56"]
