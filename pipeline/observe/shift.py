"""Shift: which fields of two profiles differ, by named statistics and with their counts (docs/field-drift.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.observe.chance import detectable, distance_of, holm, least_chance, ordered, tellable, unordered
from pipeline.observe.profile import MAX_VALUES, NO_FIELD, FieldProfile, Profile
from pipeline.observe.spread import Spread
from pipeline.steps.declared.language import script_and_language

Aspect = Literal["status", "presence", "values", "language", "length", "items", "numbers"]
Verdict = Literal["shifted", "slight", "none", "few"]
"""`shifted`: beyond chance and at least `least` of the documents; `slight`: beyond chance, but fewer; `none`: chance
explains it; `few`: with these counts not even the greatest difference would be beyond chance."""
VERDICTS: tuple[Verdict, ...] = ("shifted", "slight", "none", "few")

ALPHA = 0.01
"""Chance at most that anything is called beyond chance in a comparison in which nothing shifted."""
LEAST = 0.05
"""Share of documents from which a shift matters."""
MAX_SHOWN = 5
"""Values of a finding that are told, those that differ most."""
MAX_READ = 40
"""Fields of a schema of whose texts languages are told; of further ones nothing is said."""
OFTEN = 2
"""Values are compared if each occurs so often on average, on both sides together: else nearly all are different."""

_SHARES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Count:
    """A value or state (`what`) with its count before and now; or a quantile of ordered things with its size."""

    what: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One aspect of one field (`pointer`; "" with aspect `status`: of the schema's documents), before and now.

    `before` and `now` are how many documents were compared. `distance` is a share of documents, 0 to 1: the total
    variation distance of unordered things, Kolmogorov and Smirnov's D of lengths and numbers. `p` is the chance of such
    a difference or a greater one among documents of one kind, by the named `statistic`; `adjusted` is that for all
    tests together (Holm). `detectable` is about the distance that would have been seen in four of five cases.
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
    """All findings, the most shifted first; `tests` is how many share `alpha`. `gone` and `new` are schemas that only
    one side has records of, which are not compared. `left_out` counts values of fields beyond the bound."""

    findings: tuple[Finding, ...]
    tests: int
    alpha: float
    least: float
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def shifted(self) -> tuple[Finding, ...]:
        """The findings that say `shifted`."""
        return tuple(one for one in self.findings if one.verdict == "shifted")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Counts of the same labels before and now, to be tested."""

    schema: str
    pointer: str
    aspect: Aspect
    labels: tuple[Any, ...]
    before: tuple[int, ...]
    now: tuple[int, ...]
    is_ordered: bool = False

    def least(self) -> float:
        """The smallest p that a test could give."""
        return least_chance(self.before, self.now, is_ordered=self.is_ordered)


def compare(
    before: Mapping[str, Profile], now: Mapping[str, Profile], *, alpha: float = ALPHA, least: float = LEAST
) -> Comparison:
    """What differs between profiles by schema. The same profiles always give the same findings."""
    both = sorted(before.keys() & now.keys())
    pairs = [pair for name in both for pair in _pairs(before[name], now[name])]
    reachable = [pair.least() for pair in pairs]
    goal = alpha / tellable(reachable, alpha)
    tested = [pair for pair, one in zip(pairs, reachable, strict=True) if one <= goal]
    chances = [(ordered if pair.is_ordered else unordered)(pair.before, pair.now, goal) for pair in tested]
    adjusted = holm([one.p for one in chances])
    findings = []
    for pair, chance, p in zip(tested, chances, adjusted, strict=True):
        beyond: Verdict = "shifted" if chance.distance >= least else "slight"
        told = (chance.statistic, chance.distance, chance.p, p)
        verdict = beyond if p <= alpha else "none" if chance.statistic else "few"
        findings.append(_finding(pair, told, verdict, goal))
    for pair, one in zip(pairs, reachable, strict=True):
        if one > goal:
            distance = distance_of(pair.before, pair.now, is_ordered=pair.is_ordered)
            findings.append(_finding(pair, ("", distance, 1.0, 1.0), "few", goal))
    findings.sort(key=lambda f: (VERDICTS.index(f.verdict), -f.distance, f.schema, f.pointer, f.aspect))
    return Comparison(
        tuple(findings),
        len(tested),
        alpha,
        least,
        tuple(sorted(before.keys() - now.keys())),
        tuple(sorted(now.keys() - before.keys())),
        sum(one.left_out for profiles in (before, now) for one in profiles.values()),
    )


