"""Patience: time in which a request only waits for an engine does not count against its document.

A document has a deadline. What it waits for because an engine died and its successor is starting, because others go
first at a shared pool, or because a server asked for a pause, says nothing of the document, and is bounded by whoever
makes it wait.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pipeline.engines import Engine
from pipeline.engines.audit import AUDIT_SECONDS
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

AUDIT_ROOM = 1.25 * AUDIT_SECONDS
"""The engine ends an audit that takes too long; until that has come back here, the answer is not given up."""

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


async def in_time(
    engine: Engine, prompt: Prompt, plan: DecodingPlan, sampling: Sampling, deadline: float
) -> tuple[Completion, float]:
    """One request within the document's time (`deadline` of `time.monotonic`), running out of which cancels it; and the
    seconds that do not count: those for which it only waited for an engine to be there, and those of an audit.

    An audit has its own time behind the answer: that it was asked for makes no answer late, and excuses none.
    """
    seconds, began = max(0.0, deadline - time.monotonic()), time.monotonic()
    scope = asyncio.timeout(seconds + AUDIT_ROOM if sampling.audit else seconds)
    failed = Completion("", "error", constrained=False, plan_digest=plan.digest)
    try:
        async with scope:
            with counted(scope) as clock:
                completion = await engine.generate(prompt, plan, sampling)
    except TimeoutError as error:
        if not scope.expired():  # the engine's own, not the document's
            return dataclasses.replace(failed, error="engine_failed", detail=repr(error)), clock.waited
        return dataclasses.replace(failed, error="deadline", detail=_LATE), clock.waited
    uncounted_seconds = clock.waited + completion.audit_seconds
    if sampling.audit and time.monotonic() - began - uncounted_seconds > seconds:
        return dataclasses.replace(failed, error="deadline", detail=_LATE), uncounted_seconds
    return completion, uncounted_seconds


_LATE = "the document's deadline passed while the engine was answering"
