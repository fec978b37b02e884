"""Keywords that hold schemas: members of objects and arrays, conditions, unions. What is compared is what applies.

A key that one side does not declare is compared with what that side says of undeclared keys, an item beyond
`prefixItems` with `items`. Names are not run against the patterns of `patternProperties`, which a stranger wrote:
where these matter, both answers are assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pipeline.schema.drift.found import ABSENT, FREE, Finding, Found, Pair, presence
from pipeline.schema.drift.prints import Prints
from pipeline.schema.drift.values import dependencies, required

_CONDITIONS = ("not", "if", "then", "else")
_ONE = {"propertyNames": "object", "unevaluatedProperties": "object", "unevaluatedItems": "array"}

MEMBER_KEYWORDS = frozenset(
    {*_CONDITIONS, *_ONE, "properties", "patternProperties", "additionalProperties", "required", "dependentRequired"}
    | {"dependentSchemas", "items", "prefixItems", "contains"}
)


def same_members(
    old: Mapping[str, Any], new: Mapping[str, Any], types: frozenset[str], prints: Prints
) -> Iterator[Found]:
    """Differences of members and conditions. `types` are those that both sides can have: others are not looked into."""
    if "object" in types:
        yield from required(old, new)
        yield from dependencies(old, new)
        yield from _properties(old, new)
        yield from _renamed(old, new, prints)
        yield from _map("patternProperties", old, new)
        yield from _map("dependentSchemas", old, new)
        rest, later = (schema.get("additionalProperties", FREE) for schema in (old, new))
        yield Pair(rest, later, ("additionalProperties",))
    if "array" in types:
        yield from _items(old, new)
    for keyword, family in _ONE.items():
        if family in types:
            yield from _one(keyword, old, new)
    for keyword in _CONDITIONS:
        yield from _one(keyword, old, new)


def _one(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Found]:
    was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
    if was is ABSENT and now is ABSENT:
        return
    if was is ABSENT or now is ABSENT:
        # A condition without its `then` and `else`, or these without it, refuse nothing; assumed is that they do.
        yield presence("constraint", keyword, was, now)
    elif keyword == "not":
        yield Pair(was, now, (keyword,), "flip", in_place=True)
    elif keyword == "if":
        yield Pair(was, now, (keyword,), "exact", in_place=True)
    else:
        yield Pair(was, now, (keyword,), in_place=keyword in _CONDITIONS)


def _properties(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Found]:
    was, now = old.get("properties", {}), new.get("properties", {})
    for name in now:
        if name in was:
            if not (_is_free(was[name]) and _is_free(now[name])):  # closing declares many of these
                yield Pair(was[name], now[name], ("properties", name))
        else:
            yield from _undeclared(name, old, ABSENT, now[name])
    for name in was:
        if name not in now:
            yield from _undeclared(name, new, was[name], ABSENT)
    if [name for name in was if name in now] != [name for name in now if name in was]:
        yield Finding("property_order", ("properties",), list(was), list(now))


def _undeclared(name: str, silent: Mapping[str, Any], before: Any, after: Any) -> Iterator[Found]:
    """A property that one side declares; `silent` is the schema that does not."""
    steps, fallback = ("properties", name), silent.get("additionalProperties", FREE)
    added = before is ABSENT
    declared = after if added else before
    wider = fallback is False and declared is not False
    # Where the silent side has patterns, one of them may be all that held the key, or none.
    tighter = not _is_free(declared) and (_is_free(fallback) or bool(silent.get("patternProperties")))
    keeps, adds_nothing = (not tighter, not wider) if added else (not wider, not tighter)
    if added:
        yield Finding("property_added", steps, ABSENT, after, keeps, adds_nothing, readers="widening")
    else:
        yield Finding("property_removed", steps, before, ABSENT, keeps, adds_nothing, readers="breaking")
    if fallback is not False and not _is_free(fallback):
        yield Pair(fallback, declared, steps) if added else Pair(declared, fallback, steps)


def _is_free(schema: Any) -> bool:
    return schema is True or schema == {}


def _renamed(old: Mapping[str, Any], new: Mapping[str, Any], prints: Prints) -> Iterator[Finding]:
    """A hint where exactly one property that is gone has the schema of exactly one that is new."""
    was, now = old.get("properties", {}), new.get("properties", {})
    if was.keys() == now.keys():
        return
    places: dict[str, tuple[list[str], list[str]]] = {}
    for side, names, other in ((0, was, now), (1, now, was)):
        for name in names.keys() - other.keys():
            places.setdefault(prints.of(names[name]), ([], []))[side].append(name)
    for name, fresh in sorted((gone[0], fresh[0]) for gone, fresh in places.values() if len(gone) == len(fresh) == 1):
        yield Finding("renamed?", ("properties", fresh), name, fresh)


def _map(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Found]:
    was, now = old.get(keyword, {}), new.get(keyword, {})
    patterns = keyword == "patternProperties"
    for key in {**was, **now}:
        if key in was and key in now:
            yield Pair(was[key], now[key], (keyword, key), in_place=not patterns)
            continue
        found = presence("constraint", keyword, was.get(key, ABSENT), now.get(key, ABSENT))
        silent = old if key in now else new
        # A pattern also takes keys away from `additionalProperties`: unless that says nothing, both may happen.
        moved = patterns and not _is_free(silent.get("additionalProperties", FREE))
        yield Finding(
            *(found.kind, (keyword, key), found.before, found.after),
            keeps=found.keeps and not moved,
            adds_nothing=found.adds_nothing and not moved,
        )


def _items(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Found]:
    was, now = old.get("prefixItems", []), new.get("prefixItems", [])
    rest, later = old.get("items", FREE), new.get("items", FREE)
    if len(was) != len(now):
        yield Finding("tuple_length", ("prefixItems",), len(was), len(now))
    for index in range(max(len(was), len(now))):
        before, after = (items[index] if index < len(items) else other for items, other in ((was, rest), (now, later)))
        steps = ("prefixItems", str(index)) if index < len(now) else ("items",)
        yield Pair(before, after, steps)
    yield Pair(rest, later, ("items",))
    before, after = old.get("contains", ABSENT), new.get("contains", ABSENT)
    if before is ABSENT and after is ABSENT:
        return
    if before is ABSENT or after is ABSENT:
        yield presence("constraint", "contains", before, after)
    else:  # with a greatest count, fewer and more items that match are both restrictions
        capped = "maxContains" in chain(old, new)
        yield Pair(before, after, ("contains",), "exact" if capped else "same", in_place=True)
