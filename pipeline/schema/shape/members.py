"""Members: arrays and objects from all the schemas that judge them together.

An item or a key is judged by the schemas of every place that says something about it; `shape_of` turns those into a
shape. Names are matched by patterns as the validator matches them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.schema.pattern.ast import Malformed, Node, Unsupported
from pipeline.schema.pattern.parse import parse
from pipeline.schema.shape.merge import Places, largest, smallest
from pipeline.schema.shape.shapes import ANYTHING, NEVER, Array, Object, Property, Shape, Union
from pipeline.schema.shape.source import Conjunction, Source, closure, judges_of_item, judges_of_key, key_order
from pipeline.schema.walk import escape

ShapeOf = Callable[[Conjunction], Shape]

MAX_ITEMS_APART = 64
"""Items whose schemas are kept apart by position; a longer prefixItems is left to the validator."""

_UNTOLD = {
    "uniqueItems": "no grammar compares items",
    "contains": "no grammar counts items of a kind",
    "minContains": "no grammar counts items of a kind",
    "maxContains": "no grammar counts items of a kind",
}


def array(places: Places, shape_of: ShapeOf) -> Shape:
    """Arrays: the conjunction of each position's schemas, and of those for all further items."""
    source = places.source
    for keyword, why in _UNTOLD.items():
        for pointer, _, value in places.with_keyword(keyword):
            if keyword != "uniqueItems" or value is True:
                source.leave(pointer, keyword, why)
    for pointer, _, value in places.with_keyword("unevaluatedItems"):
        if value is not True:
            source.leave(pointer, "unevaluatedItems", "which items count as evaluated depends on the items")
    longest = max((len(value) for _, _, value in places.with_keyword("prefixItems")), default=0)
    if longest > MAX_ITEMS_APART:
        for pointer, _, _ in places.with_keyword("prefixItems", "items"):
            source.leave(pointer, "prefixItems", f"more than {MAX_ITEMS_APART} positions")
            source.leave(pointer, "items", f"beside more than {MAX_ITEMS_APART} positions")
        return Array((), ANYTHING, largest(places, "minItems"), smallest(places, "maxItems"), places.sites("type"))
    first = [shape_of(_judges_of_item(places, index)) for index in range(longest)]
    rest = shape_of(_judges_of_item(places, longest))
    sites = places.sites("type", "minItems", "maxItems", "prefixItems", "items")
    return _bounded_array(first, rest, (largest(places, "minItems"), smallest(places, "maxItems")), sites)


def _bounded_array(first: list[Shape], rest: Shape, bounds: tuple[int, int | None], sites: Any) -> Shape:
    minimum, maximum = bounds
    if NEVER in first:
        first = first[: first.index(NEVER)]
        rest = NEVER
    if rest == NEVER:
        maximum = len(first) if maximum is None else min(maximum, len(first))
    if maximum is not None:
        first = first[:maximum]
        rest = NEVER if maximum <= len(first) else rest
    return NEVER if maximum is not None and minimum > maximum else Array(tuple(first), rest, minimum, maximum, sites)


def _judges_of_item(places: Places, index: int) -> Conjunction:
    return tuple(dict.fromkeys(judges_of_item(places.source, places.pointers, index)))


def object_(places: Places, conjunction: Conjunction, shape_of: ShapeOf) -> Shape:
    """Objects: declared keys in the order of the text, each with the schemas of all places, then undeclared ones.

    `conjunction` is what the places come from, before choices were made: it ranks the keys.
    """
    required = dict.fromkeys(name for _, _, names in places.with_keyword("required") for name in names)
    evaluated = _evaluated(places)
    properties = _properties(places, conjunction, shape_of, (set(required), evaluated))
    if any(item.required and item.shape == NEVER for item in properties):
        return NEVER
    rest, names = (NEVER, None) if evaluated is not None else _rest(places, shape_of)
    for name in required.keys() - {item.name for item in properties}:
        if rest == NEVER or not _may_be_named(places, name) or shape_of(_judges_of_key(places, name)) == NEVER:
            return NEVER
        for pointer, keyword, named in places.with_keyword("required"):
            if name in named:
                places.source.leave(pointer, keyword, "a key that no properties declare has no place in the order")
    least, most = max(largest(places, "minProperties"), len(required)), smallest(places, "maxProperties")
    possible = sum(item.shape != NEVER for item in properties)
    if (rest == NEVER and least > possible) or (most is not None and least > most):
        return NEVER
    sites = places.sites("type", "minProperties", "maxProperties", "required", "propertyNames", "patternProperties")
    return Object(tuple(properties), rest, least, most, names, sites)


