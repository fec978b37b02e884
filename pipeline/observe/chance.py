"""Chance: how likely two samples of one kind differ as much as two given ones do.

All tests are conditional: given how many documents each side has and how often each value occurs on both together,
documents are dealt to the sides at random. What is computed is exact (Fisher), dealt by a seeded generator
(permutation), or, where counts are large, the asymptotic formula (`tails.py`). When to end dealing: J. Besag,
P. Clifford, Sequential Monte Carlo p-values (1991).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pipeline.observe.tails import chi_square_tail, fisher, kolmogorov_tail, log_choose

MAX_CELLS = 64
"""Values that are told apart in a test: the rarest of unordered ones, neighbours of ordered ones count together."""
MAX_DEALT = 60_000
"""Deals of one test. Where so many cannot reach the goal, because hundreds of tests share alpha, formulas are used."""
EXCEEDED = 20
"""Dealing ends when so many were as different as what is seen: the chance is then known well enough."""
LARGE = 20.0
"""Expected count in each cell from which the asymptotic formula of chi-square is used."""
FAIR = 5.0
"""The same, the rarest values together, where the formula gives less than a thousandth of the goal."""
_ENOUGH = 3
"""Times 1/goal: so many deals, none of them as different, are a p of a third of the goal."""
_BATCH = 1000
_SEED = 20_261
_MOST = 10**9
"""What numpy deals from."""
_ALMOST = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Chance:
    """A test's name, the distance of the samples (a share of documents, 0 to 1), and the chance of one as great."""

    statistic: str
    distance: float
    p: float


def unordered(before: Sequence[int], now: Sequence[int], goal: float) -> Chance:
    """Chi-square, or Fisher's exact test of two values; distance: total variation. `before` and `now` count the same
    values, each of which occurs. `goal` is the p that matters: smaller ones need not be exact. No statistic is named
    where neither formula nor dealing could reach it."""
    distance = distance_of(before, now, is_ordered=False)
    if len(before) == 2 and (exact := fisher(before, now)) is not None:
        return Chance("Fisher's exact test", distance, exact)
    whole, expected = _chi_square(before, now)
    if expected >= LARGE or sum(before) + sum(now) >= _MOST:
        return Chance("chi-square test", distance, whole)
    can_deal = 1 / goal <= MAX_DEALT
    together = _together(before, now, FAIR if can_deal else LARGE)
    tail = _chi_square(*together)[0] if len(together[0]) > 1 else 1.0
    if tail <= goal / 1000 or not can_deal:
        told = len(together[0]) > 1
        return Chance("chi-square test, rare values together" if told else "", distance, tail)
    return Chance("chi-square, permuted", distance, _dealt(*_pooled(before, now), goal, ordered=False))


def ordered(before: Sequence[int], now: Sequence[int], goal: float) -> Chance:
    """Kolmogorov and Smirnov's test of samples on one scale, of which `before` and `now` count the same values in
    ascending order; distance: their D. The asymptotic formula is used where it, which ties make too great, is below a
    tenth of the `goal`, or where dealing could not reach that."""
    distance, size, other = distance_of(before, now, is_ordered=True), sum(before), sum(now)
    tail = kolmogorov_tail(distance * math.sqrt(size * other / (size + other)))
    if tail <= goal / 10 or size + other >= _MOST or 1 / goal > MAX_DEALT:
        return Chance("Kolmogorov-Smirnov test", distance, tail)
    return Chance("Kolmogorov-Smirnov, permuted", distance, _dealt(*_joined(before, now), goal, ordered=True))


def distance_of(before: Sequence[int], now: Sequence[int], *, is_ordered: bool) -> float:
    """Total variation distance, or Kolmogorov and Smirnov's D: the share of documents that have to change."""
    size, other = sum(before), sum(now)
    gaps = [a / size - b / other for a, b in zip(before, now, strict=True)]
    return max(map(abs, itertools.accumulate(gaps))) if is_ordered else sum(map(abs, gaps)) / 2


def least_chance(before: Sequence[int], now: Sequence[int], *, is_ordered: bool) -> float:
    """About the smallest p that any deal of these counts could give: what a test on them can say at best."""
    both = [a + b for a, b in zip(before, now, strict=True)]
    both = both if is_ordered else sorted(both, reverse=True)
    total, size = sum(both), min(sum(before), sum(now))
    best, left = 1.0, 0
    for count in both[:-1]:
        left += count
        for part in (left, total - left):
            inner, outer = min(part, size), max(part, size)
            best = min(best, math.exp(log_choose(outer, inner) - log_choose(total, inner)))
    return best


