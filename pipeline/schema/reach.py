"""What a schema declares inside a value: the subschemas that may judge a part of it, without a value at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.schema.validator import compile_pattern
from pipeline.schema.walk import resolve, unescape

MAX_NODES = 2000
"""Subschemas of one value that are looked at."""

ANY = "*"
"""The token that stands for any item or key."""

Nodes = Sequence[Mapping[str, Any]]

_INSIDE = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items", "prefixItems")
_IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas")
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


def in_place(root: Mapping[str, Any], schema: Any) -> list[Mapping[str, Any]]:
    """A schema and all that it may apply to the same value, branches that exclude each other among them."""
    found: dict[int, Mapping[str, Any]] = {}
    pending = [schema]
    while pending and len(found) < MAX_NODES:
        node = pending.pop()
        if not isinstance(node, Mapping) or id(node) in found:
            continue
        found[id(node)] = node
        if "$ref" in node:
            pending.append(resolve(root, node["$ref"]))
        pending += [branch for keyword in ("allOf", "anyOf", "oneOf") for branch in node.get(keyword, ())]
        pending += [node[keyword] for keyword in ("if", "then", "else") if keyword in node]
        pending += node.get("dependentSchemas", {}).values()
    return list(found.values())


def step(root: Mapping[str, Any], nodes: Nodes, token: str) -> list[Mapping[str, Any]] | None:
    """The subschemas of a member or item, given those of the value that holds it; None if none declares it.

    An empty list means that it may be there and nothing is said of it.
    """
    found: list[Any] = []
    free = False
    for node in nodes:
        found += _of_key(node, token)
        found += _of_index(node, token)
        free = free or _is_free(node)
    if not found and not free:
        return None
    return [inner for schema in found for inner in in_place(root, schema)]


def follow(root: Mapping[str, Any], nodes: Nodes, pointer: str) -> list[Mapping[str, Any]] | None:
    """The subschemas at a JSON pointer from a value with these subschemas; None if nothing declares it."""
    here: list[Mapping[str, Any]] | None = list(nodes)
    for token in pointer.split("/")[1:]:
        here = step(root, here, unescape(token)) if here else here
    return here


def declares(root: Mapping[str, Any], pointer: str) -> bool:
    """Whether values of a schema can have anything at a JSON pointer, in which `*` stands for any item or key."""
    return follow(root, in_place(root, root), pointer) is not None


def members(nodes: Nodes) -> list[str]:
    """The keys that subschemas list."""
    return sorted({key for node in nodes for key in node.get("properties", {})})


def _of_key(node: Mapping[str, Any], token: str) -> Iterator[Any]:
    listed = node.get("properties", {})
    if token == ANY:
        yield from listed.values()
        yield from node.get("patternProperties", {}).values()
    elif token in listed:
        yield listed[token]
    else:
        yield from (
            schema
            for pattern, schema in node.get("patternProperties", {}).items()
            if compile_pattern(pattern).search(token)
        )
    if token == ANY or token not in listed:
        yield from (node[word] for word in ("additionalProperties", "unevaluatedProperties") if _says(node, word))


def _of_index(node: Mapping[str, Any], token: str) -> Iterator[Any]:
    if token != ANY and not (token.isascii() and token.isdigit()):
        return
    first = node.get("prefixItems", [])
    if token == ANY:
        yield from first
    elif int(token[:9]) < len(first):
        yield first[int(token[:9])]
        return
    yield from (node[word] for word in ("items", "unevaluatedItems") if _says(node, word))


def _says(node: Mapping[str, Any], keyword: str) -> bool:
    return keyword in node and node[keyword] is not False


def _is_free(node: Mapping[str, Any]) -> bool:
    """Whether a subschema lets values hold anything, and says nothing of it."""
    if any(keyword in node for keyword in _INSIDE):
        return any(node.get(word) is True for word in ("additionalProperties", "unevaluatedProperties"))
    declared = node.get("type", [])
    types = {declared} if isinstance(declared, str) else set(declared)
    closed = any(keyword in node for keyword in (*_IN_PLACE, "enum", "const"))
    return not closed and (not types or not types <= _SCALARS)
