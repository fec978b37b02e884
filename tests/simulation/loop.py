"""An event loop in which no time passes: when all wait, the clock is set to whatever comes next. What is ready runs in
an order that a seed draws, since no program may count on another."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Coroutine
from typing import Any


class DeadlockError(Exception):
    """Everybody waits, and nothing will ever come."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """The same seed gives the same order, in every process: tasks have numbers, and addresses do not count."""

    def __init__(self, dice: random.Random) -> None:
        self.now = 0.0
        self._dice = dice
        self._tasks = 0
        super().__init__(_Clock(self))
        self.set_task_factory(_numbered)

    def time(self) -> float:
        return self.now

    def number(self) -> int:
        """Of the next task."""
        self._tasks += 1
        return self._tasks

    def _run_once(self) -> None:
        ready: deque[asyncio.Handle] = self._ready
        if len(ready) > 1:
            # The library keeps tasks in sets, whose order is that of addresses.
            handles = sorted(ready, key=_number)
            self._dice.shuffle(handles)
            ready.clear()
            ready.extend(handles)
        super()._run_once()


class _Clock(selectors.SelectSelector):
    """Nothing ever comes from outside."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise DeadlockError
        self._loop.now += max(0.0, timeout)
        return []


def _numbered(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    number = loop.number()
    task = asyncio.Task(work, loop=loop, **options)
    task.set_name(f"{number} {task.get_name()}")
    return task


def _number(handle: asyncio.Handle) -> int:
    arguments = handle._args or ()
    for one in (getattr(handle._callback, "__self__", None), *arguments):
        if isinstance(one, asyncio.Task):
            return int(one.get_name().partition(" ")[0])
    return -1
