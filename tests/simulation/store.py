"""Storage that is slow, fails before or after the effect, or has an effect when nobody waits for it any more. It also
watches: what is published must stay as it is, and what published records name must be there."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.runtime.store import Entry
from tests.crash.memory import MemoryStore
from tests.simulation.fibers import pause
from tests.simulation.process import DeathError, Process


class Archive(MemoryStore):
    """What is stored. `violations` is what should never have happened to it."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self.violations: list[str] = []
        self.created: dict[str, int] = {}
        self.effects = 0
        self._named: set[str] = set()

    def put(self, key: str, data: bytes) -> None:
        self.effects += 1
        if _is_published(key) or key in self.created:
            self.violations.append(f"put {key}, which is created exclusively")
        if key.rpartition("/")[2].endswith(".parquet") and key in self.objects:
            self.violations.append(f"put {key} twice")
        super().put(key, data)

    def create(self, key: str, data: bytes) -> bool:
        self.effects += 1
        made = super().create(key, data)
        if made and _is_published(key):
            self.created[key] = self.created.get(key, 0) + 1
            run = key.partition("/")[0]
            paths = [f"{run}/{file['path']}" for file in json.loads(data)["files"]]
            self._named.update(paths)
            self.violations += [f"{key} names {path}, which is not there" for path in paths if path not in self.objects]
        return made

    def delete(self, key: str) -> None:
        self.effects += key in self.objects
        if _is_published(key) or key in self._named:
            self.violations.append(f"delete {key}")
        super().delete(key)


def _is_published(key: str) -> bool:
    return key.endswith("/manifest.json") or "/_commits/" in key


class SimStore:
    """The archive as a process sees it. A call without a fiber (from a thread pool) is at once, and never fails."""

    def __init__(self, archive: Archive, process: Process, root: str = "") -> None:
        self._archive, self._process, self._root = archive, process, root

    @property
    def where(self) -> str:
        return f"memory/{self._root}".rstrip("/")

    def at(self, prefix: str) -> SimStore:
        return SimStore(self._archive, self._process, f"{self._root}{prefix}/")

    def put(self, key: str, data: bytes) -> None:
        self._effect(f"put {key}", lambda: self._archive.put(self._root + key, data))

    def create(self, key: str, data: bytes) -> bool:
        return bool(self._effect(f"create {key}", lambda: self._archive.create(self._root + key, data)))

    def delete(self, key: str) -> None:
        self._effect(f"delete {key}", lambda: self._archive.delete(self._root + key))

    def get(self, key: str) -> bytes | None:
        found: bytes | None = self._look(f"get {key}", lambda: self._archive.get(self._root + key))
        return found

    def size(self, key: str) -> int | None:
        found: int | None = self._look(f"size {key}", lambda: self._archive.size(self._root + key))
        return found

    def list(self, prefix: str = "") -> Iterator[Entry]:
        found = self._look(f"list {prefix}", lambda: list(self._archive.list(self._root + prefix)))
        for entry in found:
            yield Entry(entry.key[len(self._root) :], entry.size)

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        self._process.alive()

    def _look(self, what: str, perform: Callable[[], Any]) -> Any:
        self._process.alive()
        weather = self._process.weather
        if pause(weather.latency()):
            self._process.alive()
            if weather.fails():
                raise OSError(errno.EIO, f"{what}: no answer")
        return perform()

    def _effect(self, what: str, perform: Callable[[], Any]) -> Any:
        process, weather = self._process, self._process.weather
        process.alive()
        if not pause(weather.latency()):
            return perform()
        if process.dead:
            if weather.half():  # it was on its way
                pause(weather.late())
                perform()
                process.told(f"late: {what}")
            raise DeathError
        if weather.fails():
            if weather.half():
                process.later(weather.late(), perform, what)
            raise OSError(errno.EIO, f"{what}: no answer")
        made = perform()
        process.told(what)
        fails = weather.fails()
        pause(weather.latency())
        process.alive()
        if fails:
            raise OSError(errno.EIO, f"{what}: the answer was lost")
        return made
