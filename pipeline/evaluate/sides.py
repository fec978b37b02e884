"""Sides: the documents that several committed runs have in common, and what each is worth in each of them.

A measure of a document is a part and its whole, so that rates over documents and over values are made alike: `valid` is
(0 or 1, 1), `required` the required values that are filled and all of them, `output_tokens` (so many, 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pipeline.errors import OutputError
from pipeline.evaluate.fieldwise import leaves
from pipeline.evaluate.measured import Seen, seen_of
from pipeline.evaluate.same import has_value
from pipeline.observe.paths import answers_of, starred
from pipeline.observe.required import Asked, asked_of, states_under
from pipeline.records import JsonValue, Outcome
from pipeline.report.rows import outcome_of, was_asked
from pipeline.runtime.output.browse import Browsed, chosen

SHARES = ("valid", "usable", "as_it_came", "legal", "semantic", "cut", "required", "empty", "unsupported", "clipped")
"""Measures that are shares from 0 to 1."""
AMOUNTS = ("attempts", "prompt_tokens", "output_tokens", "seconds")
"""Measures of a document that are amounts."""

Part = tuple[float, float]
Key = tuple[str, str]
"""A document: its schema's name and its id."""

_REPEATED = "duplicate_id"
_FIRST = {"as_it_came": "first_schema", "semantic": "first_semantic", "cut": "truncated"}


@dataclass(frozen=True, slots=True)
class Beside:
    """One document as one run left it. `legal`: its first answer, as it came or after repair of its format, satisfies
    the schema. `parts` are its measures by name, `clipped` the clipped mass and the tokens of values by field."""

    seen: Seen
    legal: bool
    parts: Mapping[str, Part]
    clipped: Mapping[str, Part]


@dataclass(frozen=True, slots=True)
class Together:
    """The documents that all runs have, each as every run left it, in the order of the runs. `apart` counts rows whose
    document is not in all of them or not alone under its id, `unread` rows of a large first run that were not read."""

    documents: Mapping[Key, tuple[Beside, ...]]
    apart: int
    unread: int


def together(runs: Sequence[Browsed], bodies: Mapping[str, Mapping[str, Any]], most: int) -> Together:
    """Read runs beside each other, of a large first one evenly chosen units with about `most` documents.

    Raises:
        OutputError: a run cannot be read, or they have no document in common.
    """
    asked = {name: asked_of(body) for name, body in bodies.items()}
    first = runs[0]
    base = Browsed(first.store, first.manifest, first.record, chosen(first.files, most))
    sampled = base.documents < first.documents
    found: dict[Key, list[Beside]] = {}
    apart = 0
    for number, run in enumerate((base, *runs[1:])):
        only = {name for _, name in found} if number and sampled else None
        for key, one in _sides(run, only, asked):
            if len(found.get(key, ())) == number:
                found.setdefault(key, []).append(one)
            else:  # of a document that an earlier run has not, or a second row of this one
                apart += 1
    whole = {key: tuple(sides) for key, sides in found.items() if len(sides) == len(runs)}
    if not whole:
        raise OutputError(
            f"{' and '.join(run.store.where for run in runs)} have no document in common: documents are joined by id "
            "and schema. Give runs over the same input, with an id column."
        )
    return Together(whole, apart + len(found) - len(whole), first.documents - base.documents)


def _sides(run: Browsed, only: Set[str] | None, asked: Mapping[str, Asked]) -> Iterator[tuple[Key, Beside]]:
    for row in run.rows(only):
        outcome = outcome_of(row)
        if not any(problem.code == _REPEATED for problem in outcome.problems):
            yield (outcome.schema, outcome.document_id), beside(outcome, row, asked.get(outcome.schema))


def beside(outcome: Outcome, row: Mapping[str, Any], asked: Asked | None) -> Beside:
    """What is held of a row; `asked` is what its schema requires, None if that is not known."""
    seen = seen_of(outcome)
    parts: dict[str, Part] = {name: (seen.values[name], 1.0) for name in ("valid", "usable", *AMOUNTS[:3])}
    parts |= {name: (seen.values[value], 1.0) for name, value in _FIRST.items() if value in seen.values}
    parts["seconds"] = (seen.seconds, 1.0)
    legal = False
    if was_asked(outcome):
        first = next((answer for answer in answers_of(outcome) if not answer.failed), None)
        legal = first is not None and first.schema
        parts["legal"] = (float(legal), 1.0)
    if asked is not None and (states := states_under({} if outcome.record is None else outcome.record, asked)):
        parts["required"] = (float(states["filled"]), float(states.total()))
    if outcome.record is not None:
        parts["empty"] = _empty(outcome.record)
    if matches := [one.match for one in outcome.fields if one.match and outcome.record is not None]:
        parts["unsupported"] = (float(matches.count("none")), float(len(matches)))
    clipped = _clipped(row)
    parts["clipped"] = (sum(mass for mass, _ in clipped.values()), sum(tokens for _, tokens in clipped.values()))
    return Beside(seen, legal, {name: part for name, part in parts.items() if part[1]}, clipped)


def _clipped(row: Mapping[str, Any]) -> dict[str, Part]:
    """Probability mass that the constraint took from values, and their tokens, by field; nothing without an audit."""
    found: dict[str, Part] = {}
    for one in row.get("clipped") or ():
        if one["part"] == "value" and row.get("audit") == "done":
            mass, tokens = found.get(place := starred(one["pointer"]), (0.0, 0.0))
            found[place] = (mass + one["mass"], tokens + one["tokens"])
    return found


def _empty(record: JsonValue) -> Part:
    """Fields of a record that hold nothing: null, text of blanks, an empty array or object."""
    fields = leaves(record)
    return float(sum(not any(has_value(one) for one in values) for values in fields.values())), float(len(fields))
