"""Closing: an extraction schema means its fields, so objects that list properties get `additionalProperties: false`.

A key that nobody declared has no column to go to. But an object that is judged by several subschemas at once must stay
open in each of them, or one would refuse what another declares. Closing only ever tightens a schema, and never so far
that keys which it demands are refused.

Objects with `allOf` could be closed by `unevaluatedProperties: false`. They are not: xgrammar 0.2.8 then takes the keys
of one part only, llguidance 1.7.6 refuses the schema.
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
_WHOLE = frozenset({"minProperties", "enum", "const"})
"""Keywords that may ask for keys without naming them where they can be read off."""

MAX_PAIRED = 64
"""Unions of more branches are told apart by one discriminator of all, not pair by pair."""


def close_objects(source: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The schema with its objects closed, and the pointers of those that this changed.

    A key that an object requires without listing it becomes listed, as `{}`, which allows it any value.

    Left open are objects that say themselves how open they are, objects with in-place applicators, and whatever may
    be judged together with another subschema: parts of `allOf`, `not`, `if`, `contains`, a `$ref` with siblings, and
    branches of a `oneOf` that are not told apart by their types or by a required constant. So are objects that list
    no properties, and those with `minProperties`, `enum` or `const`, which may ask for keys that are not listed.
    """
    shared = _shared(source)
    closed: list[str] = []

    def close(pointer: str, node: Any) -> Any:
        if not isinstance(node, dict) or not node.get("properties") or (_SAYS | _WHOLE | IN_PLACE) & node.keys():
            return node
        if pointer in shared:
            return node
        closed.append(pointer)
        unlisted: dict[str, Any] = {name: {} for name in _demanded(node) if name not in node["properties"]}
        properties = {**node["properties"], **unlisted}
        return {**node, "properties": properties, "additionalProperties": False}

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


def _demanded(node: Mapping[str, Any]) -> list[str]:
    """The keys that an object must or may have to have, whether or not it lists them."""
    dependent = node.get("dependentRequired", {})
    return [*node.get("required", ()), *(name for names in dependent.values() for name in names)]


def _looks_inside(schema: Any) -> bool:
    """Whether a subschema, or another that judges the same value through it, says anything of what the value holds."""
    if not isinstance(schema, Mapping):
        return False
    return bool(_MEMBERS & schema.keys()) or any(
        _looks_inside(child) for keyword, _, child in children(schema) if keyword in IN_PLACE
    )


def _told_apart(source: Mapping[str, Any], node: Mapping[str, Any], union: str) -> bool:
    """Whether closing the branches of a union on their own only tightens it, and leaves each branch its own keys."""
    if (_MEMBERS | _WHOLE | IN_PLACE) & node.keys() - {union}:
        return False
    branches = [_followed(source, branch) for branch in node[union]]
    demanded = set(_demanded(node))
    if demanded and not all(_allows(branch, demanded) for branch in branches):
        return False
    if union == "anyOf" or len(branches) <= 1:
        return True
    if len(branches) > MAX_PAIRED:
        return _one_discriminator(branches)
    return all(_disjoint(*pair) for pair in combinations(branches, 2))


def _allows(branch: Mapping[str, Any], names: set[str]) -> bool:
    """Whether a branch still takes these keys after it was closed."""
    if IN_PLACE & branch.keys() or "$ref" in branch:
        return False
    return not branch.get("properties") or names <= branch["properties"].keys()


def _one_discriminator(branches: list[Mapping[str, Any]]) -> bool:
    """Whether one required constant tells all branches apart."""
    for name in branches[0].get("required", ()):
        constants = [_constants(branch, name) for branch in branches]
        if all(constants) and sum(map(len, constants)) == len(set().union(*constants)):
            return all(_types(branch) == {"object"} for branch in branches)
    return False


def _constants(branch: Mapping[str, Any], name: str) -> set[str]:
    """The strings that a branch of objects allows a required property; empty if there is no such list."""
    listed = name in branch.get("required", ())
    return _strings(branch.get("properties", {}).get(name)) if listed else set()


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
    constants = [[_constants(branch, name) for branch in (first, second)] for name in names]
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
