"""Pilot: a few documents of each schema before the mass, so that a broken prompt costs a few answers, not a night."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from pipeline.runtime.input import Unit

Pilot: TypeAlias = tuple[Unit, tuple[int, ...]]
"""Rows of a unit, counted from its first document, that belong to the pilot."""

PILOT_PATIENCE = 300.0
"""Seconds without a sign of any pilot after which the mass no longer waits: the processes may have died with it."""

_MASS = 4
"""A schema with fewer than this many times the pilot's documents is not worth waiting for."""


def choose(units: Sequence[Unit], documents: int, seed: int) -> list[Pilot]:
    """`documents` random rows of each schema, from all over its units; the same ones for the same seed everywhere.

    Schemas stand in the order in which units name them. None is for documents without a schema, nor for a schema with
    few documents.
    """
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.schema:
            groups.setdefault(unit.schema, []).append(unit)
    chosen: list[Pilot] = []
    for schema, group in groups.items():
        ends = list(accumulate(unit.rows for unit in group))
        if documents < 1 or ends[-1] < _MASS * documents:
            continue
        rows: dict[int, list[int]] = {}
        for place in sorted(random.Random(f"{seed} {schema}").sample(range(ends[-1]), documents)):
            index = bisect_right(ends, place)
            rows.setdefault(index, []).append(place - (ends[index] - group[index].rows))
        chosen += [(group[index], tuple(found)) for index, found in rows.items()]
    return chosen


class Gate:
    """Which pilots are still out. `expected` counts their documents by schema; times are seconds of one clock."""

    def __init__(self, expected: Mapping[str, int], now: float) -> None:
        self._expected = dict(expected)
        self._missing = {schema: count for schema, count in expected.items() if count > 0}
        self._stirred = now

    def stir(self, now: float) -> None:
        """There is a sign that pilots are on their way."""
        self._stirred = now

    def report(self, schema: str, documents: int, now: float) -> int:
        """Documents of a pilot are through. Returns how many it has if these are the last of them, else 0."""
        self.stir(now)
        if schema not in self._missing:
            return 0
        self._missing[schema] -= documents
        if self._missing[schema] > 0:
            return 0
        del self._missing[schema]
        return self._expected[schema]

    def waits(self, schema: str, now: float) -> bool:
        """Whether the mass of a schema is to wait for its pilot."""
        return schema in self._missing and now - self._stirred < PILOT_PATIENCE
