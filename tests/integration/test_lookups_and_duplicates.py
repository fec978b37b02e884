"""Lookups, columns for rules and the report on duplicates, through Ray and the command's own flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import InputError
from pipeline.flow import run
from pipeline.records import Manifest
from tests.integration.conftest import MakeJob
from tests.integration.test_sampler_job import rows_of

pytestmark = pytest.mark.usefixtures("ray_cluster")

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["a", "b", "c"]}},
    "required": ["kind"],
    "x-validations": [{"rule": "self.kind == input.kind", "message": "another kind", "severity": "observe"}],
}
ROWS = [{"id": f"d{n}", "schema": "label@1", "text": f"text {n}", "kind": "abc"[n % 3]} for n in range(30)]


def label_job(make_job: MakeJob, folder: Path, values: list[str], **parts: Any) -> Any:
    (folder / "schemas" / "label" / "1").mkdir(parents=True, exist_ok=True)
    (folder / "schemas" / "label" / "1" / "schema.json").write_text(json.dumps(SCHEMA))
    (folder / "kinds.csv").write_text("kind\n" + "\n".join(values) + "\n")
    lookup = {"pointer": "/kind", "path": str(folder / "kinds.csv"), "column": "kind", "severity": "degrade"}
    source = {"path": str(folder / "label.jsonl"), "schema_column": "schema", "columns": ["kind"]}
    settings = {"schemas": str(folder / "schemas"), "input": source, "lookups": [lookup], "retry": {"max_attempts": 1}}
    return make_job(ROWS, "label", **{**settings, "policy": {"ground": "off"}, **parts})


def finished(job: Any) -> tuple[Manifest, dict[str, dict[str, Any]]]:
    manifest = run(job, lambda event, value: None)
    return manifest, {row["document_id"]: row for row in rows_of(job.output, manifest)}


def test_values_are_looked_up_and_rules_see_the_row(make_job: MakeJob, tmp_path: Path) -> None:
    manifest, rows = finished(label_job(make_job, tmp_path, ["a", "b"], placement={"actors": 2, "unit_documents": 7}))
    assert len(rows) == len(ROWS)
    for number, source in enumerate(ROWS):
        row = rows[source["id"]]
        found = {problem["code"] for problem in row["problems"]}
        drawn = row["record"]["kind"]
        assert ("lookup_missing" in found) == (drawn == "c"), number
        assert ("rule_broken" in found) == (drawn != source["kind"]), number
        assert row["status"] == ("degraded" if drawn == "c" else "valid")
    drawn = [row["record"]["kind"] for row in rows.values()]
    expected = [kind for kind in "abc" if drawn.count(kind) > 1]
    counts = manifest.totals["duplicates"]["schemas"]["label@1"]
    assert counts == {"groups": len(expected), "documents": sum(drawn.count(kind) for kind in expected)}


def test_a_changed_list_is_another_run_and_the_same_one_is_done(make_job: MakeJob, tmp_path: Path) -> None:
    first, rows = finished(label_job(make_job, tmp_path, ["a", "b"]))
    assert finished(label_job(make_job, tmp_path, ["b", "a", "a"])) == (first, rows)
    second, _ = finished(label_job(make_job, tmp_path, ["a", "b", "c"]))
    assert second.run_id != first.run_id
    assert second.counts["degraded"] == 0


def test_a_missing_list_stops_the_job_before_an_engine_starts(make_job: MakeJob, tmp_path: Path) -> None:
    job = label_job(make_job, tmp_path, ["a"])
    (tmp_path / "kinds.csv").unlink()
    with pytest.raises(InputError, match=r"lookups\.path"):
        finished(job)
    assert not (tmp_path / "out").exists()
