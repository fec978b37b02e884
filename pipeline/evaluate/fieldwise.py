"""Fieldwise: how the records of pairs differ, field by field, in bounded memory.

A field is a JSON pointer with `*` for the items of arrays. What a document has there are its filled leaves, in order
and as often as they occur; a field of an array's items counts once a document, as one that stands elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pipeline.evaluate.comparison import Example, FieldDiff
from pipeline.evaluate.measured import Seen
from pipeline.records import JsonValue
from pipeline.report.shown import cut
from pipeline.schema.walk import escape

MAX_FIELDS = 400
"""Fields that are kept of a schema; those of further keys, which only open objects can have, are counted together."""
MAX_DEPTH = 32
MAX_POINTER = 300
MAX_VALUES = 256
"""Different texts that are told apart in a field; one with more is free text."""
MAX_LABEL = 60
DIGITS = 12
"""Decimals of a difference: of equal ones, rounding errors must not make two."""
MAX_EXAMPLES = 3
"""Changed documents that are kept of a field."""
_SHOWN = 80

Leaves = Mapping[str, Sequence[JsonValue]]


@dataclass
class FieldPairs:
    """One field over the pairs that have a record in both runs. `presence` counts pairs by the difference B - A of its
    being filled; where it is on both sides, `amounts` does so by the `items`, their mean `number` and mean `length`,
    of which `before` sums A's side. `values` has by label how many pairs gained and lost it, `held` how many A has."""

    same: int = 0
    changed: int = 0
    presence: Counter[float] = field(default_factory=Counter)
    amounts: dict[str, Counter[float]] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    values: dict[str, list[int]] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    free: bool = False
    examples: list[Example] = field(default_factory=list)

    def add(self, mine: Sequence[JsonValue], theirs: Sequence[JsonValue]) -> bool:
        """Count a pair, and say whether it differs."""
        self.presence[float(bool(theirs)) - float(bool(mine))] += 1
        alike = canonical(mine) == canonical(theirs)
        if mine and theirs:
            self.same += alike
            self.changed += not alike
            self._add_amount("items", float(len(mine)), float(len(theirs)))
            for name, kind in (("number", _numbers), ("length", _lengths)):
                one, two = kind(mine), kind(theirs)
                if one and two:
                    self._add_amount(name, fmean(one), fmean(two))
        if not self.free:
            self._add_values(mine, theirs, alike)
        return not alike

    def _add_amount(self, name: str, mine: float, theirs: float) -> None:
        self.amounts.setdefault(name, Counter())[round(theirs - mine, DIGITS)] += 1
        self.before[name] = self.before.get(name, 0.0) + mine

    def _add_values(self, mine: Sequence[JsonValue], theirs: Sequence[JsonValue], alike: bool) -> None:
        before, now = _labels(mine), _labels(theirs)
        self.held.update(before)
        for label in before | now:
            counts = self.values.setdefault(label, [0, 0])
            if not alike:
                counts[0] += label in now and label not in before
                counts[1] += label in before and label not in now
        if len(self.values) > MAX_VALUES:
            self.free, self.values, self.held = True, {}, Counter()


