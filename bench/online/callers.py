"""Callers: each sends a document, waits for its answer, and sends the next."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.documents import SCHEMA, receipts

MAX_WAIT = 1.0
"""Seconds that a refused caller waits at most, whatever it is told: callers who do not listen are the harder test."""


@dataclass
class Result:
    """What came back: code, when it was asked and how long it took (seconds)."""

    answers: list[tuple[int, float, float]] = field(default_factory=list)
    retry_after: list[int] = field(default_factory=list)

    def told(self) -> dict[str, Any]:
        """Counts by code, and of what was accepted the latency in milliseconds."""
        accepted = sorted(took for code, _, took in self.answers if code in (200, 422))
        refused = sorted(took for code, _, took in self.answers if code == 429)
        first, last = min(one[1] for one in self.answers), max(one[1] + one[2] for one in self.answers)
        return {
            "codes": {str(code): count for code, count in sorted(Counter(one[0] for one in self.answers).items())},
            "accepted_per_second": round(len(accepted) / (last - first), 1),
            "accepted_ms": _percentiles(accepted),
            "refused_ms": _percentiles(refused),
            "retry_after_most": max(self.retry_after, default=0),
        }

    def served_again(self, moment: float) -> float:
        """Seconds from a moment to the first answer to a request that was sent after the last failure."""
        failed = max((asked for code, asked, _ in self.answers if code not in (200, 422, 429)), default=moment)
        good = [
            asked + took for code, asked, took in self.answers if code in (200, 422) and asked > max(failed, moment)
        ]
        return min(good) - moment if good else math.inf


@dataclass
class Callers:
    """Over loopback, with the endpoint's token."""

    url: str
    token: str

    async def for_seconds(self, callers: int, seconds: float) -> Result:
        """So many at once, for so long; what is under way then is waited for."""
        until = time.monotonic() + seconds
        return await self.until(callers, lambda: time.monotonic() >= until)

    async def until(self, callers: int, over: Callable[[], bool]) -> Result:
        """So many at once, until it is over."""
        found, numbers = Result(), itertools.count()
        texts = [one.text for one in receipts(200)]
        headers = {"authorization": f"Bearer {self.token}"}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=180, limits=limits) as client:
            await asyncio.gather(*(self._call(client, found, numbers, texts, over) for _ in range(callers)))
        return found

    async def _call(
        self, client: httpx.AsyncClient, found: Result, numbers: Any, texts: list[str], over: Callable[[], bool]
    ) -> None:
        while not over():
            number = next(numbers)
            body = {"text": f"{texts[number % len(texts)]}\nCOPY {number}", "schema": SCHEMA}
            began = time.monotonic()
            answer = await client.post("/v1/extract", json=body)
            found.answers.append((answer.status_code, began, time.monotonic() - began))
            if (wait := answer.headers.get("retry-after")) is not None:
                found.retry_after.append(int(wait))
                await asyncio.sleep(min(MAX_WAIT, int(wait)))


def _percentiles(seconds: list[float]) -> dict[str, float]:
    """Of sorted values, in milliseconds."""
    if not seconds:
        return {}
    places = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(1000 * seconds[math.ceil(share * len(seconds)) - 1], 1) for name, share in places.items()}
