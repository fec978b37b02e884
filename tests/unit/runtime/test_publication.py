"""The manifest: published once whatever the storage says, from records that are read once; the rest is swept."""

from __future__ import annotations

import errno
import json
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.errors import OutcomeUnknownError, OutputError, RunChangedError
from pipeline.runtime.output import gather as gathering
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.gather import gather
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.output.lookup import find_run

TEMPORARY = ".tmp-" + "0" * 32


def content(run: Any) -> dict[str, bytes]:
    folder = Path(run.where)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def written(work: Any) -> Any:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    return run


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_manifest_that_cannot_be_published_is_told_and_deletes_nothing(work: Any, faulty: Any) -> None:
    run = written(work)
    before = content(run)

    def hook(name: str, key: str = "", *_: Any) -> None:
        if (name, key) == ("create", "manifest.json"):
            full()

    with pytest.raises(OutcomeUnknownError, match=r"manifest\.json could not be published: No space left"):
        faulty(run, before=hook).commit(work.found, {})
    assert run.manifest() is None
    assert before.items() <= content(run).items()
    assert run.commit(work.found, {}).documents == 12


def test_a_manifest_that_was_published_and_failed_is_found_out(work: Any, faulty: Any) -> None:
    run = written(work)
    manifest = faulty(run, after=lambda name, *_: full() if name == "create" else None).commit(work.found, {})
    assert manifest == run.manifest()


def test_what_can_only_be_told_by_a_rerun_is_told_by_a_rerun(work: Any, faulty: Any) -> None:
    run = written(work)

    def storm(name: str, key: str = "", *_: Any) -> None:
        if run.manifest() is not None:
            full()

    with pytest.raises(OutcomeUnknownError):
        faulty(run, before=storm, after=storm).commit(work.found, {})
    published = run.manifest()
    assert published is not None
    assert work.open().commit(work.found, {}) == published


@pytest.mark.parametrize("operation", ["list", "delete", "sweep_temporary", "put"])
def test_whatever_fails_before_the_manifest_publishes_nothing(work: Any, faulty: Any, operation: str) -> None:
    run = written(work)
    run.store.put("status=valid/schema=receipt@1/000000-late.parquet", b"x")
    broken = faulty(run, before=lambda name, *_: full() if name == operation else None)
    with pytest.raises(OutputError, match="No space left"):
        broken.commit(work.found, {})
    assert run.manifest() is None
    assert run.commit(work.found, {}).documents == 12


def litter(work: Any, run: Any) -> None:
    """What attempts that lost, an earlier driver and interrupted writes leave."""
    for status in ("valid", "rejected"):
        run.store.put(f"status={status}/schema=receipt@1/000000-late.parquet", b"half a file")
        (Path(run.where) / f"status={status}" / "schema=receipt@1" / TEMPORARY).write_text("x")
    Journal(run.store, work.found.units[0]).save(dict(enumerate(work.outcomes(work.found.units[0]))))
    for key in ("000001.json", "000001.beat", "000001.released", "000010.json", "000010.beat"):
        run.store.put(f"_lease/{key}", b"{}")
    for name in ("_commits", "", "_lease"):
        (Path(run.where) / name / TEMPORARY).write_text("{")


@pytest.mark.parametrize("late", [False, True])
def test_what_is_left_over_is_swept_and_nothing_else(work: Any, late: bool) -> None:
    """By a commit, and after it by a rerun of the committed run."""
    run = written(work)
    run.store.put("notes.txt", b"keep")
    run.store.put("status=valid/_SUCCESS", b"keep")
    if late:
        run.commit(work.found, {})
    before = content(run)
    litter(work, run)
    if late:
        work.open().sweep_late()
    else:
        run.commit(work.found, {})
    new = set() if late else {"manifest.json", "duplicates.json", "metrics.prom"}
    kept = {"_lease/000010.json", "_lease/000010.beat"}  # the driver's own
    after = content(run)
    assert after.keys() == before.keys() | new | kept
    assert before.items() <= after.items()


