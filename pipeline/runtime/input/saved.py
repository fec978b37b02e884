"""The scan of an input, saved beside the runs: a resumed run does not read an input again that is as it was.

An object is gzip'd JSON lines: what was found, then each unit's values without those that all units share. Units are
what memory and time depend on, not documents.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from time import time_ns
from typing import Any

from pipeline import __version__
from pipeline.job import InputConfig
from pipeline.runtime.input.locate import InputFile, Located, Place, locate
from pipeline.runtime.input.scan import scan
from pipeline.runtime.input.units import InputScan, Unit
from pipeline.runtime.store import Store
from pipeline.schema.fingerprint import digest

SCANS = "_scans"
VERSION = 2
"""Of how an input is cut. Other members of units or scans need no new one: objects name theirs."""

RACY = 5_000_000_000
"""Nanoseconds. Object stores tell whole seconds, by a clock of their own."""

now = time_ns
_SHARED = ("id", "format", "base")
_UNIT = tuple(member.name for member in fields(Unit) if member.name not in _SHARED)
_SCAN = tuple(member.name for member in fields(InputScan) if member.name != "units")
_LISTS = ("paths", "duplicates")


def scan_once(config: InputConfig, unit_documents: int | None, store: Store) -> InputScan:
    """`scan`, or what it found before in the same files: same paths, sizes and times. `store` is the job's output.

    Each unit is checked again when it is read, so files that changed without a sign stop the job. That a scan cannot
    be saved or read back costs another one, and no more.

    Raises:
        InputError: as `scan`.
    """
    located = locate(config)
    key = key_of(located, config, unit_documents)
    if key is None:
        return scan(config, unit_documents)
    if (found := load(store, key, located)) is not None:
        return found
    found = scan(config, unit_documents)
    if key_of(locate(config), config, unit_documents) == key:  # nothing was written while it was read
        save(store, key, found)
    return found


def save(store: Store, key: str, found: InputScan) -> None:
    """Keep a scan, in place of those of the same input as it was before."""
    with contextlib.suppress(OSError):
        store.put(key, gzip.compress(b"\n".join(_lines(found)), compresslevel=6, mtime=0))
        for entry in list(store.list(key.rpartition("-")[0] + "-")):
            if entry.key != key:
                store.delete(entry.key)


def load(store: Store, key: str, located: Located) -> InputScan | None:
    """The scan of this key; None if there is none, it is torn, or of another version."""
    try:
        data = store.get(key)
        return None if data is None else _found(gzip.decompress(data).split(b"\n"), located)
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None


def key_of(located: Located, config: InputConfig, unit_documents: int | None) -> str | None:
    """Where a scan is kept: which input and how it is cut, then the state that its files are in. None if that state
    does not say enough (`settled`)."""
    if not settled(located):
        return None
    place = located.place
    cut = [VERSION, __version__, config.model_dump(mode="json", exclude={"path"}), unit_documents]
    where = [str(place.filesystem.type_name), place.root, place.base, located.format]
    states = [[file.path, file.size, file.mtime, _changed(file, place)] for file in located.files]
    return f"{SCANS}/{digest([cut, where])}-{digest(states)}.json.gz"


def settled(located: Located) -> bool:
    """Whether the files tell when they were written, and it is so long ago that they can no longer be written without a
    sign: in the same second, to the same size (git calls such a file "racily clean")."""
    times = [file.mtime for file in located.files]
    lately = not located.place.local and max(times, default=0) > now() - RACY
    return min(times, default=0) >= 0 and not lately


def _changed(file: InputFile, place: Place) -> int:
    """When a local file was last changed, which no tool sets back as copying tools do with the time that is shown."""
    try:
        return os.stat(place.full(file.path)).st_ctime_ns if place.local else 0
    except OSError:  # it has just gone, which whoever reads it will tell
        return -1


def _lines(found: InputScan) -> Iterator[bytes]:
    about = {name: getattr(found, name) for name in _SCAN}
    yield _json({"version": VERSION, "unit": _UNIT, "units": len(found.units), "scan": about})
    for unit in found.units:
        yield _json([getattr(unit, name) for name in _UNIT])


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _found(lines: Sequence[bytes], located: Located) -> InputScan | None:
    head = json.loads(lines[0])
    about = head["scan"]
    if (head["version"], head["unit"], head["units"], [*about]) != (VERSION, [*_UNIT], len(lines) - 1, [*_SCAN]):
        return None
    units = []
    for number, line in enumerate(lines[1:]):
        values = dict(zip(_UNIT, json.loads(line), strict=True))
        values |= {name: tuple(values[name]) for name in _LISTS}
        units.append(Unit(id=f"{number:06d}", format=located.format, base=located.place.base, **values))
    found = InputScan(tuple(units), **{**about, "duplicate_examples": tuple(about["duplicate_examples"])})
    return found if found.documents == sum(unit.rows for unit in units) else None
