"""A value and its schema walked side by side: which subschemas speak of which part of the value.

What a schema annotates (`x-…`) is found this way. Of `anyOf`, `oneOf` and `if` those branches count that the part
satisfies, or all of them where `accepts` says so, as before a value is normalised. Subschemas of `not`, `contains` and
`propertyNames` say nothing of a part that could be reported, and do not count.
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
    """One value inside a record. `nodes` are the subschemas that judge it, outermost first, each once; `required` says
    that its parent has to have it (items of a list: that the list has to be there)."""

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
    judge = accepts or accepts_of(schema)
    yield from _walk(schema, Part("", value, _once(_nodes(schema, schema, value, judge)), True), judge)


def all_branches(_schema: Any, _value: JsonValue) -> bool:
    """For `accepts`: every branch counts, `then` and `else` among them."""
    return True


def accepts_of(root: Mapping[str, Any]) -> Accepts:
    """Whether a value satisfies a subschema of a schema. Making it takes longer than most records: keep it."""
    return accepts_by(validator_of(root))


def accepts_by(validator: Any) -> Accepts:
    """Whether a value satisfies a subschema of the schema that a validator is of."""
    return lambda schema, value: bool(validator.evolve(schema=schema).is_valid(value))


def _walk(root: Mapping[str, Any], part: Part, accepts: Accepts) -> Iterator[Part]:
    yield part
    if isinstance(part.value, dict):
        children = ((key, child, _of_key(part.nodes, key)) for key, child in part.value.items())
        needed = {name for node in part.nodes for name in _required(node, part.value)}
    elif isinstance(part.value, list):
        children = ((index, child, _of_item(part.nodes, index)) for index, child in enumerate(part.value))
        needed = set()
    else:
        return
    for key, child, schemas in children:
        nodes = _once(node for schema in schemas for node in _nodes(root, schema, child, accepts))
        required = part.required if isinstance(key, int) else key in needed
        yield from _walk(root, Part(f"{part.pointer}/{escape(str(key))}", child, nodes, required), accepts)


def _required(node: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[str]:
    yield from node.get("required", ())
    for key, names in node.get("dependentRequired", {}).items():
        if key in value:
            yield from names


def _once(nodes: Iterator[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Each subschema once: two branches may refer to the same one."""
    return tuple({id(node): node for node in nodes}.values())


def _of_key(nodes: tuple[Mapping[str, Any], ...], key: str) -> list[Any]:
    """The schemas that the parent's subschemas have for a key."""
    found = []
    for node in nodes:
        named = [node["properties"][key]] if key in node.get("properties", {}) else []
        patterns = node.get("patternProperties", {})
        named += [schema for pattern, schema in patterns.items() if compile_pattern(pattern).search(key)]
        others = [node["additionalProperties"]] if "additionalProperties" in node else []
        found += named or others
    if not found:  # what no other subschema has a say about
        found = [node["unevaluatedProperties"] for node in nodes if "unevaluatedProperties" in node]
    return found


def _of_item(nodes: tuple[Mapping[str, Any], ...], index: int) -> list[Any]:
    found = []
    for node in nodes:
        first = node.get("prefixItems", [])
        if index < len(first):
            found.append(first[index])
        elif "items" in node:
            found.append(node["items"])
    return found or [node["unevaluatedItems"] for node in nodes if "unevaluatedItems" in node]


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
    if isinstance(value, dict):
        for key, branch in schema.get("dependentSchemas", {}).items():
            if key in value:
                yield from deeper(schema=branch)
    if "if" in schema:
        for branch in _conditional(schema, value, accepts):
            yield from deeper(schema=branch)


def _conditional(schema: Mapping[str, Any], value: JsonValue, accepts: Accepts) -> list[Any]:
    """What of `if`, `then` and `else` counts: a condition that holds is an annotation like any other."""
    if accepts is all_branches:
        return [schema[keyword] for keyword in ("if", "then", "else") if keyword in schema]
    return [schema["if"], schema.get("then")] if accepts(schema["if"], value) else [schema.get("else")]
