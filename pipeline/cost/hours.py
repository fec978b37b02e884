"""Hours: what the tokens take of engines, how many engines a deadline wants, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pipeline.cost.estimate import Estimate, point, weaker
from pipeline.cost.given import Given
from pipeline.cost.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Hours:
    """The work of a job as hours of one engine, and what follows for some number of them. `gpus` are an engine's,
    `start` is what passes before they all work, in hours."""

    work: Estimate
    gpus: float
    given: Given
    start: float = 0.0

    def with_engines(self, engines: int) -> dict[str, Any]:
        """How long so many engines take, all of them busy to the end, and what that costs (None without a price)."""
        price = self.given.price_per_gpu_hour
        hours = self.work.through(lambda work: work / engines + self.start)
        cost = hours.times(point(engines * self.gpus * price, "given")) if price is not None and self.gpus else None
        return {"engines": engines, "hours": hours.to_json(), "cost": cost.to_json() if cost else None}

    def needed(self) -> Estimate | None:
        """Engines that finish before the deadline although the work is more by the reserve; None without one."""
        if self.given.deadline_hours is None:
            return None
        room = self.given.deadline_hours - self.start
        return self.work.through(lambda work: max(1.0, math.ceil(work * (1 + self.given.reserve) / room)))


def hours_of(tokens: Tokens, rate: Estimate, gpus: float, given: Given, start: float = 0.0) -> Hours:
    """The hours of one engine that makes `rate` output tokens a second. Where the prompts' own rate is given, reading
    those that are not cached comes on top. `start`: hours before the engines work."""
    seconds = tokens.outputs.over(rate)
    if given.prompt_tokens_per_second is not None:
        reading = tokens.uncached.over(point(given.prompt_tokens_per_second, "given"))
        seconds = Estimate(
            seconds.value + reading.value,
            seconds.low + reading.low,
            seconds.high + reading.high,
            weaker(seconds.basis, reading.basis),
        )
    return Hours(seconds.over(point(3600.0, "exact")), gpus, given, start)
