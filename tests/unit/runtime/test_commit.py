"""Attempts may repeat; publication happens once, and only if every id adds up."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from support import RECEIPT

from pipeline.errors import OutputError, RunChangedError
from pipeline.runtime.commit import create_exclusively, read_manifest


def test_a_finished_run_publishes_what_it_wrote(work: Any) -> None:
    run = work.open()
    assert run.manifest() is None
    manifest = work.finish(run)
    assert manifest.documents == 12
    assert manifest.counts == {"valid": 6, "degraded": 4, "rejected": 2}
    assert manifest.ids_digest == work.found.ids_digest
    assert manifest.totals["documents"] == 12
    assert manifest.versions["pyarrow"]
    assert read_manifest(run.directory) == manifest == run.manifest()


def test_a_plain_reader_gets_every_row_with_status_and_schema_from_the_path(work: Any) -> None:
    run = work.open()
    work.finish(run)
    table = ds.dataset(run.directory, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table(
        columns=["document_id", "status", "schema"]
    )
    assert sorted(table.column("document_id").to_pylist()) == sorted(f"d{n}" for n in range(12))
    assert Counter(table.column("status").to_pylist()) == {"valid": 6, "degraded": 4, "rejected": 2}
    assert set(table.column("schema").to_pylist()) == {"receipt@1"}
    valid = ds.dataset(run.directory / "status=valid", format="parquet", partitioning="hive").to_table()
    assert {row["vendor"] for row in valid.column("record").to_pylist()} == {"Ann & Co", "Büro \u2028 €"}


def test_a_second_commit_changes_nothing(work: Any) -> None:
    run = work.open()
    first = work.finish(run)
    again = work.open()
    assert again.resumed
    assert again.manifest() == first
    assert again.commit(work.found, {"other": "digest"}) == first
    assert not create_exclusively(run.directory / "manifest.json", {"run_id": "late"})


def test_of_many_who_create_a_file_one_succeeds_and_it_is_whole(tmp_path: Path) -> None:
    won: list[int] = []

    def create(number: int) -> None:
        if create_exclusively(tmp_path / "x.json", {"number": number, "text": "y" * 100_000}):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [json.loads((tmp_path / "x.json").read_text())["number"]] == won
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def tampered(kind: str, outcomes: list[Any]) -> list[Any]:
    if kind == "changed id":
        return [dataclasses.replace(outcomes[0], document_id="other"), *outcomes[1:]]
    return [outcomes[1], *outcomes[1:]]  # one lost, one doubled: the count is right


@pytest.mark.parametrize("kind", ["changed id", "lost and doubled", "unit missing", "unit unknown", "row lost"])
def test_what_does_not_add_up_is_not_published(work: Any, kind: str) -> None:
    run = work.open()
    units = work.found.units
    for unit in units[:-1] if kind == "unit missing" else units:
        outcomes = work.outcomes(unit)
        work.write(
            run,
            unit,
            tampered(kind, outcomes) if unit is units[1] and kind in ("changed id", "lost and doubled") else outcomes,
        )
    if kind == "unit unknown":
        work.write(run, dataclasses.replace(units[0], id="999999"))
    if kind == "row lost":
        path = run.directory / "_commits" / f"{units[0].id}.json"
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "files": record["files"][1:]}))
    with pytest.raises(OutputError, match="not committed"):
        run.commit(work.found, {})
    assert run.manifest() is None
    assert run.committed_units()


def test_files_that_were_never_committed_are_swept_and_no_others(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    committed = set(run.directory.rglob("*.parquet"))
    folder = next(iter(committed)).parent
    (folder / "000000-late.parquet").write_bytes(b"half a file")
    (folder / ".tmp").write_text("x")
    (run.directory / "notes.txt").write_text("keep")
    run.commit(work.found, {})
    assert set(run.directory.rglob("*.parquet")) == committed
    assert not (folder / ".tmp").exists()
    assert (run.directory / "notes.txt").exists()
    assert (run.directory / "run.json").exists()


def test_an_interrupted_run_goes_on_where_it_was(work: Any, make_work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    again = make_work(placement={"unit_documents": 3}).open()
    assert again.directory == run.directory
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
    assert str(run.directory) in str(caught.value)
    assert "--fresh" in str(caught.value)
    assert changed.open(fresh=True).directory != run.directory
    assert run.directory.exists()


def test_a_committed_run_does_not_stand_in_the_way_of_a_changed_one(work: Any, make_work: Any) -> None:
    first = work.open()
    work.finish(first)
    second = make_work({**RECEIPT, "required": []}).open()
    assert not second.resumed
    assert second.directory != first.directory


def test_a_committed_run_is_found_done_although_a_changed_one_is_unfinished(work: Any, make_work: Any) -> None:
    work.finish(work.open())
    make_work({**RECEIPT, "required": []}).open()
    assert make_work().open().manifest() is not None


def test_a_fresh_run_that_was_interrupted_goes_on_by_the_same_command(work: Any, make_work: Any) -> None:
    work.open()
    changed = make_work(sampling={"temperature": 1})
    fresh = changed.open(fresh=True)
    assert changed.open().directory == fresh.directory


def test_another_slot_is_another_run(work: Any, make_work: Any) -> None:
    work.open()
    assert make_work(slot="tomorrow").open().directory != work.open().directory


def test_an_output_that_cannot_be_written_is_told_with_its_path(make_work: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="file"):
        make_work(output=str(tmp_path / "file" / "below")).open()
    with pytest.raises(OutputError, match="s3://"):
        make_work(output="s3://bucket/out").open()
