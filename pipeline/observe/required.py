"""Whether records hold what their schema requires: a value, null, an empty one, or nothing at that place.

What is required by `properties` and `items` counts, through `$ref` and `allOf`; what only a branch of `anyOf` and its
like requires does not, since which branch a record means is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.lately import Lately
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.walk import resolve

MAX_NODES = 500
"""Subschemas of one value that are looked at."""

Nodes = tuple[Mapping[str, Any], ...]


class Asked:
    """What a schema requires at one place and below it, found out as records get there."""

    __slots__ = ("_inside", "_items", "_known", "_nodes", "_root", "required")

    def __init__(self, root: Mapping[str, Any], nodes: Nodes, known: dict[frozenset[int], Asked]) -> None:
        self._root, self._nodes, self._known = root, nodes, known
        self.required = tuple({str(name): None for node in nodes for name in node.get("required", ())})
        self._inside: dict[str, Asked] = {}
        self._items: Asked | None = None

    def member(self, key: str) -> Asked:
        """What is required inside the member of this name."""
        if key not in self._inside:
            declared = [node["properties"][key] for node in self._nodes if key in node.get("properties", {})]
            if not declared:  # as many keys as models make up
                return self._at([])
            self._inside[key] = self._at(declared)
        return self._inside[key]

    def items(self) -> Asked:
        """What is required inside each item."""
        if self._items is None:
            self._items = self._at([node["items"] for node in self._nodes if "items" in node])
        return self._items

    def _at(self, schemas: list[Any]) -> Asked:
        nodes = _together(self._root, schemas)
        key = frozenset(map(id, nodes))
        if key not in self._known:
            self._known[key] = Asked(self._root, nodes, self._known)
        return self._known[key]


_ASKED: Lately[tuple[str, str], Asked] = Lately()
"""By schema name and digest."""


def required_states(record: JsonValue, plan: DecodingPlan) -> Counter[str]:
    """How many required values are `filled`, `null`, `empty` (text of blanks, no item, no member) or `absent`."""
    return states_under(record, _ASKED.get((plan.name, plan.schema_digest), lambda: asked_of(plan.acceptance)))


def states_under(record: JsonValue, asked: Asked) -> Counter[str]:
    """As `required_states`, by what a schema requires (`asked_of`)."""
    states: Counter[str] = Counter()
    open_values: list[tuple[JsonValue, Asked]] = [(record, asked)]
    while open_values:
        value, asked = open_values.pop()
        if isinstance(value, Mapping):
            for name in asked.required:
                states[_state(value[name]) if name in value else "absent"] += 1
            open_values += [(inner, asked.member(key)) for key, inner in value.items() if _holds(inner)]
        elif isinstance(value, list):
            open_values += [(inner, asked.items()) for inner in value if _holds(inner)]
    return states


def asked_of(schema: Mapping[str, Any]) -> Asked:
    """What a schema requires."""
    return Asked(schema, _together(schema, [schema]), {})


def _together(root: Mapping[str, Any], schemas: list[Any]) -> Nodes:
    """Schemas and all that they always apply to the same value."""
    found: dict[int, Mapping[str, Any]] = {}
    pending = list(schemas)
    while pending and len(found) < MAX_NODES:
        node = pending.pop()
        if not isinstance(node, Mapping) or id(node) in found:
            continue
        found[id(node)] = node
        if "$ref" in node:
            pending.append(resolve(root, node["$ref"]))
        pending += node.get("allOf", ())
    return tuple(found.values())


def _state(value: JsonValue) -> str:
    if value is None:
        return "null"
    empty = not value.strip() if isinstance(value, str) else isinstance(value, Mapping | list) and not value
    return "empty" if empty else "filled"


def _holds(value: JsonValue) -> bool:
    """Whether it may hold other values."""
    return isinstance(value, Mapping | list) and bool(value)
