"""Blocking code inside a simulation: it runs in a thread that only runs while the loop waits for it, so that it can stop
in the middle of a call while virtual time passes, and nothing depends on how the system switches threads."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

_here = threading.local()
_idle: list[_Carrier] = []


def pause(seconds: float) -> bool:
    """Let virtual time pass for the blocking code that calls this; False where it does not run in a fiber."""
    fiber: _Fiber | None = getattr(_here, "fiber", None)
    if fiber is not None:
        fiber.pause(seconds)
    return fiber is not None


async def carry(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run blocking code to its end."""
    fiber = _Fiber(function, arguments)
    carrier = _idle.pop() if _idle else _Carrier()
    carrier.inbox.put(fiber)
    fiber.resume()
    while not fiber.done:
        await asyncio.sleep(fiber.wants)
        fiber.resume()
    _idle.append(carrier)
    if fiber.error is not None:
        raise fiber.error
    return fiber.result


class _Fiber:
    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self.wants = 0.0
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def resume(self) -> None:
        """Let it run until it pauses or ends."""
        self._go.release()
        self._back.acquire()

    def pause(self, seconds: float) -> None:
        """From inside."""
        self.wants = seconds
        self._back.release()
        self._go.acquire()

    def run(self) -> None:
        self._go.acquire()
        _here.fiber = self
        try:
            self.result = self._function(*self._arguments)
        except BaseException as error:  # handed to whoever waits
            self.error = error
        _here.fiber = None
        self.done = True
        self._back.release()


class _Carrier:
    """A thread that runs one fiber after the other."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[_Fiber] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="fibers", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.inbox.get().run()
