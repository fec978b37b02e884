"""Objects in memory, and what lies between them and a process: time, answers that get lost, writes that come late."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.store import Entry
from pipeline.runtime.store.keys import checked_key, checked_prefix
from tests.simulation.strands import DeadError, current

READS = 6
"""Reads are many: so many times as rarely as writes they fail, or else few jobs would come far enough to write."""

FINAL = ("_commits/", "manifest.json", "run.json")
"""What is never replaced nor removed."""


class Objects:
    """The storage itself. It watches over what may never happen to it; `complaints` says what did."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.complaints: list[str] = []
        self.writes = 0
        self._named: set[str] = set()

    def put(self, key: str, data: bytes) -> None:
        self.writes += 1
        if self.content.get(key, data) != data:
            self._guarded(key, "replaced")
        self.content[key] = data

    def create(self, key: str, data: bytes) -> bool:
        self.writes += 1
        if key in self.content:
            return False
        self.content[key] = data
        if "/_commits/" in key:
            self._named |= {self._beside(key, file["path"]) for file in json.loads(data)["files"]}
        return True

    def delete(self, key: str) -> None:
        self.writes += 1
        if key in self.content:
            self._guarded(key, "deleted")
            del self.content[key]

    def _guarded(self, key: str, what: str) -> None:
        if key in self._named or key.partition("/")[2].startswith(FINAL):
            self.complaints.append(f"{key} was {what}")

    @staticmethod
    def _beside(key: str, path: str) -> str:
        return f"{key.partition('/')[0]}/{path}"


@dataclass(frozen=True, slots=True)
class Wire:
    """How storage is reached. `seconds`: the mean time each way. Of `faults` of all calls the caller gets an OSError:
    of writes, one third of them has no effect, one third has, and one third has it up to `late` seconds later. Of
    writes that a death cuts off, half still take effect."""

    seconds: float
    faults: float
    late: float


class SimulatedStore:
    """A store as one process sees it. `later` does something after a while, whoever has died by then."""

    def __init__(
        self,
        objects: Objects,
        wire: Callable[[], Wire],
        dice: random.Random,
        later: Callable[[float, Callable[[], Any]], None],
        prefix: str = "",
    ) -> None:
        self._objects, self._wire, self._dice, self._later, self._prefix = objects, wire, dice, later, prefix

    @property
    def where(self) -> str:
        return ("memory/" + self._prefix).rstrip("/")

    def at(self, prefix: str) -> SimulatedStore:
        below = f"{self._prefix}{checked_key(prefix)}/"
        return SimulatedStore(self._objects, self._wire, self._dice, self._later, below)

    def put(self, key: str, data: bytes) -> None:
        self._write(lambda: self._objects.put(self._prefix + checked_key(key), data))

    def create(self, key: str, data: bytes) -> bool:
        return bool(self._write(lambda: self._objects.create(self._prefix + checked_key(key), data)))

    def delete(self, key: str) -> None:
        self._write(lambda: self._objects.delete(self._prefix + checked_key(key)))

    def get(self, key: str) -> bytes | None:
        self._read()
        return self._objects.content.get(self._prefix + checked_key(key))

    def size(self, key: str) -> int | None:
        data = self.get(key)
        return None if data is None else len(data)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        self._read()
        start = self._prefix + checked_prefix(prefix)
        found = [(key, len(data)) for key, data in self._objects.content.items() if key.startswith(start)]
        return (Entry(key.removeprefix(self._prefix), size) for key, size in sorted(found))

    def folders(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted({entry.key.partition("/")[0] for entry in self.list(prefix) if "/" in entry.key}))

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None: ...

    def _read(self) -> None:
        """A round trip, at whose end the state is read."""
        strand = current()
        if strand is None:  # a thread that `gather` and its like made: all of them read at the same instant
            return
        if strand.owner.dead:
            raise DeadError
        wire = self._wire()
        strand.wait(self._time(wire))
        if self._dice.random() < wire.faults / READS:
            raise OSError("the storage does not answer a reader")

    def _write(self, perform: Callable[[], Any]) -> Any:
        strand, wire = current(), self._wire()
        assert strand is not None
        if strand.owner.dead:
            raise DeadError
        fault = self._dice.random() < wire.faults and self._dice.choice(["refused", "lost", "late"])
        try:
            strand.wait(self._time(wire))
        except DeadError:
            if self._dice.random() < 0.5:
                self._later(self._dice.random() * wire.late, perform)
            raise
        if fault == "refused":
            raise OSError("the storage refuses to write")
        if fault == "late":
            self._later(self._dice.random() * wire.late, perform)
            raise OSError("the storage does not answer a writer, and will write")
        made = perform()
        strand.wait(self._time(wire))
        if fault == "lost":
            raise OSError("the storage wrote, and its answer was lost")
        return made

    def _time(self, wire: Wire) -> float:
        return self._dice.expovariate(1 / wire.seconds)
