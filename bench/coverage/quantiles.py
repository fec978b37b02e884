"""Quantiles of times: of a list, and of counts on a logarithmic scale, which is how masks are kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

PER_OCTAVE = 8
"""Slots per octave of microseconds: a time is known within 5 %."""

_LEAST_MICROS = 0.1


def slot(seconds: float) -> int:
    """The place of a time in the counts."""
    return round(math.log2(max(seconds * 1e6, _LEAST_MICROS)) * PER_OCTAVE)


def of_values(values: Iterable[float], shares: Mapping[str, float], digits: int = 4) -> dict[str, float]:
    """The values under which these shares lie, and the greatest; empty without values."""
    ranked = sorted(values)
    if not ranked:
        return {}
    found = {name: ranked[_place(share, len(ranked))] for name, share in shares.items()}
    return {name: round(value, digits) for name, value in (*found.items(), ("max", ranked[-1]))}


def of_slots(counts: Mapping[int, int], shares: Mapping[str, float]) -> dict[str, float]:
    """The same in microseconds for counts by slot."""
    total, seen, found = sum(counts.values()), 0, dict[str, float]()
    for place in sorted(counts):
        seen += counts[place]
        for name, share in shares.items():
            if name not in found and seen > _place(share, total):
                found[name] = round(2 ** (place / PER_OCTAVE), 1)
    return found


def _place(share: float, count: int) -> int:
    """Nearest rank: the smallest value that at least that share does not exceed."""
    return max(0, math.ceil(share * count) - 1)
