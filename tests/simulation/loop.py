"""An event loop whose time jumps to the next timer, and whose ready callbacks run in an order drawn by a seed."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
from collections import deque
from typing import Any


class DeadlockError(Exception):
    """Everybody waits, and nothing is left that could wake anyone."""


class TooLongError(Exception):
    """The story goes on and on."""


class VirtualLoop(asyncio.BaseEventLoop):
    """`time()` is virtual seconds since the start. No sockets, no signals, no other threads: blocking code has the
    baton of `strands.py`, so `call_soon_threadsafe` is never needed."""

    def __init__(self, dice: random.Random, most_seconds: float, most_callbacks: int) -> None:
        super().__init__()
        self._now = 0.0
        self._dice = dice
        self._most_seconds = most_seconds
        self._left = most_callbacks
        self._numbers = 0
        # The base class's own queues, which its other methods fill.
        self._timers: list[Any] = vars(self)["_scheduled"]
        self._handles: deque[Any] = vars(self)["_ready"]
        self.set_task_factory(_numbered)

    def time(self) -> float:
        return self._now

    def number(self) -> int:
        """Of the next task."""
        self._numbers += 1
        return self._numbers

    def _run_once(self) -> None:
        timers, ready = self._timers, self._handles
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)._scheduled = False
        if not ready:
            if not timers:
                raise DeadlockError("nobody can go on")
            self._now = max(self._now, timers[0]._when)
            if self._now > self._most_seconds:
                raise TooLongError(f"not at an end after {self._now:.0f} virtual seconds")
        while timers and timers[0]._when <= self._now:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        handles = list(ready)
        ready.clear()
        self._left -= len(handles)
        if self._left < 0:
            raise TooLongError(f"too many callbacks; it is {self._now:.0f} virtual seconds")
        if len(handles) > 1:
            handles.sort(key=_number)  # asyncio keeps tasks in sets, whose order is that of addresses
            self._dice.shuffle(handles)
        for handle in handles:
            if not handle._cancelled:
                handle._run()

    def end(self) -> None:
        """Cancel whatever is left, so that nothing of it is heard of when it is collected."""
        self._left = 10_000
        left = asyncio.all_tasks(self)
        for task in left:
            task.cancel()
        if left:
            with contextlib.suppress(Exception):
                self.run_until_complete(asyncio.wait(left, timeout=100.0))
        self.close()

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...


class _Task(asyncio.Task[Any]):
    number = 0


def _numbered(loop: Any, work: Any, **options: Any) -> asyncio.Task[Any]:
    task = _Task(work, loop=loop, **options)
    task.number = loop.number()
    return task


def _number(handle: Any) -> int:
    for one in (getattr(handle._callback, "__self__", None), *(handle._args or ())):
        if isinstance(one, _Task):
            return one.number
    return -1
