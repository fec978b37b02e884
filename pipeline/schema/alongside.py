"""A value and its schema walked side by side: which subschemas speak of which part of the value.

What a schema annotates (`x-…`) is found this way. Of `anyOf`, `oneOf` and `if` those branches count that the part
satisfies, or all of them where `accepts` says so, as before a value is normalised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.validator import compile_pattern, validator_of
from pipeline.schema.walk import escape, resolve

MAX_DEPTH = 256
"""Far beyond what is parsed: only a schema that refers to itself in place could go deeper, and those are refused."""

Accepts = Callable[[Any, JsonValue], bool]
"""Whether a subschema accepts a value."""


@dataclass(frozen=True, slots=True)
class Part:
    """One value inside a record. `nodes` are the subschemas that judge it, outermost first; `required` says that its
    parent has to have it (items of a list: that the list has to be there)."""

    pointer: str
    value: JsonValue
    nodes: tuple[Mapping[str, Any], ...]
    required: bool

    @property
    def is_leaf(self) -> bool:
        """Whether it holds no other value."""
        return not isinstance(self.value, dict | list)

    def annotation(self, keyword: str) -> Any:
        """The value of an annotation: that of the innermost subschema that has it, None if none has."""
        return next((node[keyword] for node in reversed(self.nodes) if keyword in node), None)


def parts(schema: Mapping[str, Any], value: JsonValue, accepts: Accepts | None = None) -> Iterator[Part]:
    """The value and all values inside it, parents first.

    Raises:
        PatternTimeout: a pattern of a branch takes too long on its part of the value.
    """
    judge = accepts or _accepts(schema)
    yield from _walk(schema, Part("", value, tuple(_nodes(schema, schema, value, judge)), True), judge)


def all_branches(_schema: Any, _value: JsonValue) -> bool:
    """For `accepts`: every branch counts."""
    return True


def _accepts(root: Mapping[str, Any]) -> Accepts:
    validator: Any = validator_of(root)
    return lambda schema, value: bool(validator.evolve(schema=schema).is_valid(value))


def _walk(root: Mapping[str, Any], part: Part, accepts: Accepts) -> Iterator[Part]:
    yield part
    if isinstance(part.value, dict):
        children = ((key, child, _of_key(part.nodes, key)) for key, child in part.value.items())
    elif isinstance(part.value, list):
        children = ((index, child, _of_item(part.nodes, index)) for index, child in enumerate(part.value))
    else:
        return
    for key, child, schemas in children:
        nodes = tuple(node for schema in schemas for node in _nodes(root, schema, child, accepts))
        required = part.required if isinstance(key, int) else any(key in _required(node) for node in part.nodes)
        yield from _walk(root, Part(f"{part.pointer}/{escape(str(key))}", child, nodes, required), accepts)


def _required(node: Mapping[str, Any]) -> list[str]:
    names: list[str] = node.get("required", [])
    return names


def _of_key(nodes: tuple[Mapping[str, Any], ...], key: str) -> list[Any]:
    """The schemas that the parent's subschemas have for a key."""
    found = []
    for node in nodes:
        named = [node["properties"][key]] if key in node.get("properties", {}) else []
        patterns = node.get("patternProperties", {})
        named += [schema for pattern, schema in patterns.items() if compile_pattern(pattern).search(key)]
        others = [node["additionalProperties"]] if "additionalProperties" in node else []
        found += named or others
    return found


def _of_item(nodes: tuple[Mapping[str, Any], ...], index: int) -> list[Any]:
    found = []
    for node in nodes:
        first = node.get("prefixItems", [])
        if index < len(first):
            found.append(first[index])
        elif "items" in node:
            found.append(node["items"])
    return found


def _nodes(
    root: Mapping[str, Any], schema: Any, value: JsonValue, accepts: Accepts, depth: int = 0
) -> Iterator[Mapping[str, Any]]:
    """A schema and what it applies in place."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return
    yield schema
    deeper = partial(_nodes, root, value=value, accepts=accepts, depth=depth + 1)
    if "$ref" in schema:
        yield from deeper(schema=resolve(root, schema["$ref"]))
    for branch in schema.get("allOf", ()):
        yield from deeper(schema=branch)
    for keyword in ("anyOf", "oneOf"):
        for branch in schema.get(keyword, ()):
            if accepts(branch, value):
                yield from deeper(schema=branch)
    if "if" in schema:
        holds = accepts(schema["if"], value)
        for keyword in ["then"] if holds else ["else"]:
            yield from deeper(schema=schema.get(keyword))
