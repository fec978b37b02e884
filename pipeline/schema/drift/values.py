"""Keywords that hold no schemas: types, listed values, limits, formats. Each comparison is exact or says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pipeline.schema import formats
from pipeline.schema.drift.found import ABSENT, Finding

ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
"""`number` stands for numbers with a fraction: `{"type": "number"}` is both it and `integer`."""

_LEAST = {
    "minLength": ("string", 0),
    "minItems": ("array", 0),
    "minProperties": ("object", 0),
    "minContains": ("array", 1),
}
_MOST = {"maxLength": "string", "maxItems": "array", "maxProperties": "object", "maxContains": "array"}
_RANGE = (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1))
_NUMERIC = {"integer", "number"}

VALUE_KEYWORDS = frozenset(
    {*_LEAST, *_MOST, *(name for row in _RANGE for name in row[:2])}
    | {"type", "enum", "const", "multipleOf", "pattern", "format", "uniqueItems"}
)


def key_of(value: Any) -> str:
    """A text that equal JSON values share: 1 and 1.0 are equal, 1 and true are not, the order of keys is nothing."""
    if isinstance(value, str):
        return f'"{value}'  # no other value starts like this, and enums are long
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def listed(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that `enum` and `const` leave, or None if there is neither."""
    if "const" not in schema:
        return schema.get("enum")
    values, only = schema.get("enum", ABSENT), schema["const"]
    return [only] if values is ABSENT or key_of(only) in map(key_of, values) else []


def types_of(schema: Any) -> frozenset[str]:
    """The types that a schema's own `type`, `enum` and `const` leave."""
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping):
        return ALL_TYPES
    declared = schema.get("type", ALL_TYPES)
    types = {declared} if isinstance(declared, str) else set(declared)
    types |= _NUMERIC if "number" in types else set()
    values = listed(schema)
    return frozenset(types if values is None else types & set(map(_type_of, values)))


def _type_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", type(None): "null"}
    return names.get(type(value), "object")


