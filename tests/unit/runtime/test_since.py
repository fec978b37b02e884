"""Only what is new or changed is extracted; the current table is always that of a whole run on the same input."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from since_nights import ROOT, Nights, table_of

from pipeline.errors import OutputError, RunChangedError
from pipeline.runtime.since import last_run, rows
from pipeline.runtime.since.index import read_parts
from pipeline.runtime.store import open_store

MON = [("a", "1"), ("b", "bad"), ("c", "doubtful"), ("d", "4")]


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def last(nights: Nights) -> Any:
    return last_run(open_store(str(nights.folder / "out")), "nightly")


def counted(incremental: dict[str, Any] | None, **expected: int) -> bool:
    names = ("new", "changed", "asked", "lost", "unchanged", "returned", "gone", "repeated", "newly_repeated")
    return incremental is not None and {n: incremental[n] for n in names if incremental[n]} == expected


def test_only_new_and_changed_documents_are_extracted_and_the_rest_still_counts(nights: Nights) -> None:
    first = nights.night(MON)
    assert counted(first, new=4)
    assert first is not None and (first["since"], first["sequence"]) == (None, 1)
    base = last(nights).run_id
    tue = [("e", "5"), ("a", "1"), ("b", "bad"), ("c", "changed")]
    second = nights.night(tue)
    assert sorted(nights.made) == ["c", "e"]
    assert counted(second, new=1, changed=1, unchanged=2, gone=1)
    assert second is not None and (second["since"], second["sequence"], second["documents"]) == (base, 2, 4)
    assert second["runs"] == {base: 2, last(nights).run_id: 2}
    assert nights.superseded(second, last(nights).run_id) == [("c", "changed"), ("d", "gone")]
    assert nights.table() == table_of(tue)


def test_nothing_new_is_no_run_whatever_the_order(nights: Nights) -> None:
    nights.night(MON)
    before = sorted(path for path in nights.folder.rglob("*"))
    assert nights.night(MON) is None
    assert nights.night(list(reversed(MON)), engine={"engine": "sampler", "seed": 9}, retry={"max_attempts": 5}) is None
    assert sorted(path for path in nights.folder.rglob("*")) == before


def test_an_input_that_changes_back_is_another_run(nights: Nights) -> None:
    runs = []
    for content in ("1", "2", "1"):
        assert nights.night([("a", content)]) is not None
        runs.append(last(nights).run_id)
        assert nights.table() == table_of([("a", content)])
    assert len(set(runs)) == 3


SCHEMA = {"type": "object", "properties": {"x": {"type": "string", "x-normalise": ["trim"]}}}


@pytest.mark.parametrize(
    "change",
    [
        {"policy": {"abstain": "nullable"}},
        {"params": {"limit": 3}},
        {"clean": ["invisible"]},
        {"cite": "lines"},
        {"input": {"path": "in.jsonl", "schema": "s@1", "since": "last", "columns": ["total"]}},
        {"input": {"path": "in.jsonl", "schema": "t@1", "since": "last"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_judges_a_record_makes_it_again(nights: Nights, change: dict[str, Any]) -> None:
    nights.write_schema("t", SCHEMA)
    nights.night(MON)
    assert counted(nights.night(MON, **change), changed=4)


def test_schema_instructions_and_examples_make_its_documents_again(nights: Nights) -> None:
    nights.night(MON)
    folder = nights.folder / "schemas" / "s" / "1"
    for name, text in (
        ("schema.json", json.dumps(SCHEMA)),
        ("instructions.md", "Read well."),
        ("examples.jsonl", json.dumps({"document": "x is y", "record": {"x": "y"}})),
    ):
        (folder / name).write_text(text)
        assert counted(nights.night(MON), changed=4), name
        assert nights.night(MON) is None
    (folder / "schema.json").write_text("{")
    assert counted(nights.night(MON), changed=4)  # refused now, once
    assert nights.night(MON) is None


def test_a_lookup_counts_by_what_it_holds_and_for_the_schemas_that_it_speaks_of(nights: Nights) -> None:
    def lookup(path: str, schema: str | None = None) -> dict[str, Any]:
        return {"lookups": [{"pointer": "/x", "path": path, "column": "k", "schema": schema}]}

    nights.night(MON, values={("v.csv", "k"): "1"}, **lookup("v.csv"))
    assert nights.night(MON, values={("w.csv", "k"): "1"}, **lookup("w.csv")) is None
    assert counted(nights.night(MON, values={("w.csv", "k"): "2"}, **lookup("w.csv")), changed=4)
    assert counted(nights.night(MON), changed=4)
    assert nights.night(MON, values={("w.csv", "k"): "2"}, **lookup("w.csv", "other@1")) is None


def test_statuses_and_rows_of_another_engine_are_made_again_on_request(nights: Nights) -> None:
    other = {"engine": {"engine": "sampler", "seed": 9}}
    nights.night(MON)
    assert counted(nights.night(MON, again=["rejected"]), asked=1, unchanged=3)
    assert nights.made == ["b"]
    assert nights.night(MON, again=["rejected"]) is None, "a rerun of a committed run does nothing"
    assert counted(nights.night(MON, again=["rejected"], slot="2"), asked=1, unchanged=3)
    assert counted(nights.night(MON, again=["rejected", "degraded"], **other), asked=2, unchanged=2)
    assert nights.night(MON, again=["engine"]) is not None  # b and c were made by the other engine
    assert sorted(nights.made) == ["b", "c"]
    assert nights.night(MON, again=["engine"]) is None
    assert counted(nights.night(MON, again=["all"], **other), asked=4)
    assert nights.night(MON, again=["all"], **other) is None
    assert nights.night(MON, again=["engine"], **other) is None
    assert nights.table() == table_of(MON)


def test_documents_that_were_only_missing_return_without_being_extracted(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.night(MON)
    assert counted(nights.night(MON[:1]), unchanged=1, gone=3)
    assert nights.made == [] and nights.table() == table_of(MON[:1])
    assert nights.night(MON[:1]) is None
    assert counted(nights.night([*MON[:2], ("c", "other")]), unchanged=1, returned=1, new=1)
    assert nights.made == ["c"] and nights.table() == table_of([*MON[:2], ("c", "other")])
    monkeypatch.setattr(rows, "GONE_RUNS", 3)
    nights.night([*MON[:2], ("c", "x")])
    nights.night([*MON[:2], ("c", "y")])
    assert counted(nights.night(MON), unchanged=2, changed=1, new=1), "d was missing for too long"


def test_repeated_ids_are_neither_extracted_every_night_nor_forgotten(nights: Nights) -> None:
    twice = [("a", "1"), ("b", "2"), ("a", "bad"), ("a", "1")]
    first = nights.night(twice)
    assert counted(first, new=2)
    assert nights.night(twice) is None
    more = [*twice, ("c", "3"), ("c", "bad")]
    second = nights.night(more)
    assert nights.made == ["c"] and counted(second, unchanged=2, new=1, repeated=2)
    assert second is not None and second["repeated_ids"] == ["a"]
    parts = read_parts(last(nights).store, last(nights).files)
    kept = {row["document_id"]: row["repeats"] for part in parts for row in part.to_pylist()}
    assert kept == {"a": 2, "b": 0, "c": 1}
    assert nights.table() == table_of(more)
    more.append(("b", "2"))
    assert counted(nights.night(more), unchanged=3, repeated=3, newly_repeated=1), "rejected once"
    assert nights.made == [] and nights.night(more) is None
    swapped = [("a", "bad"), *more]
    assert counted(nights.night(swapped), changed=1, unchanged=2, repeated=2)
    assert nights.table() == table_of(swapped)


def test_rows_whose_run_was_deleted_are_made_again(nights: Nights) -> None:
    nights.night(MON)
    first = last(nights)
    tue = [*MON[:3], ("e", "5")]
    nights.night(tue)
    for entry in list(first.store.list()):
        first.store.delete(entry.key)
    assert counted(nights.night(tue), lost=3, unchanged=1)
    assert nights.table() == table_of(tue)
    second = last(nights)
    second.store.delete("manifest.json")  # the last run is deleted: the one before it is the last
    assert counted(nights.night(tue), lost=3, unchanged=1)
    assert counted(nights.night(MON), unchanged=3, gone=1, new=1)


def test_an_interrupted_run_is_the_same_run_again_and_keeps_its_number(nights: Nights) -> None:
    nights.night(MON)
    tue = [("a", "x"), *MON[1:]]
    begun = nights.begin(tue)
    assert begun is not None
    begun[0].finish(begun[1])  # died before the manifest
    resumed = nights.begin(tue)
    assert resumed is not None and resumed[1].identity == begun[1].identity
    done = nights.commit(*resumed)
    assert counted(done, changed=1, unchanged=3) and done["sequence"] == 2
    assert nights.night(tue) is None
    assert nights.table() == table_of(tue)


def test_of_two_drivers_on_different_inputs_the_later_one_is_not_committed(nights: Nights) -> None:
    nights.night(MON)
    tue, wed = [*MON, ("e", "5")], [*MON, ("f", "6")]
    slow = nights.begin(tue)
    assert slow is not None
    assert counted(nights.night(wed), unchanged=4, new=1)
    with pytest.raises(RunChangedError, match="Run the same command again"):
        nights.commit(*slow)
    again = nights.night(tue)
    assert counted(again, unchanged=4, new=1, gone=1)
    assert again is not None and again["sequence"] == 3
    assert nights.table() == table_of(tue)


def test_an_index_that_is_not_what_was_written_stops_the_job(nights: Nights) -> None:
    nights.night(MON)
    store, (part,) = last(nights).store, last(nights).files
    data = store.get(part["path"])
    store.put(part["path"], data[:-1] + b"x")
    with pytest.raises(OutputError, match="is not what the run wrote"):
        nights.night(MON)
    store.delete(part["path"])
    with pytest.raises(OutputError, match="is gone"):
        nights.night(MON)


def test_the_sql_of_the_documentation_gives_the_rows_that_count(nights: Nights) -> None:
    nights.night(MON)
    nights.night([("a", "new"), ("d", "4")])
    (query,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "incremental.md").read_text(), re.DOTALL)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE valid (document_id, record, run_id)")
    base.execute("CREATE TABLE last_index (document_id, run_id, status, schema, gone)")
    for path in (nights.folder / "out").glob("run=*/status=valid/*/*"):
        for row in pq.ParquetFile(path).read().to_pylist():
            base.execute("INSERT INTO valid VALUES (:document_id, :record, :run_id)", row)
    for part in read_parts(last(nights).store, last(nights).files):
        for row in part.to_pylist():
            base.execute("INSERT INTO last_index VALUES (:document_id, :run_id, :status, :schema, :gone)", row)
    found = base.execute(query.replace("receipt@1", "s@1")).fetchall()
    assert sorted(row[:2] for row in found) == [("a", "new"), ("d", "4")]
