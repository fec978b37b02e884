"""A saved scan is what a scan finds, and is not trusted any longer than the files stay as they were."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.job import InputConfig
from pipeline.runtime.input import InputScan, saved, scan, scan_once
from pipeline.runtime.input.locate import Place, locate
from pipeline.runtime.store import Entry

ROWS = [{"id": f"d{n % 90}", "text": f"text {n}", "s": f"k{n * n % 7}"} for n in range(100)]


class Shelf:
    """A store in memory; `broken` names operations that fail."""

    def __init__(self, *broken: str) -> None:
        self.objects: dict[str, bytes] = {}
        self.broken = broken

    def _try(self, name: str) -> None:
        if name in self.broken:
            raise OSError("no space left on device")

    def put(self, key: str, data: bytes) -> None:
        self._try("put")
        self.objects[key] = data

    def get(self, key: str) -> bytes | None:
        self._try("get")
        return self.objects.get(key)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        self._try("list")
        return (Entry(key, len(data)) for key, data in sorted(self.objects.items()) if key.startswith(prefix))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


@pytest.fixture
def config(tmp_path: Path) -> InputConfig:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return InputConfig(path=str(tmp_path / "a.jsonl"), schema_column="s")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[InputScan, int]]:
    """Calls `scan_once`; what it found and how often it read the input for that."""
    count = 0
    real = saved.scan

    def counted(*arguments: Any) -> InputScan:
        nonlocal count
        count += 1
        return real(*arguments)

    monkeypatch.setattr(saved, "scan", counted)

    def call(config: InputConfig, store: Any, size: int | None = 7) -> tuple[InputScan, int]:
        nonlocal count
        count = 0
        return scan_once(config, size, store), count

    return call


def test_it_is_what_a_scan_finds(config: InputConfig, passes: Any) -> None:
    shelf = Shelf()
    assert passes(config, shelf) == (scan(config, 7), 1)
    assert passes(config, shelf) == (scan(config, 7), 0)
    (key,) = shelf.objects
    assert key.startswith("_scans/") and key.endswith(".json.gz")


def test_each_way_of_taking_has_its_own(config: InputConfig, passes: Any) -> None:
    shelf = Shelf()
    others = [config.model_copy(update=update) for update in ({"limit": 50}, {"columns": ("s",)}, {"id_column": None})]
    for one in (config, *others):
        for size in (None, 7, 1):
            assert passes(one, shelf, size) == (scan(one, size), 1)
    assert all(passes(one, shelf, size)[1] == 0 for one in (config, *others) for size in (None, 7, 1))


def test_files_that_changed_are_read_again_even_with_their_time_set_back(
    tmp_path: Path, config: InputConfig, passes: Any
) -> None:
    shelf, path = Shelf(), tmp_path / "a.jsonl"
    passes(config, shelf)
    before = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("text 5", "TEXT 5"))
    os.utime(path, ns=(before, before))
    assert passes(config, shelf) == (scan(config, 7), 1)
    assert len(shelf.objects) == 1  # nobody asks for the old one again
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.jsonl").write_text(path.read_text())
    assert passes(config.model_copy(update={"path": str(tmp_path / "b" / "a.jsonl")}), shelf)[1] == 1
    assert len(shelf.objects) == 2


def spoilt(data: bytes) -> Iterator[bytes]:
    lines = gzip.decompress(data).split(b"\n")
    head = json.loads(lines[0])
    yield data[:-9]
    yield data[: len(data) // 2] + b"\0" + data[len(data) // 2 + 1 :]
    yield b"{}"
    for change in ({"version": head["version"] + 1}, {"unit": head["unit"][1:]}, {"scan": {}}):
        yield gzip.compress(b"\n".join([json.dumps({**head, **change}).encode(), *lines[1:]]))
    for others in (lines[1:-1], [*lines[1:], lines[1]], [b"[]", *lines[2:]], [b"7", *lines[2:]], [b"[[[", *lines[2:]]):
        yield gzip.compress(b"\n".join([lines[0], *others]))
    yield gzip.compress(b"")
    yield gzip.compress(b"[" * 100_000)


def test_what_is_torn_or_of_another_version_is_made_anew(config: InputConfig, passes: Any) -> None:
    shelf = Shelf()
    whole, _ = passes(config, shelf)
    ((key, data),) = shelf.objects.items()
    for bad in spoilt(data):
        shelf.objects[key] = bad
        assert passes(config, shelf) == (whole, 1)
        assert shelf.objects[key] == data


@pytest.mark.parametrize("broken", ["put", "get", "list"])
def test_a_store_that_fails_costs_another_scan_only(config: InputConfig, passes: Any, broken: str) -> None:
    shelf = Shelf(broken)
    for _ in range(2):
        assert passes(config, shelf)[0] == scan(config, 7)


def test_files_that_tell_no_time_are_not_saved(tmp_path: Path, config: InputConfig, passes: Any) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe(f"/{tmp_path.name}/a.jsonl", (tmp_path / "a.jsonl").read_bytes())
    shelf = Shelf()
    remote = config.model_copy(update={"path": f"fsspec+memory:///{tmp_path.name}"})
    assert [passes(remote, shelf)[1] for _ in range(2)] == [1, 1]
    assert not shelf.objects


def test_files_that_change_while_they_are_read_are_not_saved(
    tmp_path: Path, config: InputConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*arguments: Any) -> InputScan:
        found = scan(*arguments)
        with (tmp_path / "a.jsonl").open("a") as file:
            file.write("\n")
        return found

    monkeypatch.setattr(saved, "scan", meanwhile)
    shelf = Shelf()
    assert scan_once(config, 7, shelf).documents == 100  # type: ignore[arg-type]
    assert not shelf.objects


class Elsewhere(Place):
    """A place on this disk that passes for one that is not."""

    local = False  # type: ignore[assignment]


def test_remote_files_that_were_written_just_now_are_not_saved(
    tmp_path: Path, config: InputConfig, passes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second in which an object was written it may be written again, to the same size and time."""
    shelf = Shelf()
    written = (tmp_path / "a.jsonl").stat().st_mtime_ns
    elsewhere = Elsewhere(*(getattr(locate(config).place, name) for name in ("filesystem", "root", "base")))
    remote = dataclasses.replace(locate(config), place=elsewhere)
    monkeypatch.setattr(saved, "locate", lambda _config: remote)
    for later, kept in ((0.0, 0), (0.9, 0), (3600.0, 1)):
        monkeypatch.setattr(saved, "now", lambda later=later: written + int(later * 1e9))
        passes(config, shelf)
        assert len(shelf.objects) == kept
