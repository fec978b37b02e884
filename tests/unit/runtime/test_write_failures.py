"""A unit whose writing fails or comes too late leaves no file, unless nobody can tell whether it was committed."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import OutcomeUnknownError, OutputError


def files(run: Any) -> set[str]:
    folder = Path(run.where)
    return {str(path.relative_to(folder)) for path in folder.glob("status=*/schema=*/*")}


def named(record: Any) -> set[str]:
    return {file["path"] for file in record["files"]}


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def refuse(*_: Any, **__: Any) -> None:
    raise pa.ArrowInvalid("cannot convert")


def failing(operation: str, start: str = "", skip: int = 0, error: Any = None) -> Any:
    """A hook that raises at every such operation but the first `skip`."""
    seen: list[str] = []

    def hook(name: str, key: str = "", *_: Any) -> None:
        if name == operation and key.startswith(start):
            seen.append(key)
            if len(seen) > skip:
                raise error or OSError(errno.ENOSPC, "No space left on device")

    return hook


def test_who_loses_the_race_takes_its_files_back_and_tells_the_winners_record(
    work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = work.open()
    unit = work.found.units[0]
    write_table = pq.write_table
    won: list[Any] = []

    def meanwhile(*arguments: Any, **values: Any) -> None:
        monkeypatch.setattr(pq, "write_table", write_table)
        won.append(work.write(run, unit))
        write_table(*arguments, **values)

    monkeypatch.setattr(pq, "write_table", meanwhile)
    assert work.write(run, unit) == won[0]
    assert files(run) == named(won[0])


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [(pq, "write_table", full), (pq, "write_table", refuse), (pq, "ParquetFile", refuse), (pa, "schema", refuse)],
)
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_what_arrow_refuses_is_told_and_leaves_no_file(
    work: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fault: Any, calls: int
) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = work.outcomes(unit)
    real = getattr(owner, name)
    done: list[Any] = []

    def later(*arguments: Any, **values: Any) -> Any:
        if len(done) == calls:
            return fault()
        done.append(arguments)
        return real(*arguments, **values)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, later)
        with pytest.raises(OutputError, match=r"cannot write .*(No space left|cannot convert)"):
            work.write(run, unit, outcomes)
    assert files(run) == set()
    assert run.committed_units() == set()
    assert work.write(run, unit, outcomes)["unit"] == unit.id


@pytest.mark.parametrize(
    ("when", "operation", "skip", "error"),
    [
        ("before", "put", 0, None),
        ("before", "put", 2, KeyboardInterrupt()),
        ("after", "put", 0, ValueError("of ours")),
        ("after", "put", 2, None),
        ("before", "get", 2, None),
        ("after", "get", 0, KeyboardInterrupt()),
    ],
)
def test_whatever_fails_before_the_commit_leaves_no_file(
    work: Any, faulty: Any, when: str, operation: str, skip: int, error: Any
) -> None:
    """Also where the effect took place, and the storage said that it failed."""
    run = work.open()
    unit = work.found.units[0]
    broken = faulty(run, **{when: failing(operation, "status=", skip, error)})
    with pytest.raises(type(error) if error else OutputError, match=r"cannot write .*No space left|of ours|^$"):
        work.write(broken, unit)
    assert files(run) == set()
    assert run.committed_units() == set()
    assert named(work.write(run, unit)) == files(run)


def test_what_reads_back_otherwise_is_not_committed(work: Any, faulty: Any) -> None:
    run = work.open()

    def spoil(name: str, key: str, *data: bytes) -> None:
        if name == "put":
            run.store.put(key, data[0][:-1] + b"?")

    with pytest.raises(OutputError, match="does not read back"):
        work.write(faulty(run, after=spoil), work.found.units[0])
    assert files(run) == set()
    assert run.committed_units() == set()


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError("of ours")])
def test_files_of_a_commit_that_may_still_take_effect_are_kept_until_the_run_is_committed(
    work: Any, faulty: Any, error: Any
) -> None:
    run = work.open()
    unit = work.found.units[0]
    with pytest.raises(type(error) if error else OutcomeUnknownError, match=r"No space left|of ours|^$"):
        work.write(faulty(run, before=failing("create", "_commits/", error=error)), unit)
    left = files(run)
    assert len(left) == 3
    assert run.committed_units() == set()
    record = work.write(run, unit)
    assert files(run) == left | named(record)
    manifest = work.finish(run)
    assert manifest.documents == 12
    assert files(run) == {file["path"] for file in manifest.files}


def test_a_commit_that_took_effect_and_failed_is_found_out(work: Any, faulty: Any) -> None:
    run = work.open()
    record = work.write(faulty(run, after=failing("create", "_commits/")), work.found.units[0])
    assert work.write(run, work.found.units[0]) == record
    assert named(record) == files(run)


def test_a_commit_that_took_effect_unseen_keeps_its_files_and_a_rerun_finds_it(work: Any, faulty: Any) -> None:
    run = work.open()
    unit = work.found.units[0]

    def storm(name: str, key: str = "", *_: Any) -> None:
        if run.committed_units():
            full()

    with pytest.raises(OutcomeUnknownError, match="nothing was deleted"):
        work.write(faulty(run, before=storm, after=storm), unit)
    assert named(work.write(run, unit)) == files(run)


def test_a_loser_who_cannot_read_the_winners_record_deletes_nothing(work: Any, faulty: Any) -> None:
    run = work.open()
    unit = work.found.units[0]

    def meanwhile(name: str, key: str = "", *_: Any) -> None:
        if name == "create" and not run.committed_units():
            work.write(run, unit)
        elif name in ("get", "delete") and run.committed_units():
            full()

    with pytest.raises(OutputError, match=r"cannot read .*No space left"):
        work.write(faulty(run, before=meanwhile), unit)
    record = work.write(run, unit)
    assert len(files(run)) == 2 * len(named(record))


def test_files_that_cannot_be_taken_back_do_not_hide_what_went_wrong(work: Any, faulty: Any) -> None:
    run = work.open()

    def hook(name: str, key: str = "", *_: Any) -> None:
        if name in ("delete", "get") and key.startswith("status="):
            raise OSError(errno.EIO, f"{name} failed")

    with pytest.raises(OutputError, match="get failed"):
        work.write(faulty(run, before=hook), work.found.units[0])


def test_all_files_are_there_and_read_back_before_the_record_that_names_them(work: Any, faulty: Any) -> None:
    run = work.open()
    done: list[tuple[str, str]] = []
    record = work.write(faulty(run, after=lambda name, key, *_: done.append((name, key))), work.found.units[0])
    last = done.index(("create", f"_commits/{work.found.units[0].id}.json"))
    for path in named(record):
        assert done.index(("put", path)) < done.index(("get", path)) < last
    assert {name for name, _ in done[last:]} == {"create"}


def test_nothing_of_a_unit_is_written_into_a_committed_run(work: Any) -> None:
    run = work.open()
    work.finish(run)
    before = files(run)
    unit = work.found.units[1]
    run.store.delete(f"_commits/{unit.id}.json")
    with pytest.raises(OutputError, match=f"committed without unit {unit.id}"):
        work.write(run, unit)
    assert files(run) == before
    assert run.committed_units() == {work.found.units[0].id, work.found.units[2].id}
