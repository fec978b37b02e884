"""Completeness: of each field of the records, how often it holds a value, and how often the document supports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.observe.paths import starred
from pipeline.records import JsonValue, Outcome
from pipeline.schema.walk import escape

MAX_FIELDS = 400
MAX_DEPTH = 12

State = str
"""`filled`, `empty` ("", [] or {}), or `null` (null or absent: columns do not tell the two apart)."""


@dataclass(slots=True)
class FieldCounts:
    """One field over the records of a schema, or over the items of a list: in which state it was found, and by which
    kind of match its values were supported."""

    states: Counter[State] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)

    @property
    def asked(self) -> int:
        """Places where the field could stand."""
        return self.states.total()


class Completeness:
    """The fields of one schema, in its order. `records` counts records; `passed_over` places beyond the bounds."""

    def __init__(self) -> None:
        self.records = 0
        self.fields: dict[str, FieldCounts] = {}
        self.passed_over = 0

    def add(self, outcome: Outcome) -> None:
        """Count the record of an outcome, if it has one."""
        if outcome.record is None:
            return
        self.records += 1
        for place, state in states_of(outcome.record):
            if (counts := self._counts(place)) is not None:
                counts.states[state] += 1
        for found in outcome.fields:
            if found.match and (counts := self._counts(self._place(found.pointer))) is not None:
                counts.matches[found.match] += 1

    def _place(self, pointer: str) -> str:
        """The field that a leaf counts for: its own (a key may look like an index), or the list that holds it."""
        place = starred(pointer)
        while place not in self.fields and place.endswith("/*"):
            place = place.removesuffix("/*")
        return place

    def _counts(self, place: str) -> FieldCounts | None:
        if place not in self.fields and len(self.fields) >= MAX_FIELDS:
            self.passed_over += 1
            return None
        return self.fields.setdefault(place, FieldCounts())


def states_of(value: JsonValue, place: str = "", depth: int = 0) -> Iterator[tuple[str, State]]:
    """(place, state) of every leaf, list and object of a value but the whole record; items of a list are looked into
    where they are objects. An object counts when it is there as when it is null: else none would ever be filled."""
    if place or not isinstance(value, dict):
        yield starred(place), "null" if value is None else "empty" if value in ("", [], {}) else "filled"
    if depth >= MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, child in value.items():
            yield from states_of(child, f"{place}/{escape(name)}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from states_of(item, f"{place}/0", depth + 1)
