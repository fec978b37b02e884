"""Spread and Sample: numbers and texts of a field in bounded memory, the same in whatever order they are added up."""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from dataclasses import dataclass, field

MAX_BINS = 512
"""Different numbers that are kept of a field. Beyond, they are cut to fewer binary digits until they fit."""
MAX_TEXTS = 200
"""Texts that are kept of a field."""
MAX_CHARACTERS = 1000
"""Of each of them."""

_ROUNDING = 1e-6
_DIGITS = (53, 24, 16, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1, 0)


@dataclass
class Spread:
    """How often each number occurs, cut to `digits` significant binary digits (53: as it is, 10: to 0.1 or 0.2 %).

    As few digits are cut as leave MAX_BINS different numbers, so that the order of adding changes nothing."""

    digits: int = _DIGITS[0]
    counts: Counter[float] = field(default_factory=Counter)

    def add(self, value: float) -> None:
        """Count one number. Integers beyond doubles count as the greatest double."""
        self.counts[cut(value, self.digits)] += 1
        self._fit()

    def merge(self, other: Spread) -> Spread:
        """Add another one to this, and return this."""
        self._coarsen(min(self.digits, other.digits))
        self.counts.update(other.at(self.digits))
        self._fit()
        return self

    def at(self, digits: int) -> Counter[float]:
        """The counts with numbers cut to so many digits."""
        found = Counter[float]()
        for value, count in self.counts.items():
            found[cut(value, digits)] += count
        return found

    def quantile(self, share: float) -> float | None:
        """The number that this share of all is not above; None if there is none."""
        left = share * self.counts.total()
        for value in sorted(self.counts):
            left -= self.counts[value]
            if left <= _ROUNDING:
                return value
        return None

    def _fit(self) -> None:
        while len(self.counts) > MAX_BINS:
            self._coarsen(_DIGITS[_DIGITS.index(self.digits) + 1])

    def _coarsen(self, digits: int) -> None:
        if digits < self.digits:
            self.digits, self.counts = digits, self.at(digits)


def cut(value: float, digits: int) -> float:
    """A number with so many significant binary digits, the others dropped."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if digits >= _DIGITS[0] and math.isfinite(value):
        return value
    fraction, exponent = math.frexp(max(-sys.float_info.max, min(sys.float_info.max, value)))
    return math.ldexp(math.trunc(math.ldexp(fraction, digits)), exponent - digits)


@dataclass
class Sample:
    """At most MAX_TEXTS texts: those of the documents with the lowest ranks, which are hashes."""

    kept: list[tuple[int, str]] = field(default_factory=list)

    def add(self, rank: int, text: str) -> None:
        """Keep the text if its rank is among the lowest."""
        item = (-rank, text[:MAX_CHARACTERS])  # a heap's first is the lowest: here the one to go
        if len(self.kept) < MAX_TEXTS:
            heapq.heappush(self.kept, item)
        else:
            heapq.heappushpop(self.kept, item)

    def merge(self, other: Sample) -> Sample:
        """Add another one to this, and return this."""
        for negative, text in other.kept:
            self.add(-negative, text)
        return self

    def texts(self) -> list[str]:
        """The texts, lowest rank first."""
        return [text for _, text in sorted(self.kept, reverse=True)]
