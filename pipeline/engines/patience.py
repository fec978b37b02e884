"""Patience: time in which a request only waits for an engine to be there does not count against its document.

A document has a deadline. What it waits for because an engine died and its successor is starting, or because others go
first at a shared pool, says nothing of the document, and is bounded by whoever makes it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_scope: ContextVar[Counted | None] = ContextVar("scope of a document's request", default=None)


class Counted:
    """The time that a request may take. `waited` are the seconds that do not count."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self.waited = 0.0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The deadline moves on by the time inside."""
        clock, until = asyncio.get_running_loop().time, self._timeout.when()
        began = clock()
        if not self._timeout.expired():
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            passed = clock() - began
            self.waited += passed
            if until is not None and not self._timeout.expired():
                self._timeout.reschedule(until + passed)


@contextmanager
def counted(timeout: asyncio.Timeout) -> Iterator[Counted]:
    """Inside, `uncounted` moves this deadline. The timeout has been entered."""
    scope = Counted(timeout)
    token = _scope.set(scope)
    try:
        yield scope
    finally:
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
