"""Different documents with equal records are reported at commit, whatever the order of rows, and change no status."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import RECEIPT, Answers, extracted

from pipeline.runtime.input import read_unit
from pipeline.runtime.output import duplicates
from pipeline.runtime.output.duplicates import find_duplicates, record_digest
from pipeline.runtime.store import open_store

RECORDS = [{"vendor": "Ann", "total": 1}, {"vendor": "Bob", "total": 2}, {"vendor": "Ann", "total": 1.0}]


def committed(work: Any, answer: Any) -> tuple[Path, Any]:
    """A finished run in which `answer` gives the record of a document's number."""
    run = work.open()
    for unit in work.found.units:
        plan = work.plans["receipt@1"]
        outcomes = [
            extracted(Answers(answer(int(document.id[1:]))), plan, document)
            for document in read_unit(unit, work.job.input)
        ]
        work.write(run, unit, outcomes)
    return Path(run.where), run.commit(work.found, {})


def report(directory: Path) -> Any:
    return json.loads((directory / "duplicates.json").read_text())


def test_equal_records_of_different_documents_are_reported_and_named_in_the_manifest(work: Any) -> None:
    directory, manifest = committed(work, lambda n: RECORDS[n % 3] if n < 9 else {"vendor": f"v{n}", "total": n})
    assert manifest.totals["duplicates"] == {
        "file": "duplicates.json",
        "groups": 2,
        "documents": 9,
        "schemas": {"receipt@1": {"groups": 2, "documents": 9}},
    }
    listed = report(directory)["listed"]["receipt@1"]
    assert [group["ids"] for group in listed] == [["d0", "d2", "d3", "d5", "d6", "d8"], ["d1", "d4", "d7"]]
    assert [group["documents"] for group in listed] == [6, 3]
    rows = [row for file in manifest.files for row in pq.ParquetFile(directory / file["path"]).read().to_pylist()]
    by_digest = {row["document_id"]: row["record_digest"] for row in rows}
    assert {by_digest[key] for key in listed[0]["ids"]} == {listed[0]["record_digest"]}
    assert manifest.counts["valid"] == 12  # a report, no status


def test_no_duplicates_are_reported_as_none(work: Any) -> None:
    directory, manifest = committed(work, lambda n: {"vendor": f"v{n}", "total": n})
    assert manifest.totals["duplicates"] == {"file": "duplicates.json", "groups": 0, "documents": 0, "schemas": {}}
    assert report(directory)["listed"] == {}


def test_valid_and_degraded_records_are_compared_and_rejected_ones_have_none(work: Any) -> None:
    same = {"vendor": "Ann", "total": 1}

    def answer(n: int) -> Any:
        return (
            [same, "prose " + json.dumps(same) + " more", "no answer"][n] if n < 3 else {"vendor": f"{n}", "total": n}
        )

    directory, manifest = committed(work, answer)
    assert (manifest.counts["degraded"], manifest.counts["rejected"]) == (1, 1)
    assert report(directory)["listed"]["receipt@1"][0]["ids"] == ["d0", "d1"]


def test_a_declared_key_decides_instead_of_the_whole_record(make_work: Any) -> None:
    work = make_work({**RECEIPT, "x-key": ["/vendor", "/date"]})
    days = {0: "2024-01-01", 1: "2024-01-01", 2: "2024-01-02", 3: None, 4: None}

    def answer(n: int) -> Any:
        day = days.get(n, f"2023-01-{n:02}")
        return {"vendor": "Ann", "total": n, **({"date": day} if day else {})}

    directory, manifest = committed(work, answer)
    assert report(directory)["listed"]["receipt@1"][0]["ids"] == ["d0", "d1"]  # without a date there is no key
    assert manifest.totals["duplicates"]["documents"] == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_order_of_rows_gives_the_same_report(make_work: Any, tmp_path: Path, seed: int) -> None:
    def answer(n: int) -> Any:
        return {"vendor": "v", "total": n % 4}

    before = report(committed(make_work(), answer)[0])
    lines = (tmp_path / "in.jsonl").read_text().splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    (tmp_path / "in.jsonl").write_text("".join(lines))
    after = committed(make_work(placement={"unit_documents": 2 + seed}), answer)[0]
    assert report(after) == before