def _properties(
    places: Places, conjunction: Conjunction, shape_of: ShapeOf, limits: tuple[set[str], set[str] | None]
) -> list[Property]:
    """The declared keys in the order of the text. `limits`: the required names, and those that count as evaluated."""
    required, evaluated = limits
    known = dict.fromkeys(name for _, _, members in places.with_keyword("properties") for name in members)
    known |= dict.fromkeys(evaluated or ())
    order = key_order(places.source, conjunction)
    known |= dict.fromkeys(order)  # what another branch declares has its place in the order here, too
    properties = []
    for name in sorted(known, key=lambda name: order.get(name, len(order))):
        judges = _judges_of_key(places, name)
        allowed = (evaluated is None or name in evaluated) and _may_be_named(places, name)
        origins = tuple(places.source.origin(judge, "*") for judge in judges)
        properties.append(Property(name, shape_of(judges) if allowed else NEVER, name in required, origins))
    return properties


def _judges_of_key(places: Places, name: str) -> Conjunction:
    return tuple(dict.fromkeys(judges_of_key(places.source, places.pointers, name)))


def _may_be_named(places: Places, name: str) -> bool:
    return all(
        places.source.accepts(f"{pointer}/propertyNames", name)
        for pointer, _, _ in places.with_keyword("propertyNames")
    )


def _rest(places: Places, shape_of: ShapeOf) -> tuple[Shape, Node | None]:
    """The shape of undeclared keys' values, and the pattern of their names.

    Which patterns a name matches is not followed: a value has to be what any pattern, or none, asks for.
    """
    source = places.source
    others = tuple(f"{pointer}/additionalProperties" for pointer, _, _ in places.with_keyword("additionalProperties"))
    matched = [
        (pointer, pattern) for pointer, _, patterns in places.with_keyword("patternProperties") for pattern in patterns
    ]
    unmatched = shape_of(others)
    names = _names(places)
    if not matched:
        return unmatched, names
    options = [shape_of(_judges_of_match(places, pointer, pattern)) for pointer, pattern in matched]
    if unmatched == NEVER and names is None and len(matched) == 1 and not places.sites("propertyNames"):
        try:
            return options[0], parse(matched[0][1])
        except (Unsupported, Malformed) as error:
            source.leave(matched[0][0], "patternProperties", str(error))
            source.leave(matched[0][0], "additionalProperties", "beside patternProperties")
            return options[0], None
    for pointer, _ in matched:
        source.leave(pointer, "patternProperties", "which pattern a key matches is not followed")
        source.leave(pointer, "additionalProperties", "beside patternProperties")
    kept = [option for option in [unmatched, *options] if option != NEVER]
    return Union(tuple(kept)) if kept else NEVER, names


def _judges_of_match(places: Places, pointer: str, pattern: str) -> Conjunction:
    """What judges an undeclared key that matches a pattern, as far as no other pattern has a say."""
    others = [
        f"{place}/additionalProperties"
        for place, node in places.nodes()
        if place != pointer and "additionalProperties" in node and not node.get("patternProperties")
    ]
    return (f"{pointer}/patternProperties/{escape(pattern)}", *others)


def _names(places: Places) -> Node | None:
    """The pattern that undeclared keys have to match, if propertyNames is no more than one."""
    found: Node | None = None
    for pointer, _, value in places.with_keyword("propertyNames"):
        if value is True or value == {}:
            continue
        asked = value if isinstance(value, dict) else {}
        if set(asked) - {"type"} == {"pattern"} and asked.get("type", "string") == "string" and found is None:
            try:
                found = parse(asked["pattern"])
                continue
            except (Unsupported, Malformed):
                pass
        places.source.leave(pointer, "propertyNames", "undeclared keys may have any name")
    return found


def _evaluated(places: Places) -> set[str] | None:
    """The keys that `unevaluatedProperties: false` lets pass; None where it is absent or cannot be followed.

    With choices inside, a key counts as known if any branch declares it: the validator decides which one was taken.
    """
    found: set[str] | None = None
    for pointer, _, value in places.with_keyword("unevaluatedProperties"):
        if value is True:
            continue
        names = _declared_within(places.source, pointer) if value is False else None
        if names is None:
            places.source.leave(pointer, "unevaluatedProperties", "which keys count as evaluated is not followed")
            continue
        sure, all_names = names
        if not sure:
            places.source.leave(pointer, "unevaluatedProperties", "keys of every branch are let pass")
        found = all_names if found is None else found & all_names
    return found


def _declared_within(source: Source, pointer: str) -> tuple[bool, set[str]] | None:
    """(no branch decides, the declared keys) of a schema; None if some keys have no names."""
    names: set[str] = set()
    for place in closure(source, (pointer,), branches=True):
        node = source.nodes[place]
        if not isinstance(node, dict):
            continue
        opened = node.keys() & {"patternProperties", "additionalProperties"}
        if opened or (place != pointer and "unevaluatedProperties" in node):
            return None
        names |= set(node.get("properties", ()))
    plainly = set(closure(source, (pointer,), branches=False))
    return plainly == set(closure(source, (pointer,), branches=True)), names
