"""Patience: time in which a request only waits for an engine does not count against its document.

A document has a deadline. What it waits for because an engine died and its successor is starting, because others go
first at a shared pool, or because a server asked for a pause, says nothing of the document, and is bounded by whoever
makes it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_scope: ContextVar[Counted | None] = ContextVar("scope of a document's request", default=None)


class Counted:
    """The time that a request may take. `waited` are the seconds that do not count. Waits may nest and overlap."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._until = timeout.when()
        self._depth = 0
        self._began = 0.0
        self._over = False
        self.waited = 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, as if no wait were on; None if there is none."""
        if self._until is None:
            return None
        now = self._began if self._depth else asyncio.get_running_loop().time()
        return max(0.0, self._until + self.waited - now)

    def count(self, seconds: float) -> None:
        """Of the wait that is on, so many seconds do count."""
        self._began += seconds

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The deadline moves on by the time inside."""
        clock = asyncio.get_running_loop().time
        if not self._depth:
            self._began = clock()
        self._depth += 1
        self._move(None)
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.waited += max(0.0, clock() - self._began)
                self._move(None if self._until is None else self._until + self.waited)

    def end(self) -> None:
        """The request has ended, though something that it began may not know yet."""
        self._over = True

    def _move(self, until: float | None) -> None:
        if not self._over and not self._timeout.expired():
            self._timeout.reschedule(until)


@contextmanager
def counted(timeout: asyncio.Timeout) -> Iterator[Counted]:
    """Inside, `uncounted` moves this deadline. The timeout has been entered."""
    scope = Counted(timeout)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        scope.end()
        _scope.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Time inside does not count against the document whose request this is, if it is one's."""
    scope = _scope.get()
    if scope is None:
        yield
    else:
        with scope.paused():
            yield


def seconds_left() -> float | None:
    """Of the document whose request this is; None if it is nobody's, or has no deadline."""
    scope = _scope.get()
    return None if scope is None else scope.left


def count(seconds: float) -> None:
    """Within `uncounted`: so many seconds of it were spent on the document after all."""
    scope = _scope.get()
    if scope is not None:
        scope.count(seconds)
