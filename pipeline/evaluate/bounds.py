"""Bounds: how much a rate may have changed between two runs over the same documents, and how likely more is.

Of n documents `up` are yes in B only and `down` in A only; the change is (up - down) / n. Whether it may be at most
some d is tested by the score statistic for matched pairs (T. Tango, 1998) with its exact distribution, whose one
unknown besides d, the share of documents that differ, ranges up to its own confidence bound (R. Berger and D. Boos,
1994). So the level holds for every number of documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_SPENT = 0.05
"""Part of alpha that goes to the bound of the share that differs."""
_GRID = 4
"""Shares that are tried: between them the chance hardly changes, as the statistic is nearly pivotal."""
_WIDTH = 7.0
"""Standard deviations beyond which chances, below 1e-11, are left out."""
_STEPS = 10
_SAME = 1e-9


@lru_cache(maxsize=50_000)
def no_less(documents: int, up: int, down: int, change: float, alpha: float) -> float:
    """The chance, at most, of what speaks as much as `up` and `down` for a change above `change`, or more, if it is
    `change`. `alpha` is the level that it will be held against: a twentieth of it is in the answer."""
    spent = alpha * _SPENT
    least, high = abs(change), share_bounds(up + down, documents, spent)[1]
    if least > high:
        return spent
    shares = [least + (high - least) * (step / (_GRID - 1)) ** 2 for step in range(_GRID)]
    return min(1.0, spent + max(_tail(documents, (up, down), change, share) for share in shares))


@lru_cache(maxsize=50_000)
def lowest(documents: int, up: int, down: int, alpha: float) -> float:
    """The lower confidence bound of the change at level 1 - alpha, one-sided. The upper one is -lowest with `up` and
    `down` changed."""
    if not documents:
        return -1.0
    high = (up - down) / documents
    width = 3 * math.sqrt(up + down + 4) / documents
    while (low := high - width) > -1 and no_less(documents, up, down, low, alpha) > alpha:
        width *= 2
    low = max(-1.0, low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if no_less(documents, up, down, middle, alpha) <= alpha:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=50_000)
def share_bounds(part: int, whole: int, alpha: float) -> tuple[float, float]:
    """Clopper and Pearson's exact bounds of a share, each at level 1 - alpha, one-sided."""
    if not whole:
        return 0.0, 1.0
    low = 0.0 if part == 0 else _solved(lambda share: binomial_tail(part, whole, share) > alpha)
    high = 1.0 if part == whole else 1 - _solved(lambda share: binomial_tail(whole - part, whole, share) > alpha)
    return low, high


def binomial_tail(least: int, whole: int, share: float) -> float:
    """The chance of at least so many of `whole`, each with chance `share`."""
    if least <= 0:
        return 1.0
    if share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    import numpy as np

    counts = _window(whole, share)
    counts = counts[counts >= least]
    logs = (
        _log_factorial(whole, np.array(whole)) - _log_factorial(whole, counts) - _log_factorial(whole, whole - counts)
    )
    logs = logs + counts * math.log(share) + (whole - counts) * math.log1p(-share)
    return min(1.0, float(np.exp(logs).sum()))


def _solved(exceeds: Callable[[float], bool]) -> float:
    """The share up to which a growing chance does not exceed its level, from below."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low


def _tail(documents: int, seen: tuple[int, int], change: float, share: float) -> float:
    """The chance of counts whose statistic is at least that of those seen, if this share of documents differs."""
    import numpy as np

    chances = max(0.0, (share + change) / 2), max(0.0, (share - change) / 2)
    up, down = (_window(documents, chance) for chance in chances)
    ups, downs = up[:, None], down[None, :]
    rest = documents - ups - downs
    logs = _log_factorial(documents, np.array(documents)) - _log_factorial(documents, ups)
    logs = logs - _log_factorial(documents, downs) - _log_factorial(documents, np.maximum(rest, 0))
    logs = logs + _times(ups, chances[0]) + _times(downs, chances[1]) + _times(np.maximum(rest, 0), 1 - share)
    limit = float(_score(documents, np.array(seen[0]), np.array(seen[1]), change)) - _SAME
    counted = (rest >= 0) & (_score(documents, ups, downs, change) >= limit)
    return float(np.exp(logs[counted]).sum())


def _score(documents: int, up: np.ndarray, down: np.ndarray, change: float) -> np.ndarray:
    """Tango's statistic: up - down less what `change` lets expect, over its deviation under that change."""
    import numpy as np

    b = -up - down + (2 * documents - up + down) * change
    c = -down * change * (1 - change)
    # The likeliest chance of `down` under that change: the greater root of 2n q² + b q + c.
    falls = (np.sqrt(np.maximum(0.0, b * b - 8 * documents * c)) - b) / (4 * documents)
    variance = np.maximum(documents * (2 * falls + change * (1 - change)), 1e-12)
    found: np.ndarray = (up - down - documents * change) / np.sqrt(variance)
    return found


def _window(documents: int, share: float) -> np.ndarray:
    """How many documents may be so, but for what hardly ever happens."""
    import numpy as np

    centre, spread = documents * share, _WIDTH * math.sqrt(documents * share * (1 - share)) + 12
    return np.arange(max(0, math.floor(centre - spread)), min(documents, math.ceil(centre + spread)) + 1)


def _times(counts: np.ndarray, share: float) -> np.ndarray:
    """counts × log share, 0 where the count is."""
    import numpy as np

    if share > 0:
        return np.asarray(counts * math.log(share))
    return np.where(counts == 0, 0.0, -np.inf)


def _log_factorial(most: int, counts: np.ndarray) -> np.ndarray:
    found: np.ndarray = _log_factorials(1 << most.bit_length())[counts]
    return found


@lru_cache(maxsize=4)
def _log_factorials(most: int) -> np.ndarray:
    import numpy as np

    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
