"""Intervals: how far a rate may be from what more documents of the same kind would give.

Rates that count documents have the interval of Wilson (1927). Rates that count leaves have a bootstrap over documents,
whose leaves stay together: a document that is read badly is wrong in many of them. Resamples are drawn as the documents
come, each weighing 0, 1, 2, … times by Poisson(1) in each (Hanley and MacGibbon, 2006; Chamandy et al., 2012), so that
memory does not grow with them; weights come from a hash of the document, so that their order changes nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
RESAMPLES = 1000
FEW = 20
"""Documents below which percentile intervals are too narrow."""
BLOCK = 256
"""Documents that are added up at once."""

Floats = npt.NDArray[np.float64]
Slice = tuple[str, ...]
"""Which documents or leaves a number is of: `("all",)`, `("schema", name)`, `("field", schema, pointer)`, …"""
Name = tuple[Slice, str]


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `of`, and the interval of `LEVEL`; all None where there is nothing to count. `interval` is how it was
    made; `count` and `of` are sums of leaves or documents, of a mean the sum and the number."""

    value: float | None
    low: float | None
    high: float | None
    count: float
    of: float
    interval: Literal["wilson", "bootstrap", ""] = ""


def wilson(count: float, of: float) -> Rate:
    """The rate of independent trials with the score interval of E. B. Wilson (1927)."""
    if not of:
        return Rate(None, None, None, count, of)
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    share, scale = count / of, 1 + z * z / of
    middle = (share + z * z / (2 * of)) / scale
    half = z / scale * math.sqrt(max(0.0, share * (1 - share) / of) + z * z / (4 * of * of))
    return Rate(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)), count, of, "wilson")


class Bootstrap:
    """Sums of named numbers over documents, and the same sums over each resample.

    Memory: 8 bytes for each name and resample, and a block of documents.
    """

    def __init__(self, resamples: int = RESAMPLES, seed: int = 0) -> None:
        self.resamples, self.seed = resamples, seed
        self.documents = 0
        self._columns: dict[Name, int] = {}
        self._sums = np.zeros((resamples + 1, 64))
        self._weights: list[Floats] = []
        self._values: list[Mapping[Name, float]] = []

    def add(self, key: str, values: Mapping[Name, float]) -> None:
        """Add one document's numbers; `key` tells it from others."""
        self.documents += 1
        self._weights.append(self._drawn(key))
        self._values.append(values)
        if len(self._values) == BLOCK:
            self._flush()

    def sums(self, name: Name) -> Floats:
        """The sum over all documents, followed by that of each resample."""
        self._flush()
        column = self._columns.get(name)
        return np.zeros(self.resamples + 1) if column is None else self._sums[:, column].copy()

    def names(self) -> list[Name]:
        """The names of all numbers that were added."""
        self._flush()
        return list(self._columns)

    def _drawn(self, key: str) -> Floats:
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest, "big")])
        return np.concatenate(([1.0], generator.poisson(1.0, self.resamples)))

    def _flush(self) -> None:
        if not self._values:
            return
        named = {name: None for values in self._values for name in values}
        columns = [self._columns.setdefault(name, len(self._columns)) for name in named]
        if len(self._columns) > self._sums.shape[1]:
            grown = np.zeros((self.resamples + 1, 2 * len(self._columns)))
            grown[:, : self._sums.shape[1]] = self._sums
            self._sums = grown
        block = np.array([[values.get(name, 0.0) for name in named] for values in self._values])
        if columns:
            self._sums[:, columns] += np.array(self._weights).T @ block
        self._weights, self._values = [], []


def ratio(count: Floats, of: Floats, documents: float) -> Rate:
    """The rate of two sums of a bootstrap; `documents` are those that it is of."""
    values = np.divide(count, of, out=np.full_like(count, np.nan), where=of != 0)
    return summarised(values, float(count[0]), float(of[0]), documents)


def summarised(values: Floats, count: float, of: float, documents: float) -> Rate:
    """A statistic of all documents, from 0 to 1, followed by that of each resample, with its percentile interval. Of
    less than FEW documents, or where no resample differs, as at 0 of 40, that is too narrow: Wilson's over documents
    (or values, if those are fewer) is told, as if all values of a document were right or wrong together."""
    whole, drawn = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not math.isfinite(whole):
        return Rate(None, None, None, count, of)
    if documents < FEW or not len(drawn) or drawn.min() == drawn.max():
        trials = min(documents, of)
        known = wilson(whole * trials, trials)
        return Rate(whole, known.low, known.high, count, of, "wilson")
    low, high = np.quantile(drawn, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return Rate(whole, float(low), float(high), count, of, "bootstrap")
