"""Gate: who goes first at an engine that online callers and jobs share.

    online ──▶ any free place, before whatever waits of jobs
    jobs   ──▶ a free place while they hold fewer than their share

The engine has as many places as it decodes requests at a time: nothing queues inside it, where nobody could overtake.
A place that jobs may not take is what an online request finds free at once; beyond that it waits for the next answer.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class GateFullError(Exception):
    """As many requests wait as may."""


class Gate:
    """`places` requests at a time, of which jobs hold at most `job_share`, but one at least. At most `most_waiting`
    wait of each kind. Belongs to one event loop."""

    def __init__(self, places: int, job_share: float, most_waiting: int) -> None:
        self._places = places
        self._free = places
        self._free_for_jobs = max(1, math.floor(places * job_share))
        self._most_waiting = most_waiting
        self._online: deque[asyncio.Future[None]] = deque()
        self._jobs: deque[asyncio.Future[None]] = deque()

    @property
    def held(self) -> int:
        """How many places are held."""
        return self._places - self._free

    @property
    def waiting(self) -> int:
        """How many wait, of both kinds."""
        return len(self._online) + len(self._jobs)

    @asynccontextmanager
    async def place(self, *, online: bool) -> AsyncIterator[None]:
        """Hold a place inside.

        Raises:
            GateFullError: too many of its kind wait already.
        """
        await self._enter(online)
        try:
            yield
        finally:
            self._leave(online)

    async def _enter(self, online: bool) -> None:
        line = self._online if online else self._jobs
        if len(line) >= self._most_waiting:
            raise GateFullError(f"{len(line)} requests wait already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was let in, and cancelled before it noticed
                self._leave(online)
            elif turn in line:
                line.remove(turn)
            raise

    def _leave(self, online: bool) -> None:
        self._free += 1
        self._free_for_jobs += not online
        self._admit()

    def _admit(self) -> None:
        while self._free and (line := self._next_line()):
            turn = line.popleft()
            if turn.cancelled():
                continue
            self._free -= 1
            self._free_for_jobs -= line is self._jobs
            turn.set_result(None)

    def _next_line(self) -> deque[asyncio.Future[None]] | None:
        if self._online:
            return self._online
        return self._jobs if self._jobs and self._free_for_jobs > 0 else None
