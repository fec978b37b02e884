"""A whole job on local Ray with the `sampler` engine: conservation, independence of layout, rerun, resume."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline.flow import run
from pipeline.records import Manifest
from tests.integration.conftest import DOCUMENTS, MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")

FAULTS = [
    {"kind": "truncate", "share": 0.05},
    {"kind": "abort", "share": 0.03, "attempts": 1},
    {"kind": "abort", "share": 0.01},
    {"kind": "loop", "share": 0.02},
    {"kind": "empty", "share": 0.02},
    {"kind": "prose", "share": 0.05},
    {"kind": "stall", "share": 0.01, "seconds": 0.2},
]
VOLATILE = ("seconds", "queue_seconds", "cached_tokens")
"""What an attempt may tell differently each time without being another outcome."""


def rows_of(job_output: str, manifest: Manifest) -> list[dict[str, Any]]:
    """All rows of a committed run, read by plain pyarrow from the files that the manifest names."""
    directory = Path(job_output) / f"run={manifest.run_id}"
    rows = []
    for file in manifest.files:
        table = pq.ParquetFile(directory / file["path"]).read()
        assert table.num_rows == file["rows"]
        rows += [{**row, "status": file["status"], "schema": file["schema"]} for row in table.to_pylist()]
    return rows


def comparable(rows: list[dict[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Outcomes by document id, without what tells only where and how fast they were made."""
    outcomes = {}
    for row in rows:
        attempts = [{k: v for k, v in attempt.items() if k not in VOLATILE} for attempt in row["attempts"]]
        outcomes[row["document_id"]] = {**row, "attempts": attempts, "source": None, "run_id": None}
    return outcomes


def test_layout_changes_no_outcome(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    shuffled = list(documents)
    random.Random(2).shuffle(shuffled)
    engine = {"faults": FAULTS}
    spread = {"unit_documents": 37, "actors": 2}
    jobs = {
        "plain": make_job(documents, "plain", engine=engine),
        "otherwise": make_job(shuffled, "otherwise", engine={**engine, "max_num_seqs": 5}, placement=spread),
    }
    outcomes = {}
    for name, job in jobs.items():
        manifest = run(job, lambda event, value: None)
        rows = rows_of(job.output, manifest)
        assert manifest.documents == DOCUMENTS == len(rows)
        assert Counter(row["document_id"] for row in rows) == Counter(row["id"] for row in documents)
        assert Counter(row["status"] for row in rows) == Counter(dict(manifest.counts))
        outcomes[name] = comparable(rows)
    assert outcomes["plain"] == outcomes["otherwise"]
    plain = outcomes["plain"].values()
    # The faults reached every status and every layer; otherwise the comparison above would show little.
    assert {row["status"] for row in plain} == {"valid", "degraded", "rejected"}
    assert {row["layer"] for row in plain} == {0, 1, 2, 3}
    codes = {problem["code"] for row in plain for problem in row["problems"]}
    assert {"truncated", "engine_abort", "repetition", "constraint_failed"} <= codes


def test_rerun_does_nothing_and_plain_readers_see_typed_columns(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    job = make_job(documents[:60], "small")
    first = run(job, lambda event, value: None)
    events: list[str] = []
    again = run(job, lambda event, value: events.append(event))
    assert again == first
    assert events == ["compared", "done"]
    directory = Path(job.output) / f"run={first.run_id}"
    data = ds.dataset(directory / "status=valid" / "schema=receipt@1", partitioning=None)
    record = data.schema.field("record").type
    assert {field.name: str(field.type) for field in record} == {
        "company": "string",
        "date": "string",
        "address": "string",
        "currency": "string",
        "total": "double",
    }
    whole = ds.dataset(directory, partitioning="hive", exclude_invalid_files=True).to_table(
        columns=["document_id", "status", "schema"]
    )
    assert whole.num_rows == 60
    assert set(whole.column("schema").to_pylist()) == {row["schema"] for row in documents[:60]}


def test_documents_that_cannot_be_asked_are_rejected_and_their_neighbours_are_not(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    good = documents[:20]
    bad = [
        {"id": "empty", "schema": "receipt@1", "text": "  \n "},
        {"id": "nul", "schema": "receipt@1", "text": "TOTAL\u0000 5.00"},
        {"id": "surrogate", "schema": "receipt@1", "text": "TOTAL \ud800 5.00"},
        {"id": "long", "schema": "receipt@1", "text": "many words " * 9000},
        {"id": "no-schema", "schema": None, "text": "TOTAL 5.00"},
        {"id": good[0]["id"], "schema": "receipt@1", "text": "the same id again"},
    ]
    job = make_job([*good, *bad], "bad")
    raw = Path(job.input.path)
    raw.write_bytes(raw.read_bytes() + b'{"id": "latin", "schema": "receipt@1", "text": "caf\xe9"}\nnot json\n')
    rows = rows_of(job.output, run(job, lambda event, value: None))
    found = {row["document_id"]: row for row in rows if any(p["severity"] != "observe" for p in row["problems"])}
    read = {name: [p["code"] for p in row["problems"] if p["severity"] != "observe"] for name, row in found.items()}
    codes = {name: told[0] for name, told in read.items() if told and name != f"{raw.name}#27"}
    assert "document_unreadable" in {problem["code"] for problem in found[f"{raw.name}#27"]["problems"]}
    assert codes == {
        "empty": "document_empty",
        "nul": "document_characters_replaced",
        "surrogate": "document_characters_replaced",
        "long": "document_too_long",
        "no-schema": "document_without_schema",
        good[0]["id"]: "duplicate_id",
        "latin": "document_not_utf8",
    }
    assert {row["status"] for row in rows if row["document_id"] in ("nul", "surrogate")} == {"degraded"}
    assert sum(row["status"] == "valid" for row in rows) == len(good)