def files(folder: Path, rows: list[tuple[str, str | None]], size: int) -> list[dict[str, Any]]:
    found = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        table = pa.table(
            {"document_id": [r[0] for r in part], "record_digest": pa.array([r[1] for r in part], pa.string())}
        )
        pq.write_table(table, folder / f"{start}.parquet")
        found.append({"path": f"{start}.parquet", "status": "valid", "schema": "s@1"})
    return found


@pytest.mark.parametrize("size", [3, 100])
def test_the_report_is_bounded_and_its_counts_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(duplicates, "MAX_GROUPS", 2)
    monkeypatch.setattr(duplicates, "MAX_IDS", 3)
    rows: list[tuple[str, str | None]] = [
        (f"{group}-{n:02}", f"{group:016x}") for group in range(1, 6) for n in range(10 + group)
    ]
    rows += [(f"none {n}", None) for n in range(20)]
    random.Random(1).shuffle(rows)
    found = find_duplicates(open_store(str(tmp_path)), files(tmp_path, rows, size))
    assert (found.groups, found.documents) == ({"s@1": 5}, {"s@1": 65})
    assert found.listed["s@1"] == [
        {"record_digest": f"{group:016x}", "documents": 10 + group, "ids": [f"{group}-{n:02}" for n in range(3)]}
        for group in (5, 4)
    ]


def test_files_of_an_earlier_version_have_no_digests(tmp_path: Path) -> None:
    pq.write_table(pa.table({"document_id": ["a", "b"]}), tmp_path / "a.parquet")
    old = [{"path": "a.parquet", "status": "valid", "schema": "s@1"}]
    assert find_duplicates(open_store(str(tmp_path)), old).counts()["documents"] == 0


def test_a_report_of_an_interrupted_commit_is_written_anew_and_a_published_one_is_kept(work: Any) -> None:
    run = work.open()
    (Path(run.where) / "duplicates.json").write_text("{stale")
    manifest = work.finish(run)
    assert report(Path(run.where))["documents"] == manifest.totals["duplicates"]["documents"]
    (Path(run.where) / "duplicates.json").write_text("kept")
    assert run.commit(work.found, {}) == manifest
    assert (Path(run.where) / "duplicates.json").read_text() == "kept"


LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3), max_leaves=6
)


def shuffled(value: Any) -> Any:
    """An equal JSON value that is written otherwise."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    if isinstance(value, list):
        return [shuffled(item) for item in value]
    return float(value) if type(value) is int and abs(value) < 2**53 else value


@given(VALUES)
def test_equal_values_share_a_digest_however_they_are_written(value: Any) -> None:
    assert record_digest(value, {}) == record_digest(shuffled(value), {})
    assert record_digest([value, "x"], {}) != record_digest([value, "y"], {})


@pytest.mark.parametrize(
    ("record", "schema"),
    [
        ({}, {}),
        ({"a": None, "b": [None, {}]}, {}),
        (None, {}),
        ({"a": 1}, {"x-key": []}),
        ({"a": 1}, {"x-key": "/a"}),
        ({"a": 1, "b": None}, {"x-key": ["/a", "/b"]}),
        ({"a": 1}, {"x-key": ["/a", "/c/0"]}),
        ({"a": [1]}, {"x-key": ["/a/1"]}),
    ],
)
def test_what_holds_nothing_to_compare_has_no_digest(record: Any, schema: Any) -> None:
    assert record_digest(record, schema) is None


def test_keys_are_pointers() -> None:
    schema = {"x-key": ["/a~1b/0/c", "/d"]}
    one = record_digest({"a/b": [{"c": 5}], "d": True, "e": 1}, schema)
    assert one == record_digest({"a/b": [{"c": 5.0}], "d": True, "e": 2}, schema)
    assert one != record_digest({"a/b": [{"c": 5}], "d": 1, "e": 1}, schema)
    assert one is not None


def test_a_rejected_outcome_has_no_digest(work: Any) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = [dataclasses.replace(o, status="rejected", record=None) for o in work.outcomes(unit)]
    record = work.write(run, unit, outcomes)
    table = pq.ParquetFile(Path(run.where) / record["files"][0]["path"]).read()
    assert set(table.column("record_digest").to_pylist()) == {None}