def test_an_unfinished_run_is_not_swept(work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    litter(work, run)
    before = content(run)
    run.sweep_late()
    with pytest.raises(OutputError, match="not committed"):
        run.commit(work.found, {})
    assert content(run) == before


def test_a_committed_run_that_may_not_be_changed_is_simply_done(work: Any, faulty: Any) -> None:
    run = written(work)
    manifest = run.commit(work.found, {})
    litter(work, run)

    def read_only(name: str, *_: Any) -> None:
        if name in ("put", "create", "delete", "sweep_temporary"):
            raise OSError(errno.EROFS, "Read-only file system")

    closed = faulty(run, before=read_only)
    closed.sweep_late()
    assert closed.commit(work.found, {}) == closed.manifest() == manifest


def test_of_many_who_commit_at_once_all_are_told_the_same(work: Any) -> None:
    run = written(work)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(run.commit(work.found, {}))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [run.manifest()] * 6


def test_a_commit_lists_twice_and_asks_for_no_file(work: Any, faulty: Any) -> None:
    """Its calls grow with the units, and of a store of objects each costs a round trip."""
    calls: list[tuple[str, str]] = []
    run = written(work)
    faulty(run, after=lambda name, key="", *_: calls.append((name, key))).commit(work.found, {})
    listed = [key for name, key in calls if name == "list"]
    assert sorted(listed) == ["_commits/", "_journal/", "_lease/", "status="]
    read = [key for name, key in calls if name in ("get", "size") and key.startswith(("_commits/", "status="))]
    assert sorted(read) == [f"_commits/{unit.id}.json" for unit in work.found.units] + duplicates_of(run)
    calls.clear()
    assert faulty(run, after=lambda name, key="", *_: calls.append((name, key))).committed_units()
    assert calls == [("list", "_commits/")]


def duplicates_of(run: Any) -> list[str]:
    """The files that hold a record of a listed group: the only ones that are read for the report."""
    groups = json.loads(run.store.get("duplicates.json"))["listed"].get("receipt@1", [])
    digests = {group["record_digest"] for group in groups}
    return sorted(
        file["path"]
        for file in run.manifest().files
        if digests & set(pq.ParquetFile(Path(run.where) / file["path"]).read().column("record_digest").to_pylist())
    )


@pytest.mark.parametrize("window", [1, 2, 100])
def test_records_are_read_in_windows_and_none_is_left_out(
    work: Any, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    run = written(work)
    whole = gather(run.store, sorted(run.committed_units()))
    monkeypatch.setattr(gathering, "WINDOW", window)
    assert gather(run.store, sorted(run.committed_units())) == whole
    assert whole.totals.documents == 12
    assert sum(len(packed) for packed in whole.digests.values()) == 8 * 10  # of all that were not rejected


SPOILT = [
    "{",
    "[]",
    "{}",
    '{"unit": "000000"}',
    '{"unit": 5, "ids_digest": "0", "tally": {}, "files": [], "input": {}}',
]


@pytest.mark.parametrize("text", SPOILT)
def test_a_record_that_is_none_is_told_by_name_wherever_it_is_met(work: Any, text: str) -> None:
    run = written(work)
    run.store.put("_commits/000000.json", text.encode())
    for meet in (lambda: run.commit(work.found, {}), lambda: work.write(run, work.found.units[0])):
        with pytest.raises(OutputError, match=r"_commits/000000\.json cannot be read back"):
            meet()


def test_a_run_of_an_earlier_version_is_finished_and_found(work: Any) -> None:
    """Whose records have neither `attempt` nor `digests`, and whose `run.json` has no `attempt`."""
    run = work.open()
    work.write(run, work.found.units[0])
    for key in ("run.json", "_commits/000000.json"):
        record = json.loads(run.store.get(key))
        old = {name: value for name, value in record.items() if name not in ("attempt", "digests")}
        run.store.put(key, json.dumps(old, indent=1).encode())
    again = work.open()
    for unit in work.found.units[1:]:
        work.write(again, unit)
    manifest = again.commit(work.found, {})
    assert manifest.totals["duplicates"]["documents"] == 10  # as many as if all records had digests
    members = json.loads(run.store.get("manifest.json"))
    del members["attempt"], members["incremental"]
    run.store.put("manifest.json", json.dumps(members).encode())
    assert read_manifest(find_run(run.where)) == manifest


def test_what_an_incremental_run_tells_stands_in_its_manifest(work: Any) -> None:
    run = written(work)
    assert run.commit(work.found, {}, {"base": "0", "superseded": 3}).incremental == {"base": "0", "superseded": 3}


def test_what_the_last_look_finds_wrong_leaves_the_run_unpublished(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)

    def overtaken() -> None:
        assert run.store.size("duplicates.json") is not None  # all else is done
        raise RunChangedError("another one was first")

    with pytest.raises(RunChangedError):
        run.commit(work.found, {"receipt@1": "digest"}, None, overtaken)
    assert run.manifest() is None
    assert run.commit(work.found, {"receipt@1": "digest"}).documents == work.found.documents
