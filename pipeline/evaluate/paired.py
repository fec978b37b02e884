"""Paired: pairs in, a comparison out. Pure: no run is read here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.evaluate.comparison import Change, Example, FieldDiff, Pairing, RunComparison, Side
from pipeline.evaluate.corrected import SHARES_OF_ALPHA, Paired, corrected, of_fields
from pipeline.evaluate.fieldwise import SchemaPairs
from pipeline.evaluate.measured import MEASURES, Seen, costs_validity
from pipeline.observe.profile import Profile
from pipeline.observe.shift import Comparison, compare
from pipeline.records import JsonValue

MAX_SCHEMAS = 50
"""Schemas whose rates are tested apart, those with most pairs."""
BY_SCHEMA = ("valid", "first_semantic", "completeness")
MAX_FLIPS = 20
"""Documents that are told of those that newly failed, and of those that newly passed."""
SHOWN_FIELDS = 20
"""Fields of which changed documents are told, those with most."""

Pair = tuple[Seen, Seen]
Score = Callable[[str, str, JsonValue | None], float | None]
"""How well a record agrees with gold, 0 to 1, by (schema, document id, record or None); None: there is no gold."""


@dataclass(frozen=True, slots=True)
class About:
    """What is known of the two runs besides their documents."""

    a: Side
    b: Side
    pairing: Pairing
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()


def compare_pairs(matched: Sequence[Pair], about: About, *, alpha: float, score: Score | None = None) -> RunComparison:
    """What differs between the two sides of some pairs, with one correction over everything that is tested."""
    schemas: dict[str, SchemaPairs] = {}
    for one, two in matched:
        schemas.setdefault(one.schema, SchemaPairs(one.schema)).add(one, two)
    rates = [paired.measure() for paired in _rates(matched, schemas, score)]
    fields = [paired.measure() for found in schemas.values() for paired in of_fields(found)]
    told, shifts, tests = corrected(rates, fields, _shifts(matched, alpha), alpha)
    diffs = sorted((one for found in schemas.values() for one in found.diffs()), key=_by_difference)
    seconds = (sum((one.seconds for one, _ in matched), 0.0), sum((two.seconds for _, two in matched), 0.0))
    transitions = Counter((one.status, two.status) for one, two in matched)
    warnings = (*about.warnings, *_warnings(about.pairing, schemas))
    examples = (*_flips(matched), *_changed(schemas, diffs))
    return RunComparison(
        a=about.a,
        b=about.b,
        pairing=about.pairing,
        transitions=transitions,
        measures=tuple(told),
        fields=tuple(diffs),
        shifts=shifts,
        changes=about.changes,
        warnings=warnings,
        examples=examples,
        seconds=seconds,
        alpha=alpha,
        tests=tests,
    )


def _rates(matched: Sequence[Pair], schemas: Mapping[str, SchemaPairs], score: Score | None) -> Iterator[Paired]:
    """What is compared of documents as wholes: all together; some of it by schema, if there are several."""
    whole = {name: Paired(group, name, worse) for name, (group, worse) in MEASURES.items()}
    largest = sorted(schemas, key=lambda name: (-len(schemas[name].filled), name))[:MAX_SCHEMAS]
    by_schema = {
        (name, schema): Paired(MEASURES[name][0], name, MEASURES[name][1], schema)
        for schema in (largest if len(schemas) > 1 else ())
        for name in BY_SCHEMA
    }
    codes: dict[str, Paired] = {}
    complete = {schema: iter(found.completeness()) for schema, found in schemas.items()}
    for one, two in matched:
        mine, theirs = dict(one.values), dict(two.values)
        mine["completeness"], theirs["completeness"] = next(complete[one.schema])
        if score is not None:
            for side, values in ((one, mine), (two, theirs)):
                if (agrees := score(one.schema, side.document_id, side.record)) is not None:
                    values["gold"] = agrees
        for name in MEASURES:
            if name in mine and name in theirs:
                whole[name].add(mine[name], theirs[name])
                if (name, one.schema) in by_schema:
                    by_schema[name, one.schema].add(mine[name], theirs[name])
        _count_codes(codes, one, two)
    yield from (one for one in (*whole.values(), *by_schema.values()) if one.documents)
    yield from (_of_all(codes[code], len(matched)) for code in sorted(codes))


def _count_codes(codes: dict[str, Paired], one: Seen, two: Seen) -> None:
    for code in one.codes | two.codes:
        if code not in codes:
            codes[code] = Paired("problem", code, int(costs_validity(code)))
        codes[code].add(float(code in one.codes), float(code in two.codes))


def _of_all(paired: Paired, documents: int) -> Paired:
    """Pairs that have a code on neither side count, too."""
    paired.documents = documents
    return paired


def _shifts(matched: Sequence[Pair], alpha: float) -> Comparison:
    """Fields that are distributed differently, among pairs with a record in both runs: `observe.shift`, whose tests are
    of samples that have nothing to do with each other and so too cautious for pairs."""
    sides: tuple[dict[str, Profile], dict[str, Profile]] = ({}, {})
    for pair in matched:
        if all(seen.packed is not None for seen in pair):
            for profiles, seen in zip(sides, pair, strict=True):
                name = pair[0].schema
                profiles.setdefault(name, Profile(name)).add(seen.record, seen.document_id)
    return compare(*sides, alpha=alpha * SHARES_OF_ALPHA["shifts"])


def _flips(matched: Sequence[Pair]) -> Iterator[Example]:
    """Documents that newly failed, rejected ones first, and that newly passed."""
    failed = [pair for pair in matched if pair[0].status == "valid" != pair[1].status]
    passed = [pair for pair in matched if pair[1].status == "valid" != pair[0].status]
    for what, pairs in (("newly failed", failed), ("newly passed", passed)):
        pairs.sort(key=lambda pair: "rejected" not in (pair[0].status, pair[1].status))
        for one, two in pairs[:MAX_FLIPS]:
            yield Example(what, one.schema, one.document_id, one.told, two.told)


def _changed(schemas: Mapping[str, SchemaPairs], diffs: Sequence[FieldDiff]) -> Iterator[Example]:
    for one in diffs[:SHOWN_FIELDS]:
        yield from schemas[one.schema].fields[one.pointer].examples


def _by_difference(one: FieldDiff) -> tuple[float, str, str]:
    return -one.differ / max(1, one.documents), one.schema, one.pointer


def _warnings(pairing: Pairing, schemas: Mapping[str, SchemaPairs]) -> Iterator[str]:
    """What of the documents themselves limits what can be said."""
    if pairing.only_a or pairing.only_b:
        yield (
            f"{pairing.only_a} documents are only in A and {pairing.only_b} only in B: nothing below is of them. If "
            "they failed to arrive rather than were left out, that is the finding."
        )
    if pairing.repeated:
        yield f"{pairing.repeated} rows repeat an id and are in no pair."
    if passed := sum(found.passed_over for found in schemas.values()):
        yield f"{passed} values of further fields than are kept of a schema are left out."
