"""Processes that can be killed at any moment, and the weather that they live in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.fibers import carry


class DeathError(BaseException):
    """The process is dead. Not an Exception: no code is there that could handle it."""


class Weather:
    """How slow and unreliable everything is, until `calm`: from then on nothing fails any more."""

    def __init__(self, dice: random.Random, loop: asyncio.AbstractEventLoop) -> None:
        self._dice, self.loop = dice, loop
        self.calm = dice.choice([5.0, 20.0, 60.0])
        self._failing = dice.choice([0.0, 0.0, 0.01, 0.05])
        self._slow = dice.choice([0.0, 0.02, 0.1])

    @property
    def rough(self) -> bool:
        return self.loop.time() < self.calm

    def latency(self) -> float:
        """Seconds that one way of a request takes."""
        if self.rough and self._dice.random() < self._slow:
            return self._dice.uniform(0.1, 15.0)
        return self._dice.uniform(0.001, 0.05)

    def late(self) -> float:
        """Seconds after which a request takes effect that nobody waits for."""
        return self._dice.uniform(0.0, 40.0)

    def fails(self) -> bool:
        return self.rough and self._dice.random() < self._failing

    def half(self) -> bool:
        return self._dice.random() < 0.5


class Process:
    """One life of a process. `detached`: others take it for dead, and it does not know."""

    def __init__(self, name: str, weather: Weather, tell: Callable[[str], None]) -> None:
        self.name, self.weather = name, weather
        self.dead = self.detached = False
        self._tell = tell
        self._tasks: set[asyncio.Task[Any]] = set()
        self.death = asyncio.Event()

    def alive(self) -> None:
        """Raises DeathError if it is not."""
        if self.dead:
            raise DeathError

    def told(self, what: str) -> None:
        self._tell(f"{self.name}: {what}")

    def later(self, seconds: float, perform: Callable[[], Any], what: str) -> None:
        """Something that happens whatever becomes of the process."""

        def happen() -> None:
            perform()
            self.told(f"late: {what}")

        self.weather.loop.call_later(seconds, happen)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that dies with the process."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def offload(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """As `asyncio.to_thread`: whoever waits may be cancelled, the thread goes on."""
        self.alive()
        thread = asyncio.get_running_loop().create_task(carry(function, *arguments))
        thread.add_done_callback(_heard)
        return await asyncio.shield(thread)

    def kill(self, why: str) -> None:
        if not self.dead:
            self.told(f"dies: {why}")
            self.dead = True
            self.death.set()
            for task in sorted(self._tasks, key=lambda task: int(task.get_name().partition(" ")[0])):
                task.cancel()


def _heard(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
