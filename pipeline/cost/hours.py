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
    """The work of a job as hours of one engine, and what follows for some number of them. `gpus` are an engine's."""

    work: Estimate
    gpus: float
    given: Given

    def with_engines(self, engines: int) -> dict[str, Any]:
        """How long so many engines take, all of them busy to the end, and what that costs (None without a price)."""
        start, price = self.given.start_minutes / 60, self.given.price_per_gpu_hour
        bounds = [bound / engines + start for bound in (self.work.value, self.work.low, self.work.high)]
        hours = Estimate(*bounds, basis=self.work.basis)
        cost = hours.times(point(engines * self.gpus * price, "given")) if price is not None and self.gpus else None
        return {"engines": engines, "hours": hours.to_json(), "cost": cost.to_json() if cost else None}

    def needed(self) -> Estimate | None:
        """Engines that finish before the deadline although the work is more by the reserve; None without one."""
        if self.given.deadline_hours is None:
            return None
        room = self.given.deadline_hours - self.given.start_minutes / 60
        bounds = [math.ceil(bound * (1 + self.given.reserve) / room) for bound in _bounds(self.work)]
        return Estimate(*(float(max(1, bound)) for bound in bounds), basis=self.work.basis)


def hours_of(tokens: Tokens, rate: Estimate, gpus: float, given: Given) -> Hours:
    """The hours of one engine that makes `rate` output tokens a second. Where the prompts' own rate is given, reading
    those that are not cached comes on top."""
    seconds = tokens.outputs.over(rate)
    if given.prompt_tokens_per_second is not None:
        reading = tokens.uncached.over(point(given.prompt_tokens_per_second, "given"))
        both = [sum(pair) for pair in zip(_bounds(seconds), _bounds(reading), strict=True)]
        seconds = Estimate(*both, basis=weaker(seconds.basis, reading.basis))
    return Hours(seconds.over(point(3600.0, "exact")), gpus, given)


def _bounds(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high
