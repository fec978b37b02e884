"""When the `http` engine may send a request: pauses that servers ask for, backoff, a rate per minute.

Sources: Retry-After is of RFC 9110, section 10.2.3 (seconds, or a date); `retry-after-ms` is what OpenAI's and Azure's
servers add. Full jitter: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BACKOFF_SECONDS = 0.5
MOST_BACKOFF = 30.0
SPREAD_SECONDS = 1.0
"""Requests that a server told to wait for the same time do not come back at the same moment."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def is_transient(status: int) -> bool:
    """Whether the same request may be answered later. 4xx say that it will not, but for these; so do 501 and 505."""
    return status in _TRANSIENT or 520 <= status <= 530


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait, None if it says nothing that can be read; `now` is `time.time()`'s.

    `headers` have lower-case names.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.fromtimestamp(now, UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def backoff(tries: int) -> float:
    """Seconds before the next try after so many: any share of a time that doubles."""
    return random.uniform(0.0, min(MOST_BACKOFF, BACKOFF_SECONDS * 2.0 ** min(tries - 1, 30)))


class Pace:
    """Lets requests through one after the other: evenly at a rate, and none before the time that a server named.

    What one request is told holds for all of them: it is the server that has too much to do.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next = float("-inf")
        self._line: asyncio.Lock | None = None
        self._closed_until = float("-inf")
        self.waiting = 0

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    async def turn(self) -> None:
        """Wait until a request may be sent. One whose wait is cancelled takes nobody's turn."""
        if not self._gap:
            while (left := self._closed_until - time.monotonic()) > 0:
                # Those that waited for the same pause come spread out.
                await self.sleep(left + random.uniform(0.0, SPREAD_SECONDS))
            return
        self._line = self._line or asyncio.Lock()
        self.waiting += 1  # in the line, too
        try:
            async with self._line:
                while (left := max(self._next, self._closed_until) - time.monotonic()) > 0:
                    await asyncio.sleep(left)
                self._next = time.monotonic() + self._gap
        finally:
            self.waiting -= 1

    async def sleep(self, seconds: float) -> None:
        """A wait that is meant: `waiting` counts those, so that nobody takes them for an engine that is stuck."""
        self.waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.waiting -= 1
