"""Profile: what the records of one schema look like, field by field, in bounded memory (docs/field-drift.md).

Profiles of parts add up to that of the whole, whatever the parts and their order. A document counts once in each
field: of an array one item stands for all, chosen by a hash of the document's key, so that what is counted is
independent and a long list does not outvote a hundred short ones.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.observe.spread import Sample, Spread
from pipeline.records import JsonValue
from pipeline.schema.walk import escape

MAX_FIELDS = 1000
"""Fields that are kept of a schema; `left_out` counts values of others, which only open objects can have."""
MAX_DEPTH = 32
MAX_POINTER = 300
MAX_VALUES = 256
"""Different texts that are kept of a field. A field with more is free text."""
MAX_LABEL = 60
"""Characters of a text that are kept; longer ones are told apart by a hash."""

_ITEM = "/*"
_STAR = "~*"
"""A key that is `*`: no pointer has a tilde before anything but 0 and 1, so it is taken for no item of an array."""
_LETTER = re.compile(r"[^\W\d_]")


@dataclass
class FieldProfile:
    """One field. `null`, `empty` (blank text, array or object without members) and `filled` count documents; in those
    left over it is absent: see `Profile.absent`. `kinds` are the JSON types of what is filled. `values` are its texts
    and booleans, unless `free`: more different ones than are kept. `lengths` are of texts in characters, `items` of
    arrays, both of filled ones; `texts` is a sample to tell languages by."""

    filled: int = 0
    null: int = 0
    empty: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    free: bool = False
    lengths: Spread = field(default_factory=Spread)
    items: Spread = field(default_factory=Spread)
    numbers: Spread = field(default_factory=Spread)
    texts: Sample = field(default_factory=Sample)

    def add(self, value: JsonValue, rank: int) -> None:
        """Count a value, not what it contains. `rank` is that of its document."""
        if value is None:
            self.null += 1
        elif (isinstance(value, str) and not value.strip()) or (isinstance(value, list | dict) and not value):
            self.empty += 1
        else:
            self.filled += 1
            self._add_filled(value, rank)

    def _add_filled(self, value: JsonValue, rank: int) -> None:
        if isinstance(value, str):
            self.kinds["string"] += 1
            self._add_value(value)
            self.lengths.add(len(value))
            if _LETTER.search(value):
                self.texts.add(rank, value)
        elif isinstance(value, bool):
            self.kinds["boolean"] += 1
            self._add_value("true" if value else "false")
        elif isinstance(value, int | float):
            self.kinds["number"] += 1
            self.numbers.add(value)
        elif isinstance(value, list):
            self.kinds["array"] += 1
            self.items.add(len(value))
        else:
            self.kinds["object"] += 1

    def _add_value(self, text: str) -> None:
        if not self.free:
            self.values[text if len(text) <= MAX_LABEL else f"{text[:MAX_LABEL]}… {_hash(text):016x}"] += 1
            self._fit()

    def _fit(self) -> None:
        if self.free or len(self.values) > MAX_VALUES:
            self.free, self.values = True, Counter()

    def merge(self, other: FieldProfile) -> FieldProfile:
        """Add another one to this, and return this."""
        self.filled, self.null, self.empty = (
            self.filled + other.filled,
            self.null + other.null,
            self.empty + other.empty,
        )
        self.kinds.update(other.kinds)
        self.values.update(other.values)
        self.free = self.free or other.free
        self._fit()
        self.lengths.merge(other.lengths)
        self.items.merge(other.items)
        self.numbers.merge(other.numbers)
        self.texts.merge(other.texts)
        return self


@dataclass
class Profile:
    """Records of one schema. `statuses` counts documents by status where that is known (rejected ones have no
    record); `fields` has a JSON pointer for each field, `*` for items of an array."""

    schema: str
    records: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    fields: dict[str, FieldProfile] = field(default_factory=dict)
    left_out: int = 0

    def add(self, record: JsonValue, key: str) -> None:
        """Count one record. `key` tells its document from others, such as its id."""
        self.records += 1
        rank = _hash(key)
        todo: list[tuple[str, JsonValue, int]] = [("", record, 0)]
        while todo:
            pointer, value, depth = todo.pop()
            if not self._count(pointer, value, rank) or depth >= MAX_DEPTH or not value:
                continue
            if isinstance(value, dict):
                todo += [(f"{pointer}/{_token(name)}", child, depth + 1) for name, child in value.items()]
            elif isinstance(value, list):
                chosen = (rank ^ zlib.crc32(pointer.encode("utf-8", "surrogatepass"))) % len(value)
                todo.append((pointer + _ITEM, value[chosen], depth + 1))

    def _count(self, pointer: str, value: JsonValue, rank: int) -> bool:
        """Whether the field is kept."""
        one = self.fields.get(pointer)
        if one is None:
            if len(self.fields) >= MAX_FIELDS or len(pointer) > MAX_POINTER:
                self.left_out += 1
                return False
            one = self.fields[pointer] = FieldProfile()
        one.add(value, rank)
        return True

    def merge(self, other: Profile) -> Profile:
        """Add another one of the same schema to this, and return this."""
        self.records += other.records
        self.statuses.update(other.statuses)
        self.left_out += other.left_out
        for pointer, theirs in other.fields.items():
            if pointer in self.fields or len(self.fields) < MAX_FIELDS:
                self.fields.setdefault(pointer, FieldProfile()).merge(theirs)
            else:
                self.left_out += theirs.filled + theirs.null + theirs.empty
        return self

    def documents(self, pointer: str) -> int:
        """How many documents can have the field: all records, or those with an item of the array that it stands in."""
        array = _array(pointer)
        if array is None:
            return self.records
        return self.fields[array].items.counts.total() if array in self.fields else 0

    def absent(self, pointer: str) -> int:
        """In how many of these documents the key is not there, nor what should hold it."""
        one = self.fields.get(pointer, NO_FIELD)
        return self.documents(pointer) - one.filled - one.null - one.empty


NO_FIELD = FieldProfile()
"""A field that does not occur."""


def profile_of(schema: str, records: Iterable[tuple[str, JsonValue]]) -> Profile:
    """The profile of some records with the keys of their documents."""
    made = Profile(schema)
    for key, record in records:
        made.add(record, key)
    return made


def _token(key: str) -> str:
    """How a pointer names an object's member."""
    return _STAR if key == "*" else escape(key)


def _array(pointer: str) -> str | None:
    """The innermost array that a field stands in."""
    names = pointer.split("/")
    last = max((place for place, name in enumerate(names) if name == "*"), default=0)
    return "/".join(names[:last]) if last else None


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
