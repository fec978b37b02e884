"""A unit whose writing fails or comes too late leaves no file, and says what could not be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import OutputError


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("status=*/schema=*/*.parquet"))


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
    assert {str(path.relative_to(run.directory)) for path in files(run.directory)} == {
        file["path"] for file in won[0]["files"]
    }


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def refuse(*_: Any, **__: Any) -> None:
    raise pa.ArrowInvalid("cannot convert")


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (pq, "write_table", full),
        (pq, "write_table", refuse),
        (pq, "ParquetFile", refuse),
        (pa, "schema", refuse),
        (Path, "mkdir", full),
        (os, "fsync", full),
        (os, "link", full),
    ],
)
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_what_fails_is_told_and_leaves_no_file(
    work: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fault: Any, calls: int
) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = work.outcomes(unit)
    real = getattr(owner, name)
    done: list[Any] = []

    def later(*arguments: Any, **values: Any) -> Any:
        if len(done) == (0 if name == "link" else calls):  # a unit has one commit record, and several of the others
            return fault()
        done.append(arguments)
        return real(*arguments, **values)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, later)
        with pytest.raises(OutputError, match=r"cannot write .*(No space left|cannot convert)"):
            work.write(run, unit, outcomes)
    assert files(run.directory) == []
    assert not list((run.directory / "_commits").iterdir())
    assert work.write(run, unit, outcomes)["unit"] == unit.id


def test_files_of_a_record_that_stands_are_kept_although_its_flush_failed(
    work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = work.open()
    unit = work.found.units[0]
    link = os.link

    def link_and_break(*arguments: Any) -> None:
        link(*arguments)
        monkeypatch.setattr(os, "fsync", full)

    monkeypatch.setattr(os, "link", link_and_break)
    with pytest.raises(OutputError):
        work.write(run, unit)
    monkeypatch.undo()
    record = work.write(run, unit)
    assert {str(path.relative_to(run.directory)) for path in files(run.directory)} == {
        file["path"] for file in record["files"]
    }


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whatever_is_raised_leaves_no_file(work: Any, monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    def stop(*_: Any) -> None:
        raise error

    run = work.open()
    monkeypatch.setattr(os, "link", stop)
    with pytest.raises(error):
        work.write(run, work.found.units[0])
    assert files(run.directory) == []


def test_names_are_flushed_before_the_record_that_counts_on_them(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = work.open()
    flushed: list[str] = []
    at_link: list[set[str]] = []
    fsync, link = os.fsync, os.link

    def spy(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def linking(*arguments: Any) -> None:
        at_link.append(set(flushed))
        link(*arguments)

    monkeypatch.setattr(os, "fsync", spy)
    monkeypatch.setattr(os, "link", linking)
    work.write(run, work.found.units[0])
    needed = {folder for path in files(run.directory) for folder in (path, path.parent, path.parent.parent)}
    assert {str(path) for path in [*needed, run.directory]} <= at_link[0]
    assert flushed[-1] == str(run.directory / "_commits")