class SchemaPairs:
    """The fields of one schema, in the order in which records have them. `documents` are pairs with two records."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.documents = 0
        self.fields: dict[str, FieldPairs] = {}
        self.passed_over = 0
        self.filled: list[tuple[frozenset[str], frozenset[str]]] = []

    def add(self, one: Seen, two: Seen) -> None:
        """Count a pair; without a record on a side nothing is filled there."""
        records = one.record, two.record
        mine, theirs = ({} if record is None else leaves(record) for record in records)
        places = dict.fromkeys([*mine, *theirs])
        kept = [place for place in places if self._keeps(place)]
        self.filled.append((self._whole(mine), self._whole(theirs)))
        if None in records:
            return
        self.documents += 1
        for place in kept:
            before, now = mine.get(place, ()), theirs.get(place, ())
            if not before and not now:
                continue
            found = self.fields[place]
            if found.add(before, now) and len(found.examples) < MAX_EXAMPLES:
                found.examples.append(Example(place, self.schema, one.document_id, shown(before), shown(now)))

    def completeness(self) -> list[tuple[float, float]]:
        """Of each pair, the share of the fields known that are filled in A and in B: of single values, and of arrays as
        a whole, since how many items there should be is not known."""
        heads = {_head(place) for place in self.fields}
        inner = {place.rpartition("/")[0] for place in heads}
        while more := {place.rpartition("/")[0] for place in inner} - inner:
            inner |= more
        known = frozenset(heads - inner)
        of = max(1, len(known))
        return [(len(mine & known) / of, len(theirs & known) / of) for mine, theirs in self.filled]

    def diffs(self) -> Iterator[FieldDiff]:
        """The fields' counts."""
        for place, one in self.fields.items():
            appeared, vanished = one.presence[1.0], one.presence[-1.0]
            if one.same or one.changed or appeared or vanished:
                yield FieldDiff(self.schema, place, one.same, one.changed, appeared, vanished, self.documents)

    def _keeps(self, place: str) -> bool:
        if place in self.fields:
            return True
        if len(self.fields) >= MAX_FIELDS or len(place) > MAX_POINTER:
            self.passed_over += 1
            return False
        self.fields[place] = FieldPairs()
        return True

    def _whole(self, found: Leaves) -> frozenset[str]:
        return frozenset(_head(place) for place, values in found.items() if values and place in self.fields)


def leaves(record: JsonValue) -> dict[str, list[JsonValue]]:
    """By field, the filled leaves of a record, in order. Null, blank texts, empty arrays and objects fill nothing, but
    their field is there."""
    found: dict[str, list[JsonValue]] = {}
    todo: list[tuple[str, JsonValue, int]] = [("", record, 0)]
    while todo:
        place, value, depth = todo.pop()
        if isinstance(value, dict) and value and depth < MAX_DEPTH:
            todo += [(f"{place}/{_token(name)}", child, depth + 1) for name, child in reversed(value.items())]
        elif isinstance(value, list) and value and depth < MAX_DEPTH:
            todo += [(f"{place}/*", item, depth + 1) for item in reversed(value)]
        else:
            values = found.setdefault(place, [])
            if value is not None and value not in ({}, []) and not (isinstance(value, str) and not value.strip()):
                values.append(value)
    return found


def canonical(values: Sequence[JsonValue]) -> list[str]:
    """Values that are equal as JSON have equal ones: 1.0 is 1, true is not."""
    return [_canonical(value) for value in values]


def shown(values: Sequence[JsonValue]) -> str:
    """Values as an example shows them, bounded."""
    return cut(", ".join(json.dumps(value, ensure_ascii=False)[:_SHOWN] for value in values[:5]), _SHOWN) or "nothing"


def _canonical(value: JsonValue) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _labels(values: Sequence[JsonValue]) -> set[str]:
    """Texts and truth values, to be counted by."""
    texts = {value for value in values if isinstance(value, str)}
    labels = {text if len(text) <= MAX_LABEL else f"{text[:MAX_LABEL]}… {len(text)} {_hash_of(text)}" for text in texts}
    return labels | {_canonical(value) for value in values if isinstance(value, bool)}


def _hash_of(text: str) -> str:
    """A few digits that tell long texts apart."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _numbers(values: Sequence[JsonValue]) -> list[float]:
    """Finite numbers: whole ones may be too great for a float."""
    return [float(value) for value in values if _is_number(value) and abs(value) < 1e300]


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lengths(values: Sequence[JsonValue]) -> list[float]:
    return [float(len(value)) for value in values if isinstance(value, str)]


def _head(place: str) -> str:
    """The field itself, or the outermost array that it stands in."""
    return place.partition("/*")[0]


def _token(name: str) -> str:
    """How a pointer names an object's member; a key that is `*` is no item."""
    return "~*" if name == "*" else escape(name)
