"""What every check looks at: the sites of a schema, and what `$ref`, `allOf` and unions say of a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipeline.schema.lint.sites import Node, Site, named, reach, steps_of
from pipeline.schema.walk import constrains, resolve

SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
ALL = SCALARS | {"object", "array"}
_UNIONS = ("anyOf", "oneOf")
_MAX_PARTS = 64
_MAX_HOPS = 24


class Scope:
    """A schema under examination: its reachable sites in schema order, and answers about values that are kept."""

    def __init__(self, root: Node, closed: Collection[str] = ()) -> None:
        self.root = root
        self.closed = frozenset(closed)
        self._types: dict[int, frozenset[str]] = {}
        self._named: dict[str, Any] = {}
        self.sites, self.unused = reach(root)
        self.nodes = [site for site in self.sites if isinstance(site.node, dict)]
        self.by_pointer = {site.pointer: site for site in self.sites}

    def steps(self, site: Site) -> list[str]:
        """The pointers that a site leads to: its subschemas, definitions apart, and what its `$ref` names."""
        return steps_of(site)

    def refer(self, node: Any) -> Any:
        """What the `$ref` of a node names; `True` where it leads nowhere (loading refuses that)."""
        reference = node["$ref"]
        if reference not in self._named:
            try:
                self._named[reference] = resolve(self.root, reference)
            except KeyError:
                self._named[reference] = True
        return self._named[reference]

    def parts(self, node: Any) -> list[Node]:
        """The node and all that certainly judges the same value with it: `$ref` and `allOf`, at most 64 of them."""
        if isinstance(node, dict) and "$ref" not in node and "allOf" not in node:
            return [node]
        parts: list[Node] = []
        pending, seen = [node], set()
        while pending and len(parts) < _MAX_PARTS:
            part = pending.pop(0)
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            parts.append(part)
            pending += [self.refer(part)] if "$ref" in part else []
            pending += part.get("allOf", [])
        return parts

    def types(self, node: Any, hops: int = 0) -> frozenset[str]:
        """The JSON types that a schema admits, "integer" apart from (other) "number"; too many rather than too few."""
        if not isinstance(node, dict):
            return frozenset() if node is False else ALL
        if id(node) not in self._types:
            if hops > _MAX_HOPS:
                return ALL
            self._types[id(node)] = ALL  # until it is known: references may lead back here
            self._types[id(node)] = self._types_of(node, hops + 1)
        return self._types[id(node)]

    def _types_of(self, node: Node, hops: int) -> frozenset[str]:
        admitted = declared(node)
        members = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
        if members is not None:
            admitted &= frozenset(type_of(member) for member in members)
        if "$ref" in node:
            admitted &= self.types(self.refer(node), hops)
        for part in node.get("allOf", []):
            admitted &= self.types(part, hops)
        for keyword in _UNIONS:
            if keyword in node:
                admitted &= frozenset().union(*(self.types(branch, hops) for branch in node[keyword]))
        return admitted

    def members(self, node: Any) -> list[Any] | None:
        """The enumerated values of a node, its parts and its union branches; None if nothing is enumerated."""
        values: list[Any] | None = None
        pending, steps = self.parts(node), 0
        while pending and steps < _MAX_PARTS:
            part, steps = pending.pop(), steps + 1
            for keyword in _UNIONS:
                pending += [p for branch in part.get(keyword, []) for p in self.parts(branch)][:_MAX_PARTS]
            if "enum" in part or "const" in part:
                values = (values or []) + (part["enum"] if "enum" in part else [part["const"]])
        return values

    def bare(self, node: Any) -> Any:
        """What a reference without anything beside it names, else the node."""
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict) or list(node) != ["$ref"]:
                break
            node = self.refer(node)
        return node

    def described(self, site: Site) -> str:
        """The pointer of what describes the value: where a reference without rules beside it leads, else the site's."""
        pointer, node = site.pointer, site.node
        for _ in range(_MAX_HOPS):
            if "$ref" not in node or any(constrains(key) for key in node if key != "$ref"):
                break
            pointer = named(node["$ref"])
            node = self.refer(node)
            if not isinstance(node, dict):
                break
        return pointer if pointer in self.by_pointer else site.pointer

    def properties(self, node: Any) -> dict[str, Any]:
        """The properties that a node and its parts declare, in order."""
        declared_here: dict[str, Any] = {}
        for part in self.parts(node):
            declared_here = {**part.get("properties", {}), **declared_here}
        return declared_here

    def required(self, node: Any) -> set[str]:
        """The names that a node and its parts require."""
        return {name for part in self.parts(node) for name in part.get("required", [])}


def declared(node: Node) -> frozenset[str]:
    """What the keyword `type` admits, "number" with the integers in it."""
    if "type" not in node:
        return ALL
    names = node["type"] if isinstance(node["type"], list) else [node["type"]]
    return frozenset(names) | ({"integer"} if "number" in names else set())


def type_of(value: Any) -> str:
    """The JSON type of a value; 1.0 is an integer (JSON Schema 2020-12 core, section 4.2.3)."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "string" if isinstance(value, str) else "object" if isinstance(value, Mapping) else "array"


__all__ = ["ALL", "SCALARS", "Node", "Scope", "Site", "declared", "type_of"]
