"""Negation: the schemas whose union is what a schema does not accept, where that can be said.

`not`, `if` and what they hold are negated keyword by keyword, after De Morgan. What cannot be negated exactly is
not negated at all: a guess in either direction would lose or invent values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from pipeline.schema.shape.source import EXCLUDED, Source
from pipeline.schema.walk import constrains, resolve

MAX_DEPTH = 8
MAX_OPTIONS = 16
_TYPES = ("object", "array", "string", "number", "boolean", "null")


class _CannotSayError(Exception):
    """The complement is not expressible, or has too many parts."""


def negation(source: Source, schema: Any) -> list[Any] | None:
    """Schemas whose union is the complement of a schema; None if that cannot be said."""
    try:
        return _negated(source, schema, 0)
    except _CannotSayError:
        return None


def _negated(source: Source, schema: Any, depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        raise _CannotSayError
    if not isinstance(schema, Mapping):
        return [] if schema is True else [True]
    options: list[Any] = []
    for keyword, value in schema.items():
        if constrains(keyword) and keyword not in ("then", "else"):
            options += _one(source, schema, keyword, value, depth)
    if len(options) > MAX_OPTIONS:
        raise _CannotSayError
    return options


def _one(source: Source, schema: Mapping[str, Any], keyword: str, value: Any, depth: int) -> list[Any]:
    if keyword in _BOUNDS:
        kind, opposite, step = _BOUNDS[keyword]
        if step and value + step < 0:
            return []
        return [{"type": kind, opposite: value + step}]
    if keyword in _SIMPLE:
        return _SIMPLE[keyword](value)
    if keyword == "$ref":
        return _negated(source, resolve(source.body, value), depth + 1)
    if keyword == "not":
        return [value]
    if keyword == "properties":
        return [
            {"type": "object", "required": [name], "properties": {name: option}}
            for name, child in value.items()
            for option in _negated(source, child, depth + 1)
        ]
    if keyword == "allOf":
        return [option for branch in value for option in _negated(source, branch, depth + 1)]
    if keyword == "anyOf":
        return _conjunctions([_negated(source, branch, depth + 1) for branch in value])
    raise _CannotSayError


def _conjunctions(negated: list[list[Any]]) -> list[Any]:
    count = 1
    for options in negated:
        count *= len(options)
    if count > MAX_OPTIONS:
        raise _CannotSayError
    return [{"allOf": list(chosen)} for chosen in product(*negated)]


def _other_types(value: Any) -> list[Any]:
    named = [value] if isinstance(value, str) else list(value)
    if "integer" in named and "number" not in named:
        raise _CannotSayError  # no keyword means "not whole"
    others = [name for name in _TYPES if name not in named]
    return [{"type": others}] if others else []


def _without(value: list[str]) -> list[Any]:
    return [{"type": "object", "properties": {name: False}} for name in value]


_SIMPLE: dict[str, Callable[[Any], list[Any]]] = {
    "type": _other_types,
    "required": _without,
    "const": lambda value: [{EXCLUDED: [value]}],
    "enum": lambda value: [{EXCLUDED: value}],
}
_BOUNDS: dict[str, tuple[str, str, int | Fraction]] = {
    "minimum": ("number", "exclusiveMaximum", 0),
    "maximum": ("number", "exclusiveMinimum", 0),
    "exclusiveMinimum": ("number", "maximum", 0),
    "exclusiveMaximum": ("number", "minimum", 0),
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1),
    "maxProperties": ("object", "minProperties", 1),
}
