"""Blocking code in virtual time: it runs in a thread, but only while the event loop stands still.

A strand runs until it waits; then the loop goes on, and gives it the baton again when its time has come. So nothing
ever runs at the same time, and a seed always gives the same story.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


class DeadError(BaseException):
    """The process is dead: no code of it may do anything any more. No `except Exception` catches it."""


class _Thread:
    """A thread that runs one strand after the other."""

    def __init__(self) -> None:
        self.go, self.back = threading.Lock(), threading.Lock()
        self.go.acquire()
        self.back.acquire()
        self.strand: Strand | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self.go.acquire()
            strand = self.strand
            if strand is None:
                return
            _here.strand = strand
            try:
                strand.result = strand.function(*strand.arguments)
            except BaseException as error:
                strand.error = error
            strand.ended = True
            self.back.release()


_here = threading.local()
_idle: list[_Thread] = []


def current() -> Strand | None:
    """The strand that this thread runs."""
    return getattr(_here, "strand", None)


class Strand:
    """One call of a blocking function. `owner` is the process that it belongs to: anything with `dead`."""

    def __init__(self, owner: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.owner = owner
        self.function, self.arguments = function, arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False
        self._delay = 0.0
        self._thread = _idle.pop() if _idle else _Thread()

    def step(self) -> float | None:
        """In the loop's thread: let it run until it waits, and for how long, or ends (None)."""
        thread = self._thread
        thread.strand = self
        thread.go.release()
        thread.back.acquire()
        if not self.ended:
            return self._delay
        _idle.append(thread)
        return None

    def wait(self, seconds: float) -> None:
        """In its own thread: let others go on. Raises DeadError if its process has died."""
        self._delay = seconds
        self._thread.back.release()
        self._thread.go.acquire()
        if self.owner.dead:
            raise DeadError


async def offload(owner: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """As `asyncio.to_thread`: who waits for it may be cancelled, the function goes on."""
    if owner.dead:
        raise DeadError
    return await asyncio.shield(asyncio.ensure_future(_drive(Strand(owner, function, arguments))))


async def _drive(strand: Strand) -> Any:
    while (delay := strand.step()) is not None:
        await asyncio.sleep(delay)
    if strand.error is not None:
        raise strand.error
    return strand.result
