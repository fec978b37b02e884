"""Canonical form: the one spelling of a record that every transport schema has to be able to produce.

Compact JSON; declared keys in the order of the schema's text, undeclared ones after them in their own order; numbers
in plain decimals with no digit too many, whole numbers without a fraction; the shortest string escapes, and DEL is
escaped as control characters are (llguidance takes it in no other way).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from pipeline.schema.shape.source import Conjunction, Source, closure, key_order
from pipeline.schema.validator import compile_pattern
from pipeline.schema.walk import escape


def canonical_text(source: Source, value: Any) -> str:
    """The canonical text of a value under a source."""
    return _spell(ordered(source, value))


def ordered(source: Source, value: Any, conjunction: Conjunction = ("",)) -> Any:
    """A value with its objects' keys in canonical order, judged by the schemas at a conjunction."""
    if not conjunction or not isinstance(value, dict | list):
        return value
    places = tuple(closure(source, conjunction, branches=True))
    if isinstance(value, list):
        return [ordered(source, item, tuple(_of_item(source, places, index))) for index, item in enumerate(value)]
    ranks = key_order(source, conjunction)
    keys = sorted(value, key=lambda key: ranks.get(key, len(ranks)))
    return {key: ordered(source, value[key], tuple(dict.fromkeys(_of_key(source, places, key)))) for key in keys}


def _of_item(source: Source, places: Conjunction, index: int) -> Iterator[str]:
    for pointer in places:
        node = source.nodes[pointer]
        if isinstance(node, Mapping):
            if index < len(node.get("prefixItems", ())):
                yield f"{pointer}/prefixItems/{index}"
            elif "items" in node:
                yield f"{pointer}/items"


def _of_key(source: Source, places: Conjunction, key: str) -> Iterator[str]:
    for pointer in places:
        node = source.nodes[pointer]
        if not isinstance(node, Mapping):
            continue
        found = [f"{pointer}/properties/{escape(key)}"] if key in node.get("properties", ()) else []
        for pattern in node.get("patternProperties", ()):
            if compile_pattern(pattern).search(key):
                found.append(f"{pointer}/patternProperties/{escape(pattern)}")
        if not found and "additionalProperties" in node:
            found.append(f"{pointer}/additionalProperties")
        yield from found


def _spell(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_spell(key)}:{_spell(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spell, value)) + "]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
