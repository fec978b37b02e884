"""Closing: an extraction schema means its fields, so objects that list properties get `additionalProperties: false`.

A key that nobody declared has no column to go to. But an object that is judged by several subschemas at once must stay
open in each of them, or one would refuse what another declares. Closing only ever tightens a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from pipeline.schema.walk import IN_PLACE, children, constrains, descend, rebuild, resolve, target

_SAYS = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_ITEMS = frozenset({"items", "prefixItems", "contains", "unevaluatedItems"})
_MEMBERS = _SAYS | _ITEMS | {"properties", "propertyNames", "$ref"}
"""Keywords that look into what a value holds."""

_UNIONS = ("anyOf", "oneOf")


def close_objects(source: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The schema with its objects closed, and the pointers of those that this changed.

    Left open are objects that say themselves how open they are, objects with in-place applicators, and whatever may
    be judged together with another subschema: parts of `allOf`, `not`, `if`, `contains`, a `$ref` with siblings, and
    branches of a `oneOf` that are not told apart by their types or by a required constant.
    """
    shared = _shared(source)
    closed: list[str] = []

    def close(pointer: str, node: Any) -> Any:
        if not isinstance(node, dict) or "properties" not in node or (_SAYS | IN_PLACE) & node.keys():
            return node
        if pointer in shared:
            return node
        closed.append(pointer)
        return {**node, "additionalProperties": False}

    return rebuild(source, close), tuple(closed)


def _shared(source: Mapping[str, Any]) -> set[str]:
    """Pointers of subschemas that may judge a value together with others, and of all that these lead to."""
    nodes = dict(descend(source))
    pending = [
        seed for pointer, node in nodes.items() if isinstance(node, Mapping) for seed in _seeds(source, pointer, node)
    ]
    shared: set[str] = set()
    while pending:
        pointer = pending.pop()
        if pointer in shared:
            continue
        shared.add(pointer)
        node = nodes.get(pointer)
        pending += [pointer + step for _, step, _ in children(node)]
        if isinstance(node, Mapping) and "$ref" in node:
            pending.append(target(node["$ref"]))
    return shared


def _seeds(source: Mapping[str, Any], pointer: str, node: Mapping[str, Any]) -> Iterator[str]:
    """Of one subschema: itself or its direct parts, where several of them judge one value."""
    keywords = set(filter(constrains, node))
    if "$ref" in node and len(keywords) > 1:
        yield pointer
    parts = list(children(node))
    apart = [union for union in _UNIONS if union in node and _told_apart(source, node, union)]
    beside = [part for keyword, _, part in parts if keyword in IN_PLACE]
    twice = {"properties", "patternProperties"} <= keywords or (
        bool(keywords & _MEMBERS) and any(map(_looks_inside, beside))
    )
    for keyword, step, _ in parts:
        if keyword == "contains" or (keyword in IN_PLACE and keyword not in apart) or (twice and keyword in _MEMBERS):
            yield pointer + step


def _looks_inside(schema: Any) -> bool:
    """Whether a subschema, or another that judges the same value through it, says anything of what the value holds."""
    if not isinstance(schema, Mapping):
        return False
    return bool(_MEMBERS & schema.keys()) or any(
        _looks_inside(child) for keyword, _, child in children(schema) if keyword in IN_PLACE
    )


def _told_apart(source: Mapping[str, Any], node: Mapping[str, Any], union: str) -> bool:
    """Whether closing the branches of a union on their own only tightens it, and leaves each branch its own keys."""
    if (_MEMBERS | IN_PLACE) & node.keys() - {union}:
        return False
    branches = [_followed(source, branch) for branch in node[union]]
    return union == "anyOf" or all(_disjoint(*pair) for pair in combinations(branches, 2))


def _followed(source: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    followed = 0
    while isinstance(schema, Mapping) and "$ref" in schema and sum(map(constrains, schema)) == 1 and followed < 100:
        schema, followed = resolve(source, schema["$ref"]), followed + 1
    return schema if isinstance(schema, Mapping) else {}


def _disjoint(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether no value can satisfy both, as far as types and required string constants tell."""
    types = _types(first), _types(second)
    if all(types) and not types[0] & types[1]:
        return True
    names = set(first.get("required", ())) & set(second.get("required", ()))
    if types != ({"object"}, {"object"}):
        return False
    constants = [[_strings(branch.get("properties", {}).get(name)) for branch in (first, second)] for name in names]
    return any(one and other and not one & other for one, other in constants)


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type", [])
    types = {declared} if isinstance(declared, str) else set(declared)
    return types - {"integer"} | ({"number"} if "integer" in types else set())


def _strings(schema: Any) -> set[str]:
    """The values of a schema of string constants; empty if it is not one."""
    if not isinstance(schema, Mapping):
        return set()
    values: list[Any] = schema["enum"] if "enum" in schema else [schema.get("const")]
    return set(values) if all(isinstance(value, str) for value in values) else set()
