"""`gristmill in-force` with the sampler: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import GristmillError, JobFileError, SchemaError

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": ["a", "b", "c", "d", "e"]}, "on": {"type": "boolean"}},
    "required": ["kind", "on"],
}


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas" / "switch" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    return tmp_path / "schemas"


def shown(schemas: Path, engine: str, *options: str, names: tuple[str, ...] = ("switch@1",)) -> tuple[int, str]:
    path = schemas.parent / "engine.yaml"
    path.write_text(engine, encoding="utf-8")
    found = CliRunner().invoke(app, ["in-force", str(path), *names, "--schemas", str(schemas), *options])
    if isinstance(found.exception, GristmillError):
        raise found.exception
    return found.exit_code, found.output


SAMPLER = "engine: sampler\nbackend: guidance\n"
LATE = SAMPLER + "faults: [{kind: late_mask, share: 1.0}]\n"


def test_no_leak_passes_and_a_late_mask_fails(schemas: Path) -> None:
    code, words = shown(schemas, SAMPLER, "--trials", "2", "--json")
    found: dict[str, Any] = json.loads(words)
    rows = found["schemas"]["switch@1"]["rows"]
    assert code == 0 and found["engine"] == "sampler"
    assert all(row["verdict"] in ("proven", "suggested") and row["broke"] == 0 for row in rows)
    whole, members = rows[:2]
    assert (whole["pointer"], whole["keyword"], whole["verdict"]) == ("", "*", "proven")
    assert members["detail"] == "each member alone" and members["verdict"] == "proven" and members["asked"] == 5

    code, words = shown(schemas, LATE, "--trials", "1")
    assert code == 9
    first, second, *_ = words.splitlines()
    assert first.startswith("switch@1 under guidance: 1 leaked") and second.lstrip().startswith("leaked    / *")


def test_what_cannot_be_tried_is_said(schemas: Path) -> None:
    with pytest.raises(JobFileError, match="recording has no constraint"):
        shown(schemas, "engine: recorded\nrecording: nowhere\n")
    with pytest.raises(SchemaError, match="nothing@1"):
        shown(schemas, SAMPLER, names=("nothing@1",))
