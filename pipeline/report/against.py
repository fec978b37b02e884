"""This run against the one before it: counts side by side, with a test that says what chance explains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.observe.tally import Tally
from pipeline.records import STATUSES, Manifest
from pipeline.report.shown import most

LIKELY = 0.001
"""p-values below this are called changes: the page makes about thirty comparisons."""
MIN_EXPECTED = 5
"""Below so many expected documents in a cell the normal approximation does not hold, and nothing is said."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One count of each run out of its own whole. `worse` says whether more of it is worse (1), better (-1), or
    neither (0)."""

    name: str
    part: int
    whole: int
    part_before: int
    whole_before: int
    worse: int = 0

    @property
    def p_value(self) -> float | None:
        """Of the two-proportion z-test (pooled variance, two-sided); None where counts are too small for it."""
        return two_proportions(self.part, self.whole, self.part_before, self.whole_before)

    @property
    def changed(self) -> bool:
        """Whether chance alone hardly explains the difference."""
        return self.p_value is not None and self.p_value < LIKELY


def two_proportions(part: int, whole: int, part_before: int, whole_before: int) -> float | None:
    """Two-sided p-value of the two-proportion z-test: z = (a/n - b/m) / sqrt(p(1-p)(1/n + 1/m)), p = (a+b)/(n+m).

    None if a cell of the table is expected to hold fewer than `MIN_EXPECTED`. Runs over the same documents are not
    independent samples; the test is too cautious there rather than too bold.
    """
    if not whole or not whole_before:
        return None
    pooled = (part + part_before) / (whole + whole_before)
    if min(whole, whole_before) * min(pooled, 1 - pooled) < MIN_EXPECTED:
        return None
    z = (part / whole - part_before / whole_before) / math.sqrt(pooled * (1 - pooled) * (1 / whole + 1 / whole_before))
    return math.erfc(abs(z) / math.sqrt(2))


def pairs_of(now: Manifest, before: Manifest) -> Iterator[Pair]:
    """What of two manifests can be held against each other. A count that the earlier run's version did not keep is
    left out."""
    mine, other = Tally.from_json(now.totals), Tally.from_json(before.totals)
    for status in STATUSES:
        parts = now.counts.get(status, 0), now.documents, before.counts.get(status, 0), before.documents
        yield Pair(f"documents {status}", *parts, worse=-1 if status == "valid" else 1)
    for name, member, worse in _RATES:
        if member in now.totals and member in before.totals:
            yield Pair(name, getattr(mine, member), mine.asked, getattr(other, member), other.asked, worse)
    codes = mine.codes | other.codes
    for code, _ in most(codes, MAX_CODES):
        yield Pair(f"problem {code}", mine.codes[code], mine.documents, other.codes[code], other.documents, worse=1)


MAX_CODES = 12
_RATES = (
    ("first answer is JSON as it came", "first_pass_format", -1),
    ("first answer satisfies the schema", "first_pass_valid", -1),
    ("first answer satisfies rules and grounding", "first_pass_semantic", -1),
    ("repaired", "repaired", 1),
    ("asked again", "retried", 1),
    ("resolved by asking again", "resolved_by_retry", 0),
    ("truncated", "truncated", 1),
    ("salvaged", "salvaged", 1),
)


def per_valid(manifest: Manifest) -> float | None:
    """Output tokens for each valid document, over all documents."""
    valid = manifest.counts.get("valid", 0)
    return Tally.from_json(manifest.totals).output_tokens / valid if valid else None


def differences(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(name, before, now) of what two mappings do not say alike, by name."""
    names = sorted({*now, *before})
    return [(name, before.get(name), now.get(name)) for name in names if now.get(name) != before.get(name)]
