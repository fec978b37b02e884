"""Signs: how likely pairs of one kind differ as much as these do, and what that is worth among many tests.

All tests are conditional: if nothing changed, a document's two sides could as well have been the other way round, so
given how much each pair differs, every sign of a difference is a coin's throw. McNemar's exact test is that for yes and
no, Wilcoxon's signed ranks (F. Wilcoxon, 1945) for amounts. Neither needs documents to be alike, nor many of them; of
p-values that come in steps none is smaller than it should be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pipeline.observe.chance import tellable

EXACT = 200
"""Pairs that differ up to which signed ranks are summed exactly; of more, the normal approximation with correction for
continuity, whose tails are heavier than the sum's own."""

_NEGLIGIBLE = 1e-17


def sign_test(up: int, down: int) -> float:
    """Two-sided p of McNemar's exact test: of `up` + `down` pairs that differ, so many or fewer on the rarer side."""
    pairs, few = up + down, min(up, down)
    if 2 * few >= pairs - 1:
        return 1.0
    term = math.exp(math.lgamma(pairs + 1) - math.lgamma(few + 1) - math.lgamma(pairs - few + 1) - pairs * math.log(2))
    total = 0.0
    for k in range(few, -1, -1):
        total += term
        term *= k / (pairs - k + 1)
        if term < total * _NEGLIGIBLE:
            break
    return min(1.0, 2 * total)


def signed_ranks(histogram: Sequence[tuple[float, int]]) -> float:
    """Two-sided p of Wilcoxon's signed ranks; `histogram` counts pairs by their difference. Pairs without one are left
    out, equal sizes share their ranks."""
    sizes: dict[float, list[int]] = {}
    for value, count in histogram:
        if value:
            sizes.setdefault(abs(value), [0, 0])[value > 0] += count
    ranks: list[tuple[int, int]] = []  # (twice the rank that a size has, how many have it), so that ranks are whole
    placed = above = 0
    for size in sorted(sizes):
        count = sum(sizes[size])
        twice = 2 * placed + count + 1
        ranks.append((twice, count))
        above += twice * sizes[size][1]
        placed += count
    total = sum(twice * count for twice, count in ranks)
    least = min(above, total - above)
    if placed <= EXACT:
        return min(1.0, 2 * _below(ranks, total, least))
    deviation = math.sqrt(sum(twice**2 * count for twice, count in ranks)) / 2
    # One pair that turns moves the sum by at least twice the smallest rank; half of that is the correction.
    z = max(0.0, (total / 2 - least - ranks[0][0] / 2) / deviation)
    return min(1.0, math.erfc(z / math.sqrt(2)))


def _below(ranks: Sequence[tuple[int, int]], total: int, most: int) -> float:
    """The chance that a random half of the ranks has a sum of at most this."""
    import numpy as np

    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for twice, count in ranks:
        for _ in range(count):
            moved = chances / 2
            chances = moved.copy()
            chances[twice:] += moved[: total + 1 - twice]
    return float(chances[: most + 1].sum())


def least_p(differ: int) -> float:
    """The smallest p that either test could give where so many pairs differ: all one way."""
    return min(1.0, 2.0 ** (1 - differ))


def worth_testing(least: Sequence[float], alpha: float) -> list[bool]:
    """Which tests share alpha: those that could say something at their part of it (R. Tarone, 1990). How many pairs
    differ decides that, and says nothing of which way."""
    goal = alpha / tellable(least, alpha) if least else alpha
    return [one <= goal for one in least]


def weighted_holm(chances: Sequence[float], weights: Sequence[float], reserved: float = 0.0) -> list[float]:
    """Each p adjusted for all (S. Holm, 1979, section 4): where nothing changed, the chance that any is at most alpha
    is at most alpha, whatever depends on what. A test has the part of alpha that its weight is of those still open and
    of what is `reserved` for others."""
    adjusted, highest = [0.0] * len(chances), 0.0
    order = sorted(range(len(chances)), key=lambda place: chances[place] / weights[place])
    still_open = list(itertools.accumulate(weights[place] for place in reversed(order)))
    still_open = [reserved + weight for weight in still_open]
    for place, weight in zip(order, reversed(still_open), strict=True):
        highest = max(highest, min(1.0, chances[place] * weight / weights[place]))
        adjusted[place] = highest
    return adjusted
