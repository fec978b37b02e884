"""Chance: how likely two samples of one kind differ as much as two given ones do.

All tests are conditional: given how many documents each side has and how often each value occurs on both together,
documents are dealt to the sides at random. What is computed is exact (Fisher), dealt by a seeded generator
(permutation), or, where counts are large, the asymptotic formula. Formulas: A. Agresti, Categorical Data Analysis,
3.2 and 3.5; Kolmogorov's distribution as in W. Press et al., Numerical Recipes, 14.3; when to end dealing: J. Besag,
P. Clifford, Sequential Monte Carlo p-values (1991).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

MAX_CELLS = 64
"""Values that are told apart in a test: the rarest of unordered ones, neighbours of ordered ones count together."""
MAX_DEALT = 200_000
EXCEEDED = 20
"""Dealing ends when so many were as different as what is seen: the chance is then known well enough."""
LARGE = 20.0
"""Expected count in each cell from which the asymptotic formula of chi-square is used."""
FAIR = 5.0
"""The same where the formula gives less than a thousandth of the goal."""
MAX_SUPPORT = 5000
"""Deals that Fisher's test adds up."""
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
    values, each of which occurs. `goal` is the p that matters: smaller ones need not be exact."""
    distance = distance_of(before, now, is_ordered=False)
    if len(before) == 2 and (exact := _fisher(before, now)) is not None:
        return Chance("Fisher's exact test", distance, exact)
    before, now = _pooled(before, now)
    tail, expected = _chi_square(before, now)
    if expected >= LARGE or (expected >= FAIR and tail <= goal / 1000) or sum(before) + sum(now) >= _MOST:
        return Chance("chi-square test", distance, tail)
    return Chance("chi-square, permuted", distance, _dealt(before, now, goal, ordered=False))


def ordered(before: Sequence[int], now: Sequence[int], goal: float) -> Chance:
    """Kolmogorov and Smirnov's test of samples on one scale, of which `before` and `now` count the same values in
    ascending order; distance: their D. The asymptotic formula is used where it, which ties make too great, is below a
    tenth of the `goal`."""
    distance, size, other = distance_of(before, now, is_ordered=True), sum(before), sum(now)
    tail = kolmogorov_tail(distance * math.sqrt(size * other / (size + other)))
    if tail <= goal / 10 or size + other >= _MOST:
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
            best = min(best, math.exp(_log_choose(outer, inner) - _log_choose(total, inner)))
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
    return next((k for k in range(1, len(least) + 1) if sum(one <= alpha / k for one in least) <= k), 1)


def chi_square_tail(value: float, freedom: int) -> float:
    """The chance of a chi-square of at least `value`: the regularised upper incomplete gamma function."""
    a, x = freedom / 2, value / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - total * scale)
    b, c = x + 1 - a, 1e300
    d = 1 / b
    fraction = d
    for i in range(1, 1000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b or 1e-300)
        c = b + step / c or 1e-300
        fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return min(1.0, scale * fraction)


def kolmogorov_tail(value: float) -> float:
    """The chance of D times sqrt(nm/(n+m)) of at least `value`, for many values without ties."""
    if value < 0.2:
        return 1.0
    terms = ((2.0 if k % 2 else -2.0) * math.exp(-2 * (k * value) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, sum(terms)))


def _chi_square(before: Sequence[int], now: Sequence[int]) -> tuple[float, float]:
    """The asymptotic chance, and the least count that is expected in a cell."""
    size, total = sum(before), sum(before) + sum(now)
    both = [a + b for a, b in zip(before, now, strict=True)]
    value = sum((a - c * size / total) ** 2 / c for a, c in zip(before, both, strict=True))
    value *= total * total / (size * (total - size))
    return chi_square_tail(value, len(both) - 1), min(both) * min(size, total - size) / total


def _fisher(before: Sequence[int], now: Sequence[int]) -> float | None:
    """Two-sided: the chance of all deals that are no likelier than this one. None if there are too many."""
    row, column, total = sum(before), before[0] + now[0], sum(before) + sum(now)
    low, high = max(0, row + column - total), min(row, column)
    if high - low > MAX_SUPPORT:
        return None
    whole = _log_choose(total, row)
    logs = [_log_choose(column, x) + _log_choose(total - column, row - x) - whole for x in range(low, high + 1)]
    limit = logs[before[0] - low] + 1e-7
    return min(1.0, math.fsum(math.exp(one) for one in logs if one <= limit))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _pooled(before: Sequence[int], now: Sequence[int]) -> tuple[list[int], list[int]]:
    """With the rarest values, of both sides together, as one, so that at most MAX_CELLS are left."""
    pairs = sorted(zip(before, now, strict=True), key=sum, reverse=True)
    kept, rest = pairs[: MAX_CELLS - 1], pairs[MAX_CELLS - 1 :]
    if rest:
        kept.append((sum(a for a, _ in rest), sum(b for _, b in rest)))
    return [a for a, _ in kept], [b for _, b in kept]


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
    most = min(MAX_DEALT, math.ceil(3 / goal))
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
