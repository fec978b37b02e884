"""Attempts may repeat; publication happens once, and only if every id adds up."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from support import RECEIPT

from pipeline.errors import OutputError, RunChangedError
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.store import publish
from pipeline.runtime.switch import CONSTRAINED


def test_a_finished_run_publishes_what_it_wrote(work: Any) -> None:
    run = work.open()
    assert run.manifest() is None
    manifest = work.finish(run)
    assert manifest.documents == 12
    assert manifest.counts == {"valid": 6, "degraded": 4, "rejected": 2}
    assert manifest.ids_digest == work.found.ids_digest
    assert manifest.totals["documents"] == 12
    assert manifest.versions["pyarrow"]
    assert read_manifest(run.store) == manifest == run.manifest()


def test_a_plain_reader_gets_every_row_with_status_and_schema_from_the_path(work: Any) -> None:
    run = work.open()
    work.finish(run)
    table = ds.dataset(Path(run.where), format="parquet", partitioning="hive", exclude_invalid_files=True).to_table(
        columns=["document_id", "status", "schema"]
    )
    assert sorted(table.column("document_id").to_pylist()) == sorted(f"d{n}" for n in range(12))
    assert Counter(table.column("status").to_pylist()) == {"valid": 6, "degraded": 4, "rejected": 2}
    assert set(table.column("schema").to_pylist()) == {"receipt@1"}
    valid = ds.dataset(Path(run.where) / "status=valid", format="parquet", partitioning="hive").to_table()
    assert {row["vendor"] for row in valid.column("record").to_pylist()} == {"Ann & Co", "Büro \u2028 €"}


def test_a_second_commit_changes_nothing(work: Any) -> None:
    run = work.open()
    first = work.finish(run)
    again = work.open()
    assert again.manifest() == first
    assert again.commit(work.found, {"other": "digest"}) == first
    assert not publish(run.store, "manifest.json", {"run_id": "late", "attempt": "late"})


@pytest.mark.parametrize("kind", ["other ids", "unit missing", "unit unknown", "row lost"])
def test_what_does_not_add_up_is_not_published(work: Any, kind: str) -> None:
    run = work.open()
    units = work.found.units
    for unit in units[:-1] if kind == "unit missing" else units:
        work.write(run, unit)
    path = Path(run.where) / "_commits" / f"{units[0].id}.json"
    record = json.loads(path.read_text())
    if kind == "unit unknown":
        work.write(run, dataclasses.replace(units[0], id="999999"))
    if kind == "other ids":
        path.write_text(json.dumps({**record, "ids_digest": "0" * 32}))
    if kind == "row lost":
        path.write_text(json.dumps({**record, "files": record["files"][1:]}))
    with pytest.raises(OutputError, match="not committed"):
        run.commit(work.found, {})
    assert run.manifest() is None
    assert run.committed_units()


@pytest.mark.parametrize("how", ["missing", "short", "long", "a folder"])
def test_files_that_are_not_as_they_were_written_are_not_published(work: Any, how: str) -> None:
    run = work.open()
    records = [work.write(run, unit) for unit in work.found.units]
    path = Path(run.where) / records[1]["files"][0]["path"]
    content = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(content[:-1] if how == "short" else content + b"x")
    with pytest.raises(OutputError, match="not committed") as caught:
        run.commit(work.found, {})
    assert path.name in str(caught.value)
    assert run.manifest() is None
    if how == "a folder":
        path.rmdir()
    (Path(run.where) / "_commits" / f"{records[1]['unit']}.json").unlink()  # what the message says helps
    work.write(run, work.found.units[1])
    assert run.commit(work.found, {}).documents == 12


def test_a_commit_record_that_was_spoilt_is_told_by_name(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    path = Path(run.where) / "_commits" / f"{work.found.units[2].id}.json"
    path.write_text("{")
    with pytest.raises(OutputError, match=path.name):
        run.commit(work.found, {})
    with pytest.raises(OutputError, match=path.name):
        work.write(run, work.found.units[2])


def test_an_interrupted_run_goes_on_where_it_was(work: Any, make_work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    again = make_work(placement={"unit_documents": 3}).open()
    assert again.where == run.where
    assert again.committed_units() == {work.found.units[0].id}
    assert again.unit_documents == 5  # the units of the earlier part
    assert again.started == run.started


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"body": {**RECEIPT, "required": []}}, "schema receipt@1"),
        ({"body": {**RECEIPT, "description": "other prose"}}, "prompt of receipt@1"),
        ({"sampling": {"temperature": 1}}, "sampling.temperature"),
        ({"engine": {"engine": "sampler", "seed": 5}}, "engine.seed"),
    ],
)
def test_an_unfinished_run_is_not_mixed_with_changed_work(work: Any, make_work: Any, change: Any, named: str) -> None:
    run = work.open()
    changed = make_work(**change)
    with pytest.raises(RunChangedError) as caught:
        changed.open()
    assert named in str(caught.value)
    assert run.where in str(caught.value)
    assert "--fresh" in str(caught.value)
    assert changed.open(fresh=True).where != run.where
    assert Path(run.where).exists()


def test_a_committed_run_does_not_stand_in_the_way_of_a_changed_one(work: Any, make_work: Any) -> None:
    first = work.open()
    work.finish(first)
    second = make_work({**RECEIPT, "required": []}).open()
    assert second.where != first.where


def test_a_committed_run_is_found_done_although_a_changed_one_is_unfinished(work: Any, make_work: Any) -> None:
    work.finish(work.open())
    make_work({**RECEIPT, "required": []}).open()
    assert make_work().open().manifest() is not None


def test_a_fresh_run_that_was_interrupted_goes_on_by_the_same_command(work: Any, make_work: Any) -> None:
    work.open()
    changed = make_work(sampling={"temperature": 1})
    fresh = changed.open(fresh=True)
    assert changed.open().where == fresh.where


def test_another_slot_is_another_run(work: Any, make_work: Any) -> None:
    work.open()
    assert make_work(slot="tomorrow").open().where != work.open().where


def test_an_unfinished_run_is_in_the_way_of_no_switch_but_of_any_other_change(work: Any, make_work: Any) -> None:
    work.open()
    free = make_work(sampling={"constrained": False})
    with pytest.raises(RunChangedError, match=CONSTRAINED):
        free.open()
    begun = free.open(leave={CONSTRAINED})
    assert begun.manifest() is None and begun.where != work.open().where
    with pytest.raises(RunChangedError, match="max_tokens"):
        make_work(sampling={"constrained": False, "max_tokens": 7}).open(leave={CONSTRAINED})
