"""Differential: the same documents under the constraint and without it, the prompt being the same.

Documents are told apart by what became of their first answers: legal (it satisfies the schema, after repair of its
format at most) in one run, in both, or in neither. docs/differential.md says what each class means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.evaluate.cases import Case, cases_of, told_of
from pipeline.evaluate.changes import ONE_AT_A_TIME, changes_of
from pipeline.evaluate.intervals import FEW, RESAMPLES, Rate, Slice
from pipeline.evaluate.match import RIGHT, match
from pipeline.evaluate.side_rates import Gap, SideRates
from pipeline.evaluate.sides import AMOUNTS, SHARES, Beside, Key, Together, together
from pipeline.runtime.output.browse import Browsed

CLASSES: Mapping[str, str] = {
    "lost": "the free answer is legal, the constrained one is not",
    "gained": "the constrained answer is legal, the free one is not",
    "same": "both are legal, the records say the same",
    "content": "both are legal, the records say something else",
    "rejected": "both are legal, one of them came to no record",
    "neither": "neither is legal",
    "required_more": "more required values are filled under the constraint",
    "required_fewer": "fewer required values are filled under the constraint",
}
"""The first six are all documents, each once; the last two cut across them."""

MAX_FIELDS = 400
OTHER = "(other)"
CONSTRAINED, FREE = "constrained", "free"
_RUNS = (CONSTRAINED, FREE)


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure in both runs: shares, or amounts of a document; `gap` is a difference free - constrained, of amounts
    a factor free / constrained. `documents` have it in both, but for clipped mass, which only one has."""

    name: str
    documents: int
    constrained: Rate | Gap
    free: Rate | Gap
    gap: Gap


@dataclass(frozen=True, slots=True)
class FieldAgreement:
    """One field over the documents whose answers are legal in both runs: `agrees` is the share of its values that are
    the same, of those that either run has. `clipped` is the mass of a value token under the constraint."""

    schema: str
    pointer: str
    agrees: Rate
    exact: int
    normalised: int
    other: int
    only_constrained: int
    only_free: int
    clipped: Rate


@dataclass(frozen=True, slots=True)
class Differential:
    """All that is known. `runs` are where the constrained and the free run lie."""

    runs: tuple[str, str]
    documents: int
    apart: int
    unread: int
    classes: Mapping[str, Rate]
    measures: Sequence[Compared]
    fields: Sequence[FieldAgreement]
    cases: Sequence[Case]
    notes: Sequence[str]


@dataclass
class _Found:
    """What is gathered while documents are looked at, one after the other."""

    rates: SideRates
    counts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    members: dict[str, list[Key]] = field(default_factory=lambda: {name: [] for name in CLASSES})
    differing: dict[Key, tuple[str, str]] = field(default_factory=dict)
    places: dict[tuple[str, str], None] = field(default_factory=dict)

    def place(self, schema: str, pointer: str) -> tuple[str, str]:
        """The field, or the one that all further fields share."""
        if (schema, pointer) not in self.places and len(self.places) >= MAX_FIELDS:
            return schema, OTHER
        self.places[schema, pointer] = None
        return schema, pointer


def differential(
    constrained: Browsed,
    free: Browsed,
    bodies: Mapping[str, Mapping[str, Any]],
    *,
    most: int,
    notes: Iterable[str] = (),
    resamples: int = RESAMPLES,
) -> Differential:
    """Hold a constrained run against a free one over the documents of both, at most about `most` of them. `bodies` are
    their schemas by name.

    Raises:
        OutputError: a run cannot be read, or they have no document in common.
    """
    runs = (constrained, free)
    both = together(runs, bodies, most)
    found = _Found(SideRates(resamples=resamples))
    for key, (one, other) in both.documents.items():
        _add(found, key, one, other, bodies.get(key[0], {}))
    return Differential(
        runs=(constrained.store.where, free.store.where),
        documents=len(both.documents),
        apart=both.apart,
        unread=both.unread,
        classes={name: found.rates.rate(("class", name)) for name in CLASSES},
        measures=list(_measures(found.rates)),
        fields=sorted(_fields(found), key=_by_difference),
        cases=cases_of(runs, found.members, found.differing),
        notes=[*notes, *_notes(runs, both)],
    )


