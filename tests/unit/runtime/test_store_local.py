"""What can go wrong on a disk."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.runtime.store import open_store


def test_every_name_that_leads_to_a_file_is_flushed_with_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        flushed.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))
        fsync(descriptor)

    store = open_store(str(tmp_path / "new/out"))
    (tmp_path / "new/out/a").mkdir(parents=True)  # by another process, which may not have flushed it yet
    monkeypatch.setattr(os, "fsync", spy)
    assert store.create("a/b/x.json", b"{}")
    assert {"new", "new/out", "new/out/a"} <= set(flushed[:-2])
    assert flushed[-2].startswith("new/out/a/b/.tmp-")
    assert flushed[-1] == "new/out/a/b"
    flushed.clear()
    store.put("a/b/x.json", b"{}")
    assert [path.startswith("new/out/a/b/.tmp-") for path in flushed] == [True, False]
    flushed.clear()
    store.delete("a/b/x.json")
    assert flushed == ["new/out"]  # the folders left empty are gone
    flushed.clear()
    open_store(str(tmp_path / "p/q")).put("x", b"")
    assert {".", "p"} <= set(flushed)  # those above the root that it made


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_only_file_systems_that_cannot_flush_a_folder_are_excused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fsync = os.fsync

    def fails(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, "no")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    if number == errno.EIO:
        with pytest.raises(OSError, match="no"):
            open_store(str(tmp_path)).put("x", b"")
    else:
        open_store(str(tmp_path)).put("x", b"")


@pytest.mark.parametrize("closed", [".", "out"])
def test_only_folders_above_the_output_may_be_closed_to_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    opened = os.open

    def refuses(path: Any, *options: Any) -> int:
        if Path(path) == tmp_path / closed:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *options)

    monkeypatch.setattr(os, "open", refuses)
    store = open_store(str(tmp_path / "out"))
    if closed == "out":
        with pytest.raises(PermissionError):
            store.put("a/x", b"")
    else:
        store.put("a/x", b"1")
        assert store.get("a/x") == b"1"


@pytest.mark.parametrize(
    ("call", "write"), [("fsync", "put"), ("fsync", "create"), ("replace", "put"), ("link", "create")]
)
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, write: str
) -> None:
    store = open_store(str(tmp_path))
    store.put("other", b"old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        getattr(store, write)("x" if write == "create" else "other", b"new")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert store.get("other") == b"old"


@pytest.mark.parametrize("write", ["put", "create"])
def test_a_write_whose_temporary_or_folder_is_swept_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    store = open_store(str(tmp_path))
    names = {"put": "replace", "create": "link"}
    original, calls = getattr(os, names[write]), []

    def swept(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == 1:
            store.sweep_temporary()
        if len(calls) == 2:
            source.unlink()
            source.parent.rmdir()
        original(source, target)

    monkeypatch.setattr(os, names[write], swept)
    assert getattr(store, write)("a/x", b"whole") is (True if write == "create" else None)
    assert (store.get("a/x"), len(calls)) == (b"whole", 3)


def test_a_link_that_took_effect_before_it_failed_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def repeated(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "as a network file system may say to the second try", target)

    monkeypatch.setattr(os, "link", repeated)
    assert open_store(str(tmp_path)).create("x", b"mine")


def test_a_folder_where_a_file_should_be_is_no_silent_success(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a", b"file")
    for write in (store.put, store.create):
        with pytest.raises(OSError):
            write("a/b", b"")
    assert (store.get("a/b"), store.size("a/b")) == (None, None)
    store.put("c/d", b"")
    assert (store.get("c"), store.size("c")) == (None, None)


def test_leftovers_are_hidden_and_swept_once_they_are_old(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a/x", b"")
    old, young, future, elsewhere = (
        tmp_path / folder / f".tmp-{c * 32}" for folder, c in zip("aaab", "0123", strict=True)
    )
    elsewhere.parent.mkdir()
    for path, age in ((old, 100), (young, 0), (future, -9999), (elsewhere, 100)):
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    assert [entry.key for entry in store.list()] == ["a/x"]
    store.sweep_temporary("a/", older_than=60)
    assert [path.exists() for path in (old, young, future, elsewhere)] == [False, True, True, True]
    store.sweep_temporary()
    assert [path.exists() for path in (young, future, elsewhere)] == [False, False, False]
    assert store.get("a/x") == b""
