"""Corrected: from differences of pairs to measures with a chance each, corrected for all of them together.

Alpha is shared by weight (`SHARES_OF_ALPHA`), so that a hundred fields do not drown a dozen rates; what one part of the
tests does not need, as its own are decided, goes to the others (weighted Holm). Half is left to the bounds of the gate.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.evaluate.comparison import Group, Measure
from pipeline.evaluate.fieldwise import DIGITS, FieldPairs, SchemaPairs
from pipeline.evaluate.signs import least_p, sign_test, signed_ranks, weighted_holm, worth_testing
from pipeline.observe.shift import Comparison, Finding, Verdict

SHARES_OF_ALPHA: Mapping[str, float] = {"rates": 0.25, "fields": 0.2, "shifts": 0.05, "bounds": 0.5}
TESTED_VALUES = 20
"""Values of a field that are tested, those that most pairs gained or lost."""
OFTEN = 2
"""Values are told apart if each occurs so often on average, on both sides together: else a field is free text, whose
length is tested."""


@dataclass
class Paired:
    """Differences B - A of pairs, counted, and the sums of either side."""

    group: Group
    name: str
    worse: int = 0
    schema: str = ""
    pointer: str = ""
    documents: int = 0
    a: float = 0.0
    b: float = 0.0
    counts: Counter[float] = field(default_factory=Counter)

    def add(self, a: float, b: float) -> None:
        """Count a pair."""
        self.documents += 1
        self.a += a
        self.b += b
        self.counts[round(b - a, DIGITS)] += 1

    def measure(self) -> Measure:
        """The measure, not corrected yet."""
        counts = {value: count for value, count in self.counts.items() if value and count}
        up = sum(count for value, count in counts.items() if value > 0)
        down = sum(counts.values()) - up
        zeros = [(0.0, self.documents - up - down)] if self.documents > up + down else []
        histogram = tuple(sorted([*counts.items(), *zeros]))
        yes_no = set(counts) <= {-1.0, 1.0}
        p = sign_test(up, down) if yes_no else signed_ranks(histogram)
        statistic = "McNemar's exact test" if yes_no else "Wilcoxon's signed ranks"
        means = (self.a / self.documents, self.b / self.documents) if self.documents else (0.0, 0.0)
        place = (self.group, self.name, self.documents, *means, up, down, self.worse)
        return Measure(*place, statistic, p, 1.0, "few", histogram, self.schema, self.pointer)


def of_fields(found: SchemaPairs) -> Iterator[Paired]:
    """What is tested of the fields of a schema: whether they are filled, how many items, numbers, values or lengths."""
    for pointer, one in found.fields.items():
        documents = found.documents
        filled = one.same + one.changed + one.presence[-1.0]
        yield _of("filled", found, pointer, one.presence, filled, documents)
        free = _is_free(one)
        left_out = {name for name, has in (("length", free), ("items", "*" in pointer.split("/"))) if not has}
        for name, counts in one.amounts.items():
            if name not in left_out:
                yield _of(name, found, pointer, counts, one.before[name], counts.total())
        if not free:
            yield from _of_values(found, pointer, one)


def _is_free(one: FieldPairs) -> bool:
    """Decided by both sides together: what chooses a test must not know which side is which."""
    both = 2 * one.held.total() + sum(gained - lost for gained, lost in one.values.values())
    return one.free or both < OFTEN * len(one.values)


def _of_values(found: SchemaPairs, pointer: str, one: FieldPairs) -> Iterator[Paired]:
    moved = {label: counts for label, counts in one.values.items() if sum(counts) and label != "false"}
    for label in sorted(moved, key=lambda name: (-sum(moved[name]), name))[:TESTED_VALUES]:
        gained, lost = moved[label]
        counts = Counter({1.0: gained, -1.0: lost})
        yield _of(f"value {label}", found, pointer, counts, one.held[label], found.documents)


def _of(name: str, found: SchemaPairs, pointer: str, counts: Counter[float], before: float, documents: int) -> Paired:
    """`before` is the sum of A's side."""
    moved = sum(value * count for value, count in counts.items())
    return Paired("field", name, 0, found.schema, pointer, documents, before, before + moved, Counter(counts))


def corrected(
    rates: Sequence[Measure], fields: Sequence[Measure], shifts: Comparison, alpha: float
) -> tuple[list[Measure], Comparison, int]:
    """Measures and shifts with chances adjusted for all together, and how many tests those are."""
    groups = {"rates": rates, "fields": fields}
    parts: dict[str, list[bool]] = {}
    for name, some in groups.items():
        parts[name] = worth_testing([least_p(one.up + one.down) for one in some], alpha * SHARES_OF_ALPHA[name])
    open_shifts = [one for one in shifts.findings if one.statistic]
    kept = {
        name: [one.p for one, is_open in zip(some, parts[name], strict=True) if is_open]
        for name, some in groups.items()
    } | {"shifts": [one.p for one in open_shifts]}
    chances = [p for some in kept.values() for p in some]
    weights = [SHARES_OF_ALPHA[name] / len(some) for name, some in kept.items() for _ in some]
    adjusted = iter(weighted_holm(chances, weights, SHARES_OF_ALPHA["bounds"]))
    told = [
        _judged(one, next(adjusted), alpha) if is_open else one
        for name, some in groups.items()
        for one, is_open in zip(some, parts[name], strict=True)
    ]
    return told, _shifts(shifts, adjusted, alpha), len(chances)


def _judged(one: Measure, adjusted: float, alpha: float) -> Measure:
    return dataclasses.replace(one, adjusted=adjusted, verdict="changed" if adjusted <= alpha else "same")


def _shifts(shifts: Comparison, adjusted: Iterator[float], alpha: float) -> Comparison:
    def judged(one: Finding) -> Finding:
        if not one.statistic:
            return one
        p = next(adjusted)
        beyond: Verdict = "shifted" if one.distance >= shifts.least else "slight"
        return dataclasses.replace(one, adjusted=p, verdict=beyond if p <= alpha else "none")

    return dataclasses.replace(shifts, findings=tuple(judged(one) for one in shifts.findings), alpha=alpha)
