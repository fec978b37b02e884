"""Estimate: a number, the interval that it should lie in, and where it comes from; how estimates add and multiply."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean, variance
from typing import Any, Literal

Basis = Literal["exact", "sampled", "measured", "given", "assumed"]
BASES: tuple[Basis, ...] = ("exact", "sampled", "measured", "given", "assumed")
"""From the firmest to the weakest. What is made of several is as weak as the weakest of them."""

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class Estimate:
    """`low` to `high` is a 95 % confidence interval where the basis is `sampled` or `measured`, a range that nobody
    vouches for where it is `assumed`, and the value itself where it is `exact` or `given`."""

    value: float
    low: float
    high: float
    basis: Basis

    def times(self, other: Estimate) -> Estimate:
        """The product of two estimates that are not negative, bound by bound: no narrower than it ought to be."""
        weakest = weaker(self.basis, other.basis)
        return Estimate(self.value * other.value, self.low * other.low, self.high * other.high, weakest)

    def over(self, other: Estimate) -> Estimate:
        """The quotient, bound by bound; `other` is positive."""
        weakest = weaker(self.basis, other.basis)
        return Estimate(self.value / other.value, self.low / other.high, self.high / other.low, weakest)

    def through(self, function: Callable[[float], float]) -> Estimate:
        """The value and its bounds through a function that only rises or only falls."""
        low, high = sorted((function(self.low), function(self.high)))
        return Estimate(function(self.value), low, high, self.basis)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def point(value: float, basis: Basis) -> Estimate:
    """A number without an interval."""
    return Estimate(value, value, value, basis)


def weaker(*bases: Basis) -> Basis:
    """The weakest of them."""
    return max(bases, key=BASES.index)


def added(parts: Iterable[Estimate]) -> Estimate:
    """The sum of estimates of different documents. Errors of what was sampled or measured are independent: their
    squares add up. Assumed ranges may all be wrong in the same direction: they add up as they are."""
    given = list(parts)
    value, basis = sum(part.value for part in given), weaker("exact", *(part.basis for part in given))
    below = _together((part.value - part.low, part.basis) for part in given)
    above = _together((part.high - part.value, part.basis) for part in given)
    return Estimate(value, value - below, value + above, basis)


def _together(widths: Iterable[tuple[float, Basis]]) -> float:
    given = list(widths)
    dependent = sum(width for width, basis in given if basis == "assumed")
    return dependent + math.hypot(*(width for width, basis in given if basis != "assumed"))


def total_of(values: Sequence[float], population: int) -> Estimate:
    """The total over `population` documents, of which `values` (not negative) are those of a simple random sample.

    Normal approximation with Student's quantile and the correction for a finite population (Cochran, Sampling
    Techniques, 3rd ed., 2.12 and 2.15); never less than what was seen. Exact where all were seen.
    """
    seen, number = sum(values), len(values)
    if number >= population:
        return point(seen, "exact")
    value = population * fmean(values)
    spread = math.sqrt(variance(values) / number * (1 - number / population)) if number > 1 else math.inf
    half = student(number - 1) * population * spread
    return Estimate(value, max(seen, value - half), value + half, "sampled")


def count_of(hits: int, number: int, population: int) -> Estimate:
    """How many of `population` documents are of a kind of which `hits` are, among `number` of a random sample.

    The interval is that of `share_of`. Exact where all were seen.
    """
    if number >= population:
        return point(hits, "exact")
    share = share_of(hits, number, "sampled")
    low, high = max(hits, share.low * population), min(population - number + hits, share.high * population)
    return Estimate(share.value * population, low, high, "sampled")


def share_of(hits: float, number: int, basis: Basis) -> Estimate:
    """A share with Wilson's score interval, corrected for continuity (Newcombe, Statistics in Medicine 17, 1998, method
    4): without the correction it holds less often than it says where hits are few."""
    share, square = hits / number, _Z**2
    middle, room = 2 * hits + square, 2 * (number + square)
    below = _Z * math.sqrt(max(0.0, square - 2 - 1 / number + 4 * share * (number - hits + 1)))
    above = _Z * math.sqrt(max(0.0, square + 2 - 1 / number + 4 * share * (number - hits - 1)))
    low = max(0.0, min(share, (middle - 1 - below) / room)) if hits else 0.0
    high = min(1.0, max(share, (middle + 1 + above) / room)) if hits < number else 1.0
    return Estimate(share, low, high, basis)


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """The sum of the first numbers over that of the second ones, measured on several units of work (Cochran, 6.4).

    How units differ from each other gives the interval; one unit alone gives none.
    """
    pairs = [pair for pair in pairs if pair[1]]
    above, below = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    value, units = above / below, len(pairs)
    if units < 2:
        return point(value, "measured")
    spread = math.sqrt(sum((one - value * other) ** 2 for one, other in pairs) * units / (units - 1)) / below
    half = student(units - 1) * spread
    return Estimate(value, max(0.0, value - half), value + half, "measured")


def student(freedom: int) -> float:
    """Student's quantile for the 95 % interval: exact for up to two degrees of freedom, above that by the expansion of
    Cornish and Fisher (Abramowitz and Stegun, 26.7.5), which is off by less than 2 %."""
    level = (1 + CONFIDENCE) / 2
    if freedom <= 1:
        return math.tan(math.pi * (level - 0.5))
    if freedom == 2:
        return (2 * level - 1) * math.sqrt(2 / (4 * level * (1 - level)))
    first, second = (_Z**3 + _Z) / 4, (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
    third = (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384
    return _Z + first / freedom + second / freedom**2 + third / freedom**3
