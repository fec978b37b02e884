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

from pipeline.schema.shape.source import Conjunction, Source, closure, judges_of_item, judges_of_key, key_order
from pipeline.schema.walk import escape


def canonical_text(source: Source, value: Any) -> str:
    """The canonical text of a value under a source."""
    return _spell(ordered(source, value))


def ordered(source: Source, value: Any, conjunction: Conjunction = ("",)) -> Any:
    """A value with its objects' keys in canonical order, judged by the schemas at a conjunction."""
    if not conjunction or not isinstance(value, dict | list):
        return value
    places = tuple(_applying(source, conjunction, value))
    if isinstance(value, list):
        return [ordered(source, item, tuple(judges_of_item(source, places, index))) for index, item in enumerate(value)]
    ranks = key_order(source, conjunction)
    keys = sorted(value, key=lambda key: ranks.get(key, len(ranks)))
    return {key: ordered(source, value[key], tuple(dict.fromkeys(judges_of_key(source, places, key)))) for key in keys}


def _applying(source: Source, conjunction: Conjunction, value: Any) -> Iterator[str]:
    """The schemas that judge a value, of every union the first branch that accepts it (all, if none does)."""
    pending, seen = list(conjunction), set[str]()
    while pending:
        for pointer in closure(source, (pending.pop(0),), branches=False):
            if pointer in seen:
                continue
            seen.add(pointer)
            yield pointer
            node = source.nodes[pointer]
            if isinstance(node, Mapping):
                pending += _taken(source, pointer, node, value)


def _taken(source: Source, pointer: str, node: Mapping[str, Any], value: Any) -> Iterator[str]:
    for union in ("anyOf", "oneOf"):
        branches = [f"{pointer}/{union}/{index}" for index in range(len(node.get(union, ())))]
        first = next((branch for branch in branches if source.accepts(branch, value)), None)
        yield from branches if first is None else (first,)
    if "if" in node:
        met = source.accepts(f"{pointer}/if", value)
        yield from (f"{pointer}/{word}" for word in (("if", "then") if met else ("else",)) if word in node)
    if isinstance(value, dict):
        yield from (
            f"{pointer}/dependentSchemas/{escape(key)}" for key in node.get("dependentSchemas", {}) if key in value
        )


def _spell(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_spell(key)}:{_spell(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spell, value)) + "]"
    if isinstance(value, float):
        shown = Decimal(repr(value))  # the decimal that JSON shows, not the binary fraction next to it
        return str(int(shown)) if value.is_integer() else format(shown, "f")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
