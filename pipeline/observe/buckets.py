"""Histograms as a tally keeps them: how many values fell into each of some fixed buckets, and their sum, in integers.

A key of the counter is a bucket's upper bound (inclusive), `inf`, or `sum`. Buckets are apart, so that two counters add
up in any order; `Histogram` has them as Prometheus does, each with all that is below.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DOCUMENT_ANSWERS = (1, 2, 3, 4, 5, 10)
QUEUE_MS = (10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000)
GENERATION_MS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000)
ANSWER_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)

_BEYOND, _SUM = "inf", "sum"


@dataclass(frozen=True, slots=True)
class Histogram:
    """`buckets` are (upper bound, values up to there), the last bound `+Inf`; `sum` is that of all values."""

    buckets: tuple[tuple[str, int], ...]
    sum: float

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.buckets[-1][1]


def put(counts: Counter[str], bounds: Sequence[int], value: int) -> None:
    """Count one value, which is not negative."""
    place = bisect_left(bounds, value)
    counts[str(bounds[place]) if place < len(bounds) else _BEYOND] += 1
    counts[_SUM] += value


def histogram(counts: Mapping[str, int], bounds: Sequence[int], scale: int = 1) -> Histogram:
    """The counter as a histogram; bounds and sum are divided by `scale`."""
    below, buckets = 0, []
    for bound in bounds:
        below += counts.get(str(bound), 0)
        buckets.append((f"{bound / scale:g}", below))
    return Histogram((*buckets, ("+Inf", below + counts.get(_BEYOND, 0))), counts.get(_SUM, 0) / scale)
