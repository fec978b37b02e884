"""Bounds: how much a rate may have changed between two runs over the same documents, and how likely more is.

Of n documents `up` are yes in B only and `down` in A only; the change is (up - down) / n. That it is at most some d is
tested by the exact distribution of up - down, whose one unknown besides d, the share of documents that differ, ranges
up to its own confidence bound (R. Berger and D. Boos, 1994): the level holds for every number of documents.
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
_GRID = 7
_WIDTH = 8.5
"""Standard deviations of a binomial beyond which its chances, below 1e-15, are left out."""
_STEPS = 22


@lru_cache(maxsize=50_000)
def no_less(documents: int, up: int, down: int, change: float, alpha: float) -> float:
    """The chance, at most, of as much as up - down or more, if the true change is `change` or less. `alpha` is the
    level that it will be held against: a twentieth of it is in the answer."""
    spent = alpha * _SPENT
    least, high = abs(change), share_bounds(up + down, documents, spent)[1]
    if least > high:
        return spent
    shares = [least + (high - least) * step / (_GRID - 1) for step in range(_GRID)]
    return min(1.0, spent + max(_tail(documents, up - down, change, share) for share in shares))


@lru_cache(maxsize=50_000)
def lowest(documents: int, up: int, down: int, alpha: float) -> float:
    """The lower confidence bound of the change at level 1 - alpha, one-sided. The upper one is -lowest with `up` and
    `down` changed."""
    if not documents:
        return -1.0
    low, high = -1.0, (up - down) / documents
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if no_less(documents, up, down, middle, alpha) <= alpha:
            low = middle
        else:
            high = middle
    return low


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

    spread = _WIDTH * math.sqrt(whole * share * (1 - share)) + 40
    centre = whole * share
    if least < centre - spread:
        return 1.0
    counts = np.arange(least, min(whole, math.ceil(max(least, centre) + spread)) + 1)
    logs = _log_choose(whole, counts) + counts * math.log(share) + (whole - counts) * math.log1p(-share)
    return min(1.0, float(np.exp(logs).sum()))


def _solved(exceeds: Callable[[float], bool]) -> float:
    """The share up to which a growing chance does not exceed its level, from below."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low


def _tail(documents: int, least: int, change: float, share: float) -> float:
    """The chance that up - down is at least so much, if this share of documents differs and the mean is `change`."""
    import numpy as np

    if share <= 0:
        return 1.0 if least <= 0 else 0.0
    rises = min(1.0, max(0.0, (1 + change / share) / 2))
    differ = _window(documents, share)
    logs = _log_choose(documents, differ) + _times(differ, share) + _times(documents - differ, 1 - share)
    chances = np.exp(logs)
    needed = (differ + least + 1) // 2  # rises among those that differ, rounded up
    found = np.zeros(len(differ))
    found[needed <= 0] = 1.0
    inside = (needed > 0) & (needed <= differ)
    if inside.any():
        found[inside] = _tails(differ[inside], needed[inside], rises)
    return float((chances * found).sum())


def _tails(wholes: np.ndarray, leasts: np.ndarray, share: float) -> np.ndarray:
    """Binomial tails of many wholes at once."""
    import numpy as np

    if share <= 0 or share >= 1:
        return np.full(len(wholes), float(share >= 1))
    centre, spread = wholes * share, _WIDTH * np.sqrt(wholes * share * (1 - share)) + 40
    first = np.maximum(leasts, np.floor(centre - spread)).astype(np.int64)
    last = np.minimum(wholes, np.ceil(np.maximum(centre + spread, leasts + 40))).astype(np.int64)
    counts = first[:, None] + np.arange(int((last - first).max()) + 1)[None, :]
    whole = np.broadcast_to(wholes[:, None], counts.shape)
    kept = counts <= last[:, None]
    safe = np.where(kept, counts, 0)
    logs = _log_choose(whole, safe) + safe * math.log(share) + (whole - safe) * math.log1p(-share)
    found: np.ndarray = np.minimum(1.0, np.where(kept, np.exp(logs), 0.0).sum(axis=1))
    return found


def _window(documents: int, share: float) -> np.ndarray:
    """How many documents may differ, but for what hardly ever happens."""
    import numpy as np

    centre, spread = documents * share, _WIDTH * math.sqrt(documents * share * (1 - share)) + 40
    return np.arange(max(0, math.floor(centre - spread)), min(documents, math.ceil(centre + spread)) + 1)


def _times(counts: np.ndarray, share: float) -> np.ndarray:
    """counts × log share, 0 where the count is."""
    import numpy as np

    if share > 0:
        return np.asarray(counts * math.log(share))
    return np.where(counts == 0, 0.0, -np.inf)


def _log_choose(whole: int | np.ndarray, part: np.ndarray) -> np.ndarray:
    import numpy as np

    wholes = np.asarray(whole)
    logs = _log_factorials(1 << int(wholes.max()).bit_length())
    found: np.ndarray = logs[wholes] - logs[part] - logs[wholes - part]
    return found


@lru_cache(maxsize=4)
def _log_factorials(most: int) -> np.ndarray:
    import numpy as np

    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
