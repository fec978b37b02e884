"""Spots: where in a value which subschema of a body has its say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.schema.shape.source import Conjunction, Source, judges_of_item, judges_of_key
from pipeline.schema.walk import escape

Path = tuple[str | int, ...]

MAX_NODES = 1500
MAX_JUDGED = 300
"""Nodes of a value that are looked at, and branches that are tried on them; further branches count as taken."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A node of a value by its path; `is_name`: the last key itself, which propertyNames judges."""

    path: Path
    is_name: bool = False


def spots(source: Source, value: Any) -> dict[str, list[Spot]]:
    """The spots of every subschema that judges a part of a value; of unions only the branches that accept it."""
    return _Walk(source).walk(value)


@dataclass
class _Walk:
    source: Source
    tried: int = 0

    def walk(self, value: Any) -> dict[str, list[Spot]]:
        found: dict[str, list[Spot]] = {}
        queue: list[tuple[Spot, Conjunction, Any]] = [(Spot(()), ("",), value)]
        for at, (spot, pointers, node) in enumerate(queue):  # grows
            if at > MAX_NODES:
                break
            places = self._in_force(pointers, node)
            for pointer in places:
                found.setdefault(pointer, []).append(spot)
            if isinstance(node, dict) and not spot.is_name:
                for key, item in node.items():
                    queue.append((Spot((*spot.path, key)), tuple(judges_of_key(self.source, places, key)), item))
                    queue.append((Spot((*spot.path, key), True), tuple(self._names(places)), key))
            elif isinstance(node, list):
                for index, item in enumerate(node):
                    queue.append((Spot((*spot.path, index)), tuple(judges_of_item(self.source, places, index)), item))
        return found

    def _in_force(self, pointers: Conjunction, value: Any) -> list[str]:
        """The subschemas that judge a value through those at some pointers."""
        found: dict[str, None] = {}
        stack = list(reversed(pointers))
        while stack:
            pointer = stack.pop()
            if pointer in found:
                continue
            found[pointer] = None
            node = self.source.nodes[pointer]
            if isinstance(node, Mapping):
                stack += self._applied(pointer, node, value)
        return list(found)

    def _applied(self, pointer: str, node: Mapping[str, Any], value: Any) -> Iterator[str]:
        if "$ref" in node:
            yield self.source.referred(node)
        yield from (f"{pointer}/allOf/{index}" for index in range(len(node.get("allOf", ()))))
        for union in ("anyOf", "oneOf"):
            for index in range(len(node.get(union, ()))):
                if self._accepts(f"{pointer}/{union}/{index}", value):
                    yield f"{pointer}/{union}/{index}"
        if "if" in node:
            taken = "then" if self._accepts(f"{pointer}/if", value) else "else"
            if taken in node:
                yield f"{pointer}/{taken}"
        if isinstance(value, dict):
            yield from (
                f"{pointer}/dependentSchemas/{escape(key)}" for key in node.get("dependentSchemas", ()) if key in value
            )

    def _accepts(self, pointer: str, value: Any) -> bool:
        self.tried += 1
        return self.tried > MAX_JUDGED or self.source.accepts(pointer, value)

    def _names(self, places: list[str]) -> Iterator[str]:
        for pointer in places:
            if isinstance(self.source.nodes[pointer], Mapping) and "propertyNames" in self.source.nodes[pointer]:
                yield f"{pointer}/propertyNames"


def get(value: Any, spot: Spot) -> Any:
    """What is at a spot."""
    if spot.is_name:
        return spot.path[-1]
    for step in spot.path:
        value = value[step]
    return value


def put(value: Any, spot: Spot, part: Any) -> Any:
    """The value with another part at a spot; what is around it is shared. A key of the same name is replaced."""
    return _put(value, spot.path, part, spot.is_name)


def _put(value: Any, path: Path, part: Any, is_name: bool) -> Any:
    if not path:
        return part
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_put(item, rest, part, is_name) if index == step else item for index, item in enumerate(value)]
    if is_name and not rest:
        return {part if key == step else key: item for key, item in value.items()}
    return {key: _put(item, rest, part, is_name) if key == step else item for key, item in value.items()}