def same_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Differences of keywords that hold no schemas. Those of a type that one side never has are left out: the
    difference of types says it."""
    types, now = types_of(old), types_of(new)
    yield from _types(types, now, old.get("type", ABSENT), new.get("type", ABSENT))
    yield from _listed(old, new)
    both = types & now
    if both & _NUMERIC:
        yield from _range(old, new)
        yield from _multiples(old, new)
    for keyword, (family, default) in _LEAST.items():
        if family in both:
            yield from _limit(keyword, old.get(keyword, default), new.get(keyword, default), 1)
    for keyword, family in _MOST.items():
        if family in both:
            yield from _limit(keyword, old.get(keyword, ABSENT), new.get(keyword, ABSENT), -1)
    if "string" in both:
        yield from _opaque("pattern", old, new)
        yield from _opaque("format", old, new)
    was, repeated = (bool(schema.get("uniqueItems")) for schema in (old, new))
    if "array" in both and was != repeated:
        yield Finding("unique_items", ("uniqueItems",), was, repeated, keeps=was, adds_nothing=repeated)


def _types(old: frozenset[str], new: frozenset[str], before: Any, after: Any) -> Iterator[Finding]:
    if old != new:
        gone, fresh = old - new, new - old
        text = "; ".join(
            f"{word}: {', '.join(sorted(types))}" for word, types in (("new", fresh), ("gone", gone)) if types
        )
        yield Finding(
            *("type", ("type",), before, after),
            keeps=not gone,
            adds_nothing=not fresh,
            readers="breaking" if fresh else None,
            why=text,
        )


def _listed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    before, after = listed(old), listed(new)
    keyword = "const" if "const" in (old if after is None else new) else "enum"
    if before is None or after is None:
        if after is not None:
            yield Finding("enum_set", (keyword,), ABSENT, after, keeps=False)
        elif before is not None:
            yield Finding("enum_dropped", (keyword,), before, ABSENT, adds_nothing=False)
        return
    was, now = ({key_of(value): value for value in values} for values in (before, after))
    if fresh := [now[key] for key in now if key not in was]:
        yield Finding("enum_added", (keyword,), ABSENT, fresh, adds_nothing=False)
    if gone := [was[key] for key in was if key not in now]:
        yield Finding("enum_removed", (keyword,), gone, ABSENT, keeps=False)
    if [key for key in was if key in now] != [key for key in now if key in was]:
        yield Finding("enum_order", (keyword,), before, after)


def _limit(keyword: str, old: Any, new: Any, sign: int) -> Iterator[Finding]:
    """`sign` is 1 for a least value, -1 for a greatest one."""
    if old is new or (old is not ABSENT and new is not ABSENT and old == new):
        return
    tighter = old is ABSENT or (new is not ABSENT and (new > old if sign > 0 else new < old))
    kind = "bound_tightened" if tighter else "bound_loosened"
    yield Finding(kind, (keyword,), old, new, keeps=not tighter, adds_nothing=tighter)


def _range(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """`minimum` and `exclusiveMinimum` are one limit, the stricter of the two; so are the maxima."""
    for inclusive, exclusive, sign in _RANGE:
        limits = []
        for schema in (old, new):
            both = [(sign * schema[name], name == exclusive, name) for name in (inclusive, exclusive) if name in schema]
            limits.append(max(both, default=None))
        was, now = limits
        if was == now or (was and now and was[:2] == now[:2]):
            continue
        tighter = was is None or (now is not None and now[:2] > was[:2])
        kind = "bound_tightened" if tighter else "bound_loosened"
        before, after = (
            schema.get(limit[2], ABSENT) if limit else ABSENT for schema, limit in ((old, was), (new, now))
        )
        keyword = (now or was or (0, False, inclusive))[2]
        yield Finding(kind, (keyword,), before, after, keeps=not tighter, adds_nothing=tighter)


def _multiples(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    was, now = old.get("multipleOf", ABSENT), new.get("multipleOf", ABSENT)
    if was is now or was == now:
        return
    keeps = now is ABSENT or (was is not ABSENT and _divides(now, was))
    adds_nothing = was is ABSENT or (now is not ABSENT and _divides(was, now))
    yield Finding("multiple_of", ("multipleOf",), was, now, keeps=keeps, adds_nothing=adds_nothing)


def _divides(divisor: Any, value: Any) -> bool:
    exact = [Fraction(number) if isinstance(number, int) else Fraction(repr(number)) for number in (value, divisor)]
    return (exact[0] / exact[1]).denominator == 1


def _opaque(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
    if was is now or was == now:
        return
    checked = [value is not ABSENT and (keyword == "pattern" or is_checked(value)) for value in (was, now)]
    yield Finding(keyword, (keyword,), was, now, keeps=not checked[1], adds_nothing=not checked[0])


def is_checked(name: str) -> bool:
    """Whether the validator checks a format: what it does not know refuses nothing."""
    return formats.is_checked(name)


def required(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Differences of `required`, a finding per name."""
    was, now = old.get("required", ()), new.get("required", ())
    for name in _missing(now, was):
        yield Finding("required_added", ("required",), ABSENT, name, keeps=False)
    for name in _missing(was, now):
        yield Finding("required_removed", ("required",), name, ABSENT, adds_nothing=False, readers="breaking")


def dependencies(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Differences of `dependentRequired`: one finding per name that asks for more or for less."""
    was, now = old.get("dependentRequired", {}), new.get("dependentRequired", {})
    for name in {**was, **now}:
        before, after = was.get(name, []), now.get(name, [])
        steps = ("dependentRequired", name)
        if fresh := _missing(after, before):
            yield Finding("constraint_added", steps, ABSENT, fresh, keeps=False)
        if gone := _missing(before, after):
            yield Finding("constraint_removed", steps, gone, ABSENT, adds_nothing=False)


def _missing(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names, each once, that are not known."""
    there = set(known)
    return [name for name in dict.fromkeys(names) if name not in there]
