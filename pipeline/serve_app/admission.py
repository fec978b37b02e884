"""Admission: how many documents are at work at a time, and what those are told for whom there is no place.

A single document gets a free place or none: nothing waits where its caller could do so as well. A batch begins with one
place and takes others as they become free, but all batches together leave a quarter to single documents.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_FIRST_GUESS = 1.0
"""Seconds of a document before any was seen."""
_NEW = 0.1
"""How much a new document counts in the mean."""
_MAX_SECONDS = 600


class FullError(Exception):
    """No place. `retry_after`: whole seconds, at least 1."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"all places are taken; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass
class Admission:
    """`places` documents at a time. Belongs to one event loop."""

    places: int
    clock: Callable[[], float] = time.monotonic
    used: int = 0
    _of_batches: int = 0
    _mean: float = _FIRST_GUESS
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    @property
    def full(self) -> bool:
        """Whether a single document would be turned away now."""
        return self.used >= self.places

    @property
    def waiting(self) -> int:
        """How many documents of batches wait for a place."""
        return len(self._waiting)

    def retry_after(self) -> int:
        """Whole seconds until there should be a place: what is at work and waits, at the pace of the latest."""
        ahead = (self.used + self.waiting) / self.places
        return min(_MAX_SECONDS, max(1, math.ceil(self._mean * ahead)))

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for a single document.

        Raises:
            FullError: all are taken.
        """
        if self.full:
            raise FullError(self.retry_after())
        self.used += 1
        with self._held():
            yield

    def begin_batch(self) -> None:
        """Take the first place of a batch; `held_for_batch` gives it back.

        Raises:
            FullError: no place is free for a batch, or documents of others wait already.
        """
        if self._waiting or not self._room_for_batches:
            raise FullError(self.retry_after())
        self._take_for_batch()

    @contextmanager
    def held_for_batch(self) -> Iterator[None]:
        """A place that was taken by `begin_batch` or `next_of_batch`."""
        try:
            with self._held():
                yield
        finally:
            self._of_batches -= 1
            self._admit()

    async def next_of_batch(self, seconds: float) -> None:
        """Wait for a further place of a batch.

        Raises:
            FullError: there was none within `seconds`.
        """
        if not self._waiting and self._room_for_batches:
            self._take_for_batch()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as error:
            self._give_up(turn)
            if isinstance(error, TimeoutError):
                raise FullError(self.retry_after()) from error
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        """Nobody waits on this turn any more; a place that it was just given goes to the next."""
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            self.used -= 1
            self._of_batches -= 1
            self._admit()

    @property
    def _room_for_batches(self) -> bool:
        return not self.full and self._of_batches < max(1, self.places * 3 // 4)

    def _take_for_batch(self) -> None:
        self.used += 1
        self._of_batches += 1

    @contextmanager
    def _held(self) -> Iterator[None]:
        started = self.clock()
        try:
            yield
            self._mean += _NEW * (self.clock() - started - self._mean)  # not of those that were broken off
        finally:
            self.used -= 1
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._room_for_batches:
            turn = self._waiting.popleft()
            if not turn.done():
                self._take_for_batch()
                turn.set_result(None)