def detectable(before: int, now: int, goal: float, *, is_ordered: bool) -> float:
    """About the distance that is seen at level `goal` in four of five cases: of two shares about 1/2, which need the
    greatest, or D of values without ties. Among many unordered values a distance has to be greater."""
    if not before or not now:
        return 1.0
    normal = NormalDist()
    critical = math.sqrt(-math.log(goal / 2) / 2) if is_ordered else -normal.inv_cdf(goal / 2) / 2
    return min(1.0, (critical + normal.inv_cdf(0.8) / 2) * math.sqrt(1 / before + 1 / now))


def holm(chances: Sequence[float]) -> list[float]:
    """Each p adjusted for all: where nothing shifted, any is below alpha with a chance of alpha (S. Holm, 1979)."""
    adjusted, highest = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min(1.0, chances[place] * (len(chances) - rank)))
        adjusted[place] = highest
    return adjusted


def tellable(least: Sequence[float], alpha: float) -> int:
    """How many tests share alpha: those that could say anything at their share of it (R. Tarone, 1990)."""
    ascending = sorted(least)
    return next((k for k in range(1, len(least) + 1) if bisect.bisect_right(ascending, alpha / k) <= k), 1)


def _chi_square(before: Sequence[int], now: Sequence[int]) -> tuple[float, float]:
    """The asymptotic chance, and the least count that is expected in a cell."""
    size, total = sum(before), sum(before) + sum(now)
    both = [a + b for a, b in zip(before, now, strict=True)]
    value = sum((a - c * size / total) ** 2 / c for a, c in zip(before, both, strict=True))
    value *= total * total / (size * (total - size))
    return chi_square_tail(value, len(both) - 1), min(both) * min(size, total - size) / total


def _pooled(before: Sequence[int], now: Sequence[int]) -> tuple[list[int], list[int]]:
    """With the rarest values, of both sides together, as one, so that at most MAX_CELLS are left."""
    pairs = sorted(zip(before, now, strict=True), key=sum, reverse=True)
    kept, rest = pairs[: MAX_CELLS - 1], pairs[MAX_CELLS - 1 :]
    if rest:
        kept.append((sum(a for a, _ in rest), sum(b for _, b in rest)))
    return [a for a, _ in kept], [b for _, b in kept]


def _together(before: Sequence[int], now: Sequence[int], least: float) -> tuple[list[int], list[int]]:
    """With rare values together, as rare as they are on both sides, so that at least so many are expected of each."""
    share = min(sum(before), sum(now)) / (sum(before) + sum(now))
    cells = [(0, 0)]
    for a, b in sorted(zip(before, now, strict=True), key=sum):
        if sum(cells[-1]) * share >= least:
            cells.append((0, 0))
        cells[-1] = cells[-1][0] + a, cells[-1][1] + b
    if len(cells) > 1 and sum(cells[-1]) * share < least:
        a, b = cells.pop()
        cells[-1] = cells[-1][0] + a, cells[-1][1] + b
    return [a for a, _ in cells], [b for _, b in cells]


def _joined(before: Sequence[int], now: Sequence[int]) -> tuple[list[int], list[int]]:
    """With neighbours, as both sides together have them, as one, so that at most about MAX_CELLS are left."""
    share = (sum(before) + sum(now)) / MAX_CELLS
    first, second, held = [0], [0], 0
    for a, b in zip(before, now, strict=True):
        if held and held + a + b > share:
            first.append(0)
            second.append(0)
            held = 0
        first[-1] += a
        second[-1] += b
        held += a + b
    return first, second


def _dealt(before: Sequence[int], now: Sequence[int], goal: float, *, ordered: bool) -> float:
    """The share of random deals that differ at least as much as this one, which counts as one of them."""
    exceeded = done = 0
    most = min(MAX_DEALT, math.ceil(_ENOUGH / goal))
    for hits in _deals(before, now, most, ordered):
        for hit in hits:
            done += 1
            exceeded += hit
            if exceeded == EXCEEDED:
                return exceeded / done
    return (exceeded + 1) / (done + 1)


def _deals(before: Sequence[int], now: Sequence[int], most: int, ordered: bool) -> Iterator[list[bool]]:
    """Whether random deals differ at least as much as this one, in batches."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    seen = np.array(before, dtype=np.int64)
    both = seen + np.array(now, dtype=np.int64)
    size = int(seen.sum())
    expected = both * (size / both.sum())

    def differs(some: np.ndarray) -> np.ndarray:
        gap = some - expected
        if ordered:
            greatest: np.ndarray = np.abs(np.cumsum(gap, axis=-1)).max(axis=-1)
            return greatest
        squares: np.ndarray = (gap**2 / both).sum(axis=-1)
        return squares

    limit = differs(seen) * _ALMOST
    batch = 50
    while most > 0:
        dealt = generator.multivariate_hypergeometric(both, size, size=min(batch, most), method="marginals")
        most -= len(dealt)
        yield (differs(dealt) >= limit).tolist()
        batch = min(20 * batch, 10 * _BATCH)
