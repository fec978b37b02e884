"""Side rates: rates of runs over the same documents, and their differences, each with its interval.

Resamples weigh a document the same in every run (`intervals.Bootstrap`), so intervals of differences are of pairs.
Percentile intervals of few documents are too narrow: theirs are expanded as T. Hesterberg (2015, section 4.1) does.
Differences of yes and no have the exact bounds of `bounds.lowest` instead, which hold for any number of documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pipeline.evaluate.bounds import lowest
from pipeline.evaluate.intervals import FEW, LEVEL, RESAMPLES, Bootstrap, Floats, Rate, Slice, ratio, wilson
from pipeline.evaluate.sides import Part


@dataclass(frozen=True, slots=True)
class Gap:
    """How much more one run has of something than another over the same documents: a difference, or for amounts a
    factor. None: there is nothing to compare, or nothing to make an interval of."""

    value: float | None
    low: float | None
    high: float | None

    def excludes(self, value: float) -> bool:
        """Whether the interval lies all on one side of a value."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high


NOTHING = Gap(None, None, None)


class SideRates:
    """Adds up measures of documents, run by run. `level` is that of the intervals of differences."""

    def __init__(self, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0) -> None:
        self.level = level
        self._boot = Bootstrap(resamples, seed)
        self._shares: dict[Slice, dict[str, float]] = {}

    def add(self, key: str, parts: Mapping[Slice, Part]) -> None:
        """Add one document: by run and measure, a part and its whole."""
        values = {}
        for where, (count, of) in parts.items():
            values[where, "count"], values[where, "of"] = count, of
            if of:
                self._shares.setdefault(where, {})[key] = count / of
        self._boot.add(key, values)

    def documents(self, where: Slice) -> int:
        """How many documents have a measure."""
        return len(self._shares.get(where, ()))

    def rate(self, where: Slice) -> Rate:
        """A share over all documents that have it."""
        count, of = self._sums(where)
        shares = self._shares.get(where, {}).values()
        if of[0] == len(shares) and all(share in (0.0, 1.0) for share in shares):
            return wilson(float(count[0]), float(of[0]))
        return ratio(count, of, self.documents(where))

    def mean(self, where: Slice) -> Gap:
        """An amount of a document, with its interval; that is None where all documents have the same."""
        return self._spread(_divided(*self._sums(where)), self.documents(where))

    def difference(self, one: Slice, other: Slice) -> Gap:
        """The share of `other` less that of `one`."""
        pairs = self._pairs(one, other)
        if not pairs:
            return NOTHING
        moved = [b - a for a, b in pairs]
        up, down = sum(d for d in moved if d > 0), sum(-d for d in moved if d < 0)
        value = _divided(*self._sums(other)) - _divided(*self._sums(one))
        exact = self._exact(len(pairs), math.ceil(up), math.ceil(down), float(value[0]))
        if all(share in (0.0, 1.0) for pair in pairs for share in pair):
            return exact
        found = self._spread(value, len(pairs))
        if found.low is None or found.high is None:
            return exact
        if len(pairs) >= FEW or exact.low is None or exact.high is None:
            return found
        return Gap(found.value, min(found.low, exact.low), max(found.high, exact.high))

    def factor(self, one: Slice, other: Slice) -> Gap:
        """How many times the amount of `one` that of `other` is."""
        pairs = self._pairs(one, other)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._spread(_divided(*self._sums(other)) / _divided(*self._sums(one)), len(pairs))

    def _pairs(self, one: Slice, other: Slice) -> list[tuple[float, float]]:
        ours, theirs = self._shares.get(one, {}), self._shares.get(other, {})
        return [(share, theirs[key]) for key, share in ours.items() if key in theirs]

    def _sums(self, where: Slice) -> tuple[Floats, Floats]:
        return self._boot.sums((where, "count")), self._boot.sums((where, "of"))

    def _exact(self, documents: int, up: int, down: int, value: float) -> Gap:
        """As if each document's difference were all or nothing."""
        alpha = (1 - self.level) / 2
        low, high = lowest(documents, up, down, alpha), -lowest(documents, down, up, alpha)
        return Gap(value, min(low, value), max(high, value))

    def _spread(self, values: Floats, documents: int) -> Gap:
        """A statistic of all documents, followed by that of each resample."""
        whole, drawn = float(values[0]), values[1:][np.isfinite(values[1:])]
        if not math.isfinite(whole):
            return NOTHING
        if documents < 2 or not len(drawn) or drawn.min() == drawn.max():
            return Gap(whole, None, None)
        tail = expanded_tail(1 - self.level, documents)
        low, high = np.quantile(drawn, [tail, 1 - tail])
        return Gap(whole, min(float(low), whole), max(float(high), whole))


def expanded_tail(alpha: float, documents: int) -> float:
    """The share of resamples to leave out on either side, less than alpha / 2 for few documents: what a normal
    distribution has beyond the quantile of Student's t, widened by √(n / (n − 1))."""
    normal, free = NormalDist(), max(1, documents - 1)
    z = normal.inv_cdf(1 - alpha / 2)
    # Abramowitz and Stegun, 26.7.5: Student's quantile from the normal one.
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return normal.cdf(-t * math.sqrt(documents / free))


def _divided(count: Floats, of: Floats) -> Floats:
    return np.divide(count, of, out=np.full_like(count, np.nan), where=of != 0)
