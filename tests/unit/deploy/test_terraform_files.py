"""terraform/ without the terraform binary: what python-hcl2 and the schemas of the providers can tell."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("hcl2", reason="python-hcl2 is not installed")

from tests.unit.deploy import terraform_policy, terraform_references
from tests.unit.deploy.terraform_files import read

ROOT = Path(__file__).resolve().parents[3] / "terraform"
FOLDERS = sorted({path.parent for path in ROOT.rglob("*.tf")})
CHECKS = (*terraform_references.CHECKS, *terraform_policy.CHECKS)


def problems(root: Path) -> Iterator[str]:
    for path in sorted({file.parent for file in root.rglob("*.tf")}):
        folder = read(path)
        for check in CHECKS:
            yield from check(folder)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FOLDERS, ids=name)
def test_nothing_is_wrong(path: Path) -> None:
    folder = read(path)
    assert [problem for check in CHECKS for problem in check(folder)] == []


@pytest.mark.parametrize("path", FOLDERS, ids=name)
def test_each_validation_refuses_something_in_a_test(path: Path) -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in path.glob("tests/*.tftest.hcl"))
    refused = re.findall(r"var\.(\w+)", " ".join(re.findall(r"expect_failures = \[(.*?)\]", tests)))
    for variable, block in read(path).variables.items():
        assert refused.count(variable) >= len(block.get("validation", [])), variable


def test_what_submit_needs_is_an_output_of_every_environment() -> None:
    for path in (ROOT / "environments").iterdir():
        assert {"bucket_url", "job_server", "port_forward", "namespace"} <= set(read(path).outputs), path.name


def test_every_module_is_called_by_something() -> None:
    called = {
        (path / str(block["source"]).strip('"')).resolve() for path in FOLDERS for block in read(path).modules.values()
    }
    assert called == {path for path in FOLDERS if path.parent.name == "modules"}


def test_the_schemas_are_of_what_is_used_and_of_nothing_else() -> None:
    used = {
        prefix + of
        for path in FOLDERS
        for prefix, objects in (("", read(path).resources), ("data.", read(path).data))
        for of, _ in objects
    }
    assert used == set(terraform_references.TYPES)


def test_a_manifest_release_prints_its_texts_and_nothing_else() -> None:
    chart = ROOT / "modules" / "manifests" / "chart"
    template = (chart / "templates" / "manifests.yaml").read_text(encoding="utf-8")
    assert re.findall(r"\{\{-? ?(.*?) ?\}\}", template) == ["range .Values.manifests", ".", "end"]


MISTAKES = tomllib.loads(Path(__file__).with_name("terraform_mistakes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_found(kind: str, tmp_path: Path) -> None:
    mistake = MISTAKES[kind]
    copy = shutil.copytree(ROOT, tmp_path / "terraform")
    target = copy / mistake["file"]
    text = target.read_text(encoding="utf-8")
    assert mistake["old"] in text
    target.write_text(text.replace(mistake["old"], mistake["new"]), encoding="utf-8")
    found = list(problems(copy))
    assert [problem for problem in found if mistake["said"] in problem], found


def test_a_file_that_is_no_hcl_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "aws_vpc" {{\n', encoding="utf-8")
    with pytest.raises(Exception, match=r"(?i)unexpected"):
        read(tmp_path)


def test_no_file_names_an_account_or_holds_a_key() -> None:
    for path in ROOT.rglob("*"):
        if path.suffix in (".tf", ".tfvars", ".yaml", ".md", ".hcl", ".example"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"AKIA[0-9A-Z]{16}|-----BEGIN|aws_secret_access_key\s*=", text), path
            assert set(re.findall(r"\b\d{12}\b", text)) <= {"123456789012"}, path


def test_the_schemas_are_json_with_a_line_for_each_type() -> None:
    text = Path(terraform_references.__file__).with_name("providers.json").read_text(encoding="utf-8")
    assert len(text.splitlines()) > len(terraform_references.TYPES)
    assert set(json.loads(text)) == {"aws", "helm", "kubernetes"}