def _finding(pair: _Pair, told: tuple[str, float, float, float], verdict: Verdict, goal: float) -> Finding:
    size, other = sum(pair.before), sum(pair.now)
    seen = detectable(size, other, goal, is_ordered=pair.is_ordered)
    place = (pair.schema, pair.pointer, pair.aspect, size, other)
    return Finding(*place, *told, seen, verdict, _quantiles(pair) if pair.is_ordered else _values(pair))


def _values(pair: _Pair) -> tuple[Count, ...]:
    size, other = sum(pair.before), sum(pair.now)
    counts = [Count(*one) for one in zip(pair.labels, pair.before, pair.now, strict=True)]
    counts.sort(key=lambda one: (-abs(one.before / size - one.now / other), -one.before - one.now, one.what))
    return tuple(counts[:MAX_SHOWN])


def _quantiles(pair: _Pair) -> tuple[Count, ...]:
    sides = [Spread(counts=Counter(dict(zip(pair.labels, one, strict=True)))) for one in (pair.before, pair.now)]
    return tuple(Count(f"{share:.0%}", *(side.quantile(share) or 0.0 for side in sides)) for share in _SHARES)


def _pairs(before: Profile, now: Profile) -> Iterator[_Pair]:
    """All that can differ. What is the same one thing on both sides throughout is not worth a test."""
    tables: list[tuple[str, Aspect, Mapping[Any, int], Mapping[Any, int], bool]] = []
    if before.statuses and now.statuses:
        tables.append(("", "status", before.statuses, now.statuses, False))
    read = 0
    for pointer in sorted(before.fields.keys() | now.fields.keys()):
        one, other = before.fields.get(pointer, NO_FIELD), now.fields.get(pointer, NO_FIELD)
        kinds = one.kinds.keys() | other.kinds.keys()
        tables.append((pointer, "presence", _presence(before, pointer, kinds), _presence(now, pointer, kinds), False))
        if told := _told_values(one, other):
            tables.append((pointer, "values", *told, False))
        else:
            tables.append((pointer, "length", *_aligned(one.lengths, other.lengths), True))
        tables.append((pointer, "items", *_aligned(one.items, other.items), True))
        tables.append((pointer, "numbers", *_aligned(one.numbers, other.numbers), True))
        if read < MAX_READ and (one.texts.kept or other.texts.kept) and not told:
            read += 1
            tables.append((pointer, "language", *_languages(one, other), False))
    for pointer, aspect, left, right, is_ordered in tables:
        labels = tuple(sorted(label for label in left.keys() | right.keys() if left.get(label) or right.get(label)))
        counts, others = (tuple(side.get(label, 0) for label in labels) for side in (left, right))
        if len(labels) > 1 and any(counts) and any(others):
            yield _Pair(now.schema, pointer, aspect, labels, counts, others, is_ordered)


def _presence(profile: Profile, pointer: str, kinds: Set[str]) -> dict[str, int]:
    """Null and absent together, as columns do not tell them apart; what is filled by JSON type, if by several."""
    one = profile.fields.get(pointer, NO_FIELD)
    filled = {"filled": one.filled} if len(kinds) < 2 else one.kinds
    return {"missing": one.null + profile.absent(pointer), "empty": one.empty, **filled}


def _told_values(one: FieldProfile, other: FieldProfile) -> tuple[Counter[str], Counter[str]] | None:
    """The values of both sides, if they are few enough to be compared one by one."""
    different = len(one.values.keys() | other.values.keys())
    often = one.values.total() + other.values.total() >= OFTEN * different
    fit = often and 0 < different <= MAX_VALUES and not (one.free or other.free)
    return (one.values, other.values) if fit else None


def _aligned(one: Spread, other: Spread) -> tuple[Counter[float], Counter[float]]:
    digits = min(one.digits, other.digits)
    return one.at(digits), other.at(digits)


def _languages(one: FieldProfile, other: FieldProfile) -> tuple[Counter[str], Counter[str]]:
    """The languages of the texts that have one, or, if most are too short to tell, the scripts of all."""
    first, second = ([script_and_language(text) for text in side.texts.texts()] for side in (one, other))
    told = sum(bool(language) for _, language in first + second)
    by = 1 if 2 * told >= len(first) + len(second) else 0
    return Counter(found[by] for found in first if found[by]), Counter(found[by] for found in second if found[by])
