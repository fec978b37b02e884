"""A process that dies, or whose storage fails, at any of its effects.

What a process does to the world it does through its store. So whatever a kill can leave behind is what is left when it
comes before or after one of these calls: they are counted, and one of them goes wrong.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pipeline.runtime.store import Entry, Store

Mode = Literal["die before", "die after", "fail before", "fail after", "fail late"]
MODES: tuple[Mode, ...] = ("die before", "die after", "fail before", "fail after", "fail late")
"""The last one: the call fails, and takes effect when the process has ended. A request was still on its way."""

LOOKS = ("get", "size", "list")
"""These change nothing, so it does not matter whether something goes wrong before or after them."""


class DeathError(BaseException):
    """The process is dead. Not an Exception: no code is there that could handle it."""


class Process:
    """One life: `point` counts the calls of its stores, and at the one given, `mode` happens. After a death every call
    fails, so that what handlers and `finally` blocks would do is not done."""

    def __init__(self, point: int = -1, mode: Mode = "die before") -> None:
        self.calls: list[str] = []
        self.dead = False
        self._point, self._mode = point, mode
        self._late: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def end(self) -> None:
        """It has ended; what it sent still arrives."""
        for perform in self._late:
            perform()

    def call(self, name: str, key: str, perform: Callable[[], Any]) -> Any:
        """Perform a call, unless it goes wrong."""
        with self._lock:
            self._alive()
            mine = len(self.calls) == self._point
            self.calls.append(f"{name} {key}")
            self.dead = mine and self._mode == "die before"
        self._alive()
        if mine and self._mode in ("fail before", "fail late"):
            self._late += [perform] * (self._mode == "fail late")
            raise OSError(errno.EIO, f"{name} failed")
        made = perform()
        if mine and self._mode == "fail after":
            raise OSError(errno.EIO, f"{name} failed")
        self.dead |= mine and self._mode == "die after"
        self._alive()
        return made

    def _alive(self) -> None:
        if self.dead:
            raise DeathError


class PerilousStore:
    """A store as a process sees it that may go wrong."""

    def __init__(self, inner: Store, process: Process) -> None:
        self._inner, self._process = inner, process

    @property
    def where(self) -> str:
        return self._inner.where

    def at(self, prefix: str) -> PerilousStore:
        return PerilousStore(self._inner.at(prefix), self._process)

    def put(self, key: str, data: bytes) -> None:
        self._process.call("put", key, lambda: self._inner.put(key, data))

    def create(self, key: str, data: bytes) -> bool:
        return bool(self._process.call("create", key, lambda: self._inner.create(key, data)))

    def get(self, key: str) -> bytes | None:
        found: bytes | None = self._process.call("get", key, lambda: self._inner.get(key))
        return found

    def size(self, key: str) -> int | None:
        found: int | None = self._process.call("size", key, lambda: self._inner.size(key))
        return found

    def list(self, prefix: str = "") -> Iterator[Entry]:
        yield from self._process.call("list", prefix, lambda: list(self._inner.list(prefix)))

    def folders(self, prefix: str) -> tuple[str, ...]:
        found: tuple[str, ...] = self._process.call("folders", prefix, lambda: self._inner.folders(prefix))
        return found

    def delete(self, key: str) -> None:
        self._process.call("delete", key, lambda: self._inner.delete(key))

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        self._process.call("sweep_temporary", prefix, lambda: self._inner.sweep_temporary(prefix, older_than))
