"""Checks of counts and limits: large, crossed, beyond what JSON readers keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from pipeline.schema.lint.patterns import read_pattern
from pipeline.schema.lint.policy import LARGE, LARGE_REPEAT, MAX_ENUM, SAFE_INTEGER
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names
from pipeline.schema.lint.view import Node, Scope, Site, type_of

_PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
)
_BOUNDED = frozenset(
    {*(key for pair in _PAIRS for key in pair), "exclusiveMinimum", "exclusiveMaximum", "$ref", "allOf"}
)
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def check_bounds(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    for site in scope.nodes:
        yield from _large(site)
        yield from _crossed(scope, site)
        yield from _unsafe(site)


def _large(site: Site) -> Iterator[Finding]:
    node = site.node
    large = [f"{key}: {node[key]}" for key, limit in LARGE.items() if _number(node.get(key)) and node[key] > limit]
    reading = read_pattern(node["pattern"]) if isinstance(node.get("pattern"), str) else None
    if reading is not None and reading.largest_repeat > LARGE_REPEAT:
        large.append(f"pattern repeats {reading.largest_repeat} times")
    if large:
        yield found("huge_bound", site.pointer, f"Large: {', '.join(large)}. Grammars unroll such counts.")
    if len(node.get("enum", [])) > MAX_ENUM:
        why = f"{len(node['enum'])} members; more than {MAX_ENUM} compile slowly and hide the right one from the model."
        yield found("huge_enum", site.pointer, why)


def _crossed(scope: Scope, site: Site) -> Iterator[Finding]:
    """Each pair of bounds over all parts that judge the same value."""
    if not _BOUNDED.intersection(site.node):
        return
    parts = scope.parts(site.node)
    for low, high in _PAIRS:
        floors = [value for part in parts if _number(value := part.get(low))]
        roofs = [value for part in parts if _number(value := part.get(high))]
        if floors and roofs and max(floors) > min(roofs):
            floor, roof = max(floors), min(roofs)
            yield found("crossed_bounds", site.pointer, f"{low} {floor} is above {high} {roof}.")
    why = _no_number(scope, site.node) or _no_length(site.node) or _no_room(site.node)
    if why:
        yield found("crossed_bounds", site.pointer, why)


def _no_number(scope: Scope, node: Node) -> str:
    floor, above = node.get("minimum"), node.get("exclusiveMinimum")
    roof, below = node.get("maximum"), node.get("exclusiveMaximum")
    low = max((v for v in (floor, above) if _number(v)), default=None)
    high = min((v for v in (roof, below) if _number(v)), default=None)
    if low is None or high is None or (_number(floor) and _number(roof) and floor > roof):
        return ""
    if low > high or (low == high and (above == low or below == high)):
        return f"No number is above {low} and below {high}."
    near = max(abs(low), abs(high)) < SAFE_INTEGER and high - low < 1
    whole = near and scope.types(node) - {"null"} == {"integer"}
    if whole and not any(
        low < n < high or (n in (floor, roof) and n not in (above, below)) for n in (int(low), int(high))
    ):
        return f"No whole number lies between {low} and {high}."
    return ""


def _no_length(node: Node) -> str:
    reading = read_pattern(node["pattern"]) if isinstance(node.get("pattern"), str) else None
    if reading is None or not reading.anchored:
        return ""
    if reading.shortest > node.get("maxLength", reading.shortest):
        return f"The pattern takes at least {reading.shortest} characters, maxLength is {node['maxLength']}."
    if reading.longest < node.get("minLength", 0):
        return f"The pattern takes at most {reading.longest} characters, minLength is {node['minLength']}."
    return ""


def _no_room(node: Node) -> str:
    places = len(node.get("prefixItems", []))
    if node.get("items") is False and node.get("minItems", 0) > places:
        return f"minItems is {node['minItems']}, but there are only {places} places."
    names_known = node.get("properties", {})
    closed = node.get("additionalProperties") is False and not node.get("patternProperties")
    if closed and node.get("minProperties", 0) > len(names_known):
        return f"minProperties is {node['minProperties']}, but there are only {len(names_known)} properties."
    if len(set(node.get("required", []))) > node.get("maxProperties", len(names_known) + len(node.get("required", []))):
        return f"{len(node['required'])} properties are required, maxProperties is {node['maxProperties']}."
    return ""


def _unsafe(site: Site) -> Iterator[Finding]:
    node = site.node
    values = [node[key] for key in _LIMITS if key in node] + [*node.get("enum", [])] + [node.get("const")]
    unsafe = [v for v in values if isinstance(v, int) and type_of(v) == "integer" and abs(v) > SAFE_INTEGER]
    if unsafe:
        why = f"{names(unsafe)} beyond 2^53 = {SAFE_INTEGER}: readers that use floating point round it."
        yield found("unsafe_integer", site.pointer, why)


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
