"""Checks of values against each other and against lists: repeated items, order, lookups. They know no problem codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from dataclasses import dataclass
from decimal import Decimal

from pipeline.records import JsonValue
from pipeline.schema.declared import Order, Unique
from pipeline.schema.moments import Moment, before, moment_of
from pipeline.schema.walk import escape, unescape

ANY = "*"
"""The token of a lookup's pointer that stands for any item or key."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something at `pointer`; `sure` is false where it could not be judged."""

    pointer: str
    message: str
    sure: bool = True


def value_at(value: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer; None if nothing is there."""
    return next((found for _, found in values_at(value, pointer, wild=False)), None)


def values_at(value: JsonValue, pointer: str, *, wild: bool = True) -> Iterator[tuple[str, JsonValue]]:
    """All values at a JSON pointer, with their own pointers; `wild`: a token `*` stands for any item or key."""
    here = [("", value)]
    for token in pointer.split("/")[1:]:
        here = [inner for place, outer in here for inner in _step(place, outer, unescape(token), wild)]
    yield from here


def _step(place: str, value: JsonValue, token: str, wild: bool) -> Iterator[tuple[str, JsonValue]]:
    if wild and token == ANY and isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        yield from ((f"{place}/{escape(str(key))}", child) for key, child in inside)
    elif isinstance(value, dict) and token in value:
        yield f"{place}/{escape(token)}", value[token]
    elif isinstance(value, list) and token.isascii() and token.isdigit() and int(token[:9]) < len(value):
        yield f"{place}/{int(token[:9])}", value[int(token[:9])]


def repeated(items: list[JsonValue], unique: Unique) -> Iterator[Found]:
    """Each item that has, at all the pointers, the values of an earlier one. Items without one of them, or with null
    there, are like no other."""
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        values = [value_at(item, pointer) for pointer in unique.pointers]
        if any(value is None for value in values):
            continue
        first = seen.setdefault(_frozen(values), index)
        if first != index:
            what = ", ".join(pointer for pointer in unique.pointers if pointer)
            yield Found(f"/{index}", f"repeats item {first}" + (f" (same {what})" if what else ""))


def _frozen(value: JsonValue) -> Hashable:
    """A value that is equal for equal JSON: 1 and 1.0 are, true and 1 are not, the order of keys is irrelevant."""
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(child)) for key, child in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_frozen, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", value if isinstance(value, int) else Decimal(repr(value))
    return type(value).__name__, value


def out_of_order(value: dict[str, JsonValue], order: Order) -> Iterator[Found]:
    """Each value that comes before the one that should be earlier. Absent values and null are passed over."""
    last: tuple[str, JsonValue] | None = None
    for pointer in order.pointers:
        here = value_at(value, pointer)
        if here is None:
            continue
        if last is not None:
            decreases = _decreases(last[1], here)
            if decreases is None:
                yield Found(pointer, f"cannot be compared with {last[0]}", sure=False)
            elif decreases:
                yield Found(pointer, f"comes before {last[0]}")
        last = pointer, here


def _decreases(earlier: JsonValue, later: JsonValue) -> bool | None:
    one, other = _comparable(earlier), _comparable(later)
    if isinstance(one, Moment) and isinstance(other, Moment):
        return before(other, one)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return other < one
    return None


def _comparable(value: JsonValue) -> Moment | Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    return moment_of(value) if isinstance(value, str) else None


def missing(record: JsonValue, pointer: str, known: Set[str]) -> Iterator[Found]:
    """Each value at a lookup's pointer that is not among the known texts. Null is no value."""
    for place, value in values_at(record, pointer):
        if value is None:
            continue
        text = looked_up(value)
        if text is None:
            yield Found(place, "is a list or an object, which nothing is looked up by")
        elif text not in known:
            yield Found(place, "is not in the list that it is looked up in")


def looked_up(value: JsonValue) -> str | None:
    """A value as a lookup knows it: texts as they are, whole numbers as decimal digits (12.0 as 12), other numbers as
    JSON shows them, `true`, `false`; None for a list or an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".partition(".")[0] if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else None
