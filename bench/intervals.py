"""How sure a ratio of two systems is, from rounds in which both ran."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 10_000
SEED = 20_260


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median over rounds of one system's rate over another's, with a 95 % interval."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.rounds} rounds"


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Bootstrap over rounds: a round's two rates stay together, so that what slows a whole round cancels.

    With few rounds the interval can only be as wide as the rounds' own range; it says nothing of other machines.
    """
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    generator = random.Random(SEED)
    medians = sorted(median(generator.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    low, high = medians[round(0.025 * RESAMPLES)], medians[round(0.975 * RESAMPLES) - 1]
    return Ratio(median(ratios), low, high, len(ratios))
