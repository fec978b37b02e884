"""Gate: who goes first at an engine that online callers and jobs share.

    online ──▶ any free place, before whatever waits of jobs
    jobs   ──▶ a free place while they hold fewer than their share; one of them at times, whoever else waits
    alone  ──▶ all places: what may kill the engine is put before it with nothing else

The engine has as many places as it decodes requests at a time: nothing queues inside it, where nobody could overtake.
A place that jobs may not take is what an online request finds free at once; beyond that it waits for the next answer.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PATIENCE = 16
"""So many online requests go before a job's that waits while jobs hold no place. Then it is its turn."""


class GateFullError(Exception):
    """As many requests wait as may."""


class Gate:
    """`places` requests at a time, of which jobs hold at most `job_share`, and may hold one. At most `most_waiting`
    wait of each kind. Belongs to one event loop."""

    def __init__(self, places: int, job_share: float, most_waiting: int) -> None:
        self._places = places
        self._free = places
        self._job_places = max(1, math.floor(places * job_share))
        self._jobs_held = 0
        self._passed = 0
        self._most_waiting = most_waiting
        self._online: deque[asyncio.Future[None]] = deque()
        self._jobs: deque[asyncio.Future[None]] = deque()
        self._alone: deque[asyncio.Future[None]] = deque()
        self._closed = False
        """One that is alone is inside."""

    @property
    def held(self) -> int:
        """How many places are held."""
        return self._places - self._free + self._closed

    @property
    def waiting(self) -> int:
        """How many wait, of all kinds."""
        return len(self._online) + len(self._jobs) + len(self._alone)

    @asynccontextmanager
    async def place(self, *, online: bool, wait: bool = True) -> AsyncIterator[None]:
        """Hold a place inside.

        Raises:
            GateFullError: too many of its kind wait already, or it would have to `wait`.
        """
        await self._enter(self._online if online else self._jobs, wait=wait)
        try:
            yield
        finally:
            self._leave(self._online if online else self._jobs)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold all places inside. It waits for those who are there; nobody else comes in meanwhile.

        Raises:
            GateFullError: too many wait for this already.
        """
        await self._enter(self._alone)
        try:
            yield
        finally:
            self._leave(self._alone)

    async def _enter(self, line: deque[asyncio.Future[None]], *, wait: bool = True) -> None:
        if len(line) >= self._most_waiting:
            raise GateFullError(f"{len(line)} requests wait already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        self._admit()
        if not wait and not turn.done():
            line.remove(turn)
            raise GateFullError("no place is free")
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was let in, and cancelled before it noticed
                self._leave(line)
            elif turn in line:
                line.remove(turn)
                self._admit()  # it may have kept others out
            raise

    def _leave(self, line: deque[asyncio.Future[None]]) -> None:
        if line is self._alone:
            self._closed = False
        else:
            self._free += 1
            self._jobs_held -= line is self._jobs
        self._admit()

    def _admit(self) -> None:
        while (line := self._next_line()) is not None:
            turn = line.popleft()
            if turn.cancelled():
                continue
            if line is self._alone:
                self._closed = True
            else:
                self._free -= 1
                self._jobs_held += line is self._jobs
                starving = line is self._online and bool(self._jobs) and not self._jobs_held
                self._passed = self._passed + 1 if starving else 0
            turn.set_result(None)

    def _next_line(self) -> deque[asyncio.Future[None]] | None:
        """Whose first may come in now."""
        if self._closed or (self._alone and self._free < self._places):
            return None
        if self._alone:
            return self._alone
        if not self._free:
            return None
        jobs = bool(self._jobs) and self._jobs_held < self._job_places
        if self._online and not (jobs and self._passed >= PATIENCE):
            return self._online
        return self._jobs if jobs else None
