"""Calibration: whether confidence ranks right values above wrong ones, and how far it is from the share that is right.

Confidences are counted in bins that are narrow where they crowd, near 1, so that memory does not grow with documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipeline.evaluate.intervals import Bootstrap, Floats, Rate, summarised

_EVEN, _TENTHS = 180, 0.9
_STEPS, _MOST = 20, 8
"""Bins for each power of ten that 1 − confidence falls below, from 0.1 to 1e-8."""
GROUPS = 10
"""Equally wide groups of the expected calibration error."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of the values with a confidence: AUROC, the share of (right, wrong) pairs that it orders rightly, ties half; ECE,
    the mean distance between confidence and the share that is right, over ten groups weighted by size."""

    values: int
    right: int
    auroc: Rate
    ece: Rate


def bin_of(confidence: float) -> int:
    """The bin of a confidence; greater ones have greater bins."""
    value = min(1.0, max(0.0, confidence)) if math.isfinite(confidence) else 0.0
    if value < _TENTHS:
        return int(value / _TENTHS * _EVEN)
    return _EVEN + int(_STEPS * (min(_MOST, -math.log10(max(1 - value, 10.0**-_MOST))) - 1))


def calibration_of(boot: Bootstrap, schema: str, documents: float) -> Calibration | None:
    """How confidence fares with the values of a schema; None without any."""
    bins = sorted({int(where[2]) for where, _ in boot.names() if where[:2] == ("confidence", schema)})
    if not bins:
        return None
    sums = {
        name: np.array([boot.sums((("confidence", schema, str(one)), name)) for one in bins])
        for name in ("right", "not", "sum")
    }
    right, wrong = sums["right"], sums["not"]
    total = float((right + wrong)[:, 0].sum())
    auroc = summarised(_auroc(right, wrong), float(right[:, 0].sum()), total, documents)
    ece = summarised(_ece(right, right + wrong, sums["sum"]), float(sums["sum"][:, 0].sum()), total, documents)
    return Calibration(int(total), int(right[:, 0].sum()), auroc, ece)


def _auroc(right: Floats, wrong: Floats) -> Floats:
    """By the rank sum: wrong ones in lower bins, and half of those in the same."""
    below = np.cumsum(wrong, axis=0) - wrong
    pairs = right.sum(axis=0) * wrong.sum(axis=0)
    won: Floats = (right * (below + wrong / 2)).sum(axis=0)
    return _shares(won, pairs)


def _ece(right: Floats, total: Floats, confidence: Floats) -> Floats:
    """Σ over groups of |right − sum of confidences| / all."""
    sizes, sums = total.sum(axis=1), confidence.sum(axis=1)
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    groups = np.minimum((means * GROUPS).astype(int), GROUPS - 1)
    apart = np.zeros(total.shape[1])
    for group in range(GROUPS):
        some = groups == group
        apart += np.abs(right[some].sum(axis=0) - confidence[some].sum(axis=0))
    return _shares(apart, total.sum(axis=0))


def _shares(count: Floats, of: Floats) -> Floats:
    shares: Floats = np.divide(count, of, out=np.full(len(count), np.nan), where=of > 0)
    return shares