def _add(found: _Found, key: Key, one: Beside, other: Beside, body: Mapping[str, Any]) -> None:
    parts: dict[Slice, tuple[float, float]] = {}
    for name, side, others in ((CONSTRAINED, one, other), (FREE, other, one)):
        parts |= {(name, what): part for what, part in side.parts.items() if what in others.parts or what == "clipped"}
    for pointer, (mass, tokens) in one.clipped.items():
        where: Slice = ("clipped", *found.place(key[0], pointer))
        before = parts.get(where, (0.0, 0.0))
        parts[where] = (before[0] + mass, before[1] + tokens)
    if "legal" in one.parts and "legal" in other.parts:
        kind = _kind(found, key, (one, other), body, parts)
        parts |= {("class", name): (float(name == kind), 1.0) for name in CLASSES if "required" not in name}
        found.members[kind].append(key)
        if "required" in one.parts and "required" in other.parts:
            ours, theirs = (count / of for count, of in (one.parts["required"], other.parts["required"]))
            for name, holds in (("required_more", ours > theirs), ("required_fewer", ours < theirs)):
                parts["class", name] = (float(holds), 1.0)
                if holds:
                    found.members[name].append(key)
    found.rates.add("\0".join(key), parts)


def _kind(
    found: _Found,
    key: Key,
    sides: tuple[Beside, Beside],
    body: Mapping[str, Any],
    parts: dict[Slice, tuple[float, float]],
) -> str:
    one, other = sides
    if not (one.legal and other.legal):
        return "gained" if one.legal else "lost" if other.legal else "neither"
    ours, theirs = one.seen.record, other.seen.record
    if ours is None or theirs is None:
        return "rejected"
    judged = [leaf for leaf in match(ours, theirs, body).fields if leaf.verdict != "abstained"]
    for leaf in judged:
        place = found.place(key[0], leaf.pointer)
        counts = found.counts.setdefault(place, {})
        counts[leaf.verdict] = counts.get(leaf.verdict, 0) + 1
        same, of = parts.get(("field", *place), (0.0, 0.0))
        parts["field", *place] = (same + (leaf.verdict in RIGHT), of + 1)
    differing = [leaf for leaf in judged if leaf.verdict not in RIGHT]
    if differing:
        found.differing[key] = told_of(differing)
    return "content" if differing else "same"


def _measures(rates: SideRates) -> Iterator[Compared]:
    for name in (*SHARES, *AMOUNTS):
        one, other = (CONSTRAINED, name), (FREE, name)
        documents = max(rates.documents(one), rates.documents(other))
        if not documents:
            continue
        if name in AMOUNTS:
            yield Compared(name, documents, rates.mean(one), rates.mean(other), rates.factor(one, other))
        else:
            yield Compared(name, documents, rates.rate(one), rates.rate(other), rates.difference(one, other))


def _fields(found: _Found) -> Iterator[FieldAgreement]:
    for (schema, pointer), counts in found.counts.items():
        yield FieldAgreement(
            schema=schema,
            pointer=pointer,
            agrees=found.rates.rate(("field", schema, pointer)),
            exact=counts.get("exact", 0),
            normalised=counts.get("normalised", 0),
            other=counts.get("wrong", 0),
            only_constrained=counts.get("missing", 0),
            only_free=counts.get("invented", 0),
            clipped=found.rates.rate(("clipped", schema, pointer)),
        )


def _by_difference(one: FieldAgreement) -> tuple[float, str, str]:
    return one.agrees.value or 0.0, one.schema, one.pointer


def _notes(runs: tuple[Browsed, Browsed], both: Together) -> Iterator[str]:
    """What a reader must know before believing the rest."""
    for place, wanted, words in ((0, 1.0, "without the constraint"), (1, 0.0, "under a constraint")):
        values = [sides[place].seen.values.get("constrained") for sides in both.documents.values()]
        if others := sum(value is not None and value != wanted for value in values):
            yield f"{others} documents of the {_RUNS[place]} run were answered {words}: it is not what it should be."
    kinds = {one.kind for one in changes_of(*runs)} & (ONE_AT_A_TIME | {"input", "program"}) - {"constraint"}
    if kinds:
        yield f"Not only the constraint differs between the runs: {', '.join(sorted(kinds))}, too."
    if both.apart:
        yield f"{both.apart} rows are of documents that are not in both runs, or not alone under their id: in no pair."
    if both.unread:
        yield f"{both.unread} documents were not read."
    if len(both.documents) < FEW:
        yield f"There are {len(both.documents)} documents: intervals are wide, and read as a hint."
