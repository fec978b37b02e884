"""Incremental runs through Ray and the command's own flow, held against whole runs on the same input."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import InputError
from pipeline.flow import run
from pipeline.records import STATUSES, Manifest
from pipeline.runtime.known import known_run
from tests.integration.conftest import ROOT, MakeJob
from tests.integration.test_sampler_job import rows_of

pytestmark = pytest.mark.usefixtures("ray_cluster")

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["a", "b", "c"]}},
    "required": ["kind"],
    "x-validations": [{"rule": "self.kind == input.kind", "message": "another kind", "severity": "degrade"}],
}
Rows = list[dict[str, Any]]


def rows(schema: str, start: int, end: int) -> Rows:
    return [{"id": f"d{n}", "schema": schema, "text": f"text {n}", "kind": "abc"[n % 3]} for n in range(start, end)]


class Collection:
    """A collection of documents of two schemas that changes from night to night."""

    def __init__(self, make_job: MakeJob, folder: Path) -> None:
        self.make_job, self.folder = make_job, folder
        self.write_schema("label", SCHEMA)
        self.write_schema("tag", {**SCHEMA, "x-validations": []})

    def write_schema(self, name: str, body: Any) -> None:
        path = self.folder / "schemas" / name / "1" / "schema.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(body))

    def job(self, of: Rows, since: str | None = "last", **parts: Any) -> Any:
        source = {"path": str(self.folder / "nightly.jsonl"), "schema_column": "schema", "columns": ["kind"]}
        base = {
            "schemas": str(self.folder / "schemas"),
            "input": {**source, "since": since},
            "retry": {"max_attempts": 1},
            "policy": {"ground": "off"},
            "placement": {"unit_documents": 7},
            "stop_if": {"rejection": None, "semantic": None},
        }
        return self.make_job(of, "nightly", **{**base, **parts})

    def night(self, of: Rows, again: Sequence[str] = (), **parts: Any) -> Manifest:
        job = self.job(of, **parts)
        known = known_run(job, again)
        manifest = run(job, lambda event, value: None, again=again)
        assert manifest.run_id == known.run_id, "known before it began"
        assert known.manifest is None or known.manifest == manifest, "nothing to do, as was known"
        return manifest

    def whole(self, of: Rows, **parts: Any) -> dict[str, Any]:
        """What a run that is not incremental makes of the same input."""
        job = self.job(of, since=None, **{"output": str(self.folder / "whole"), **parts})
        manifest = run(job, lambda event, value: None)
        found = [row for row in rows_of(job.output, manifest) if "duplicate_id" not in codes(row)]
        return {row["document_id"]: essence(row, row["status"]) for row in found}

    def now(self) -> dict[str, Any]:
        """The current table, by the recipe of the documentation."""
        (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "incremental.md").read_text(), re.DOTALL)
        script = self.folder / "recipe.py"
        script.write_text(block)
        names = runpy.run_path(str(script))
        found: dict[str, Any] = {}
        for status in STATUSES:
            for schema in ("label@1", "tag@1", "nosuch@1"):
                table = names["current"](self.folder / "out", "nightly", status, schema)
                for row in table.to_pylist() if table is not None else []:
                    if "duplicate_id" not in codes(row):
                        assert row["document_id"] not in found
                        found[row["document_id"]] = essence(row, status)
        return found

    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "out").glob("run=*"))


def codes(row: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in row["problems"]]


def essence(row: dict[str, Any], status: str) -> Any:
    return status, row.get("record"), row.get("document_text"), codes(row)


@pytest.fixture
def collection(make_job: MakeJob, tmp_path: Path) -> Collection:
    return Collection(make_job, tmp_path)


@pytest.mark.slow
def test_nights_leave_what_a_whole_run_on_the_same_input_leaves(collection: Collection) -> None:
    monday = [*rows("label@1", 0, 20), *rows("tag@1", 20, 30), *rows("nosuch@1", 30, 31), {"id": "e", "text": ""}]
    monday[-1] |= {"schema": "tag@1", "kind": "a"}
    first = collection.night(monday)
    assert first.documents == len(monday) == first.incremental["new"]

    # d0 has another text, d1 another column, d2 another schema; d3 is gone, d40 is new, d4 is there twice.
    tuesday = [dict(row) for row in monday if row["id"] != "d3"]
    tuesday[0]["text"], tuesday[1]["kind"], tuesday[2]["schema"] = "another text", "c", "tag@1"
    tuesday = [*rows("label@1", 40, 41), *reversed(tuesday), rows("label@1", 4, 5)[0]]
    with pytest.raises(InterruptError):
        run(collection.job(tuesday), interrupt)
    runs = collection.runs()
    second = collection.night(tuesday)
    assert collection.runs() == runs, "it goes on with the run that was interrupted"
    found = second.incremental
    assert (found["new"], found["changed"], found["gone"], found["newly_repeated"]) == (1, 3, 1, 1)
    assert second.documents == 5 and found["since"] == first.run_id
    table = collection.now()
    assert table == collection.whole(tuesday)

    other = {"engine": "sampler", "seed": 4}
    assert collection.night(tuesday) == second == collection.night(tuesday, engine=other)
    assert collection.runs() == runs, "nothing new is no run, and a changed engine makes nothing new"

    less = collection.night(tuesday[:5])
    assert (less.documents, less.files, less.incremental["gone"]) == (0, (), 27)
    assert collection.now() == {row["id"]: table[row["id"]] for row in tuesday[:5]}
    back = collection.night(tuesday)
    assert back.incremental["returned"] == 27 and collection.now() == table
    redone = collection.night(tuesday, again=["engine"], engine=other)
    assert (redone.incremental["asked"], redone.incremental["unchanged"]) == (32, 0)
    assert collection.night(tuesday, again=["engine"], engine=other) == redone
    with pytest.raises(InputError, match="empty"):
        collection.night([])


class InterruptError(Exception):
    """Stands for Ctrl-C."""


def interrupt(event: str, value: Any) -> None:
    if event == "progress":
        raise InterruptError
