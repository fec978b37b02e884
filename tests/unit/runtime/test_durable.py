"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import OutputError
from pipeline.runtime.durable import create_exclusively, json_object, sync_directory, writing


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


def test_a_name_is_flushed_to_disk_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    assert create_exclusively(tmp_path / "x.json", {})
    assert [Path(path).name.startswith(".x.json.") for path in flushed] == [True, False]
    assert flushed[1] == str(tmp_path)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_only_file_systems_that_cannot_flush_a_directory_are_excused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(_: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", fails)
    if number == errno.EIO:
        with pytest.raises(OSError, match="no"):
            sync_directory(tmp_path)
    else:
        sync_directory(tmp_path)


@pytest.mark.parametrize("call", ["fsync", "link"])
def test_an_attempt_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OutputError, match="cannot write it: No space left"), writing("it"):
        create_exclusively(tmp_path / "x.json", {})
    assert list(tmp_path.iterdir()) == []


def test_who_was_swept_away_by_who_came_first_is_simply_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swept(source: Path, target: Path) -> None:
        source.unlink()
        target.write_text("{}")
        raise FileNotFoundError(source)

    monkeypatch.setattr(os, "link", swept)
    assert not create_exclusively(tmp_path / "x.json", {"late": True})


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    assert json_object(tmp_path / "x.json") is None
