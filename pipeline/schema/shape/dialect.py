"""What each grammar back end reads right: how a scalar shape is written for it, and what is left out because it is not.

Found by trying, with the pinned versions: xgrammar 0.2.8 and llguidance 1.7.6 as vLLM 0.32 drives them. The tests try
again, and `gristmill check` tries every schema it compiles. docs/transport.md has the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pipeline.schema.pattern.ast import Node, Unsupported
from pipeline.schema.pattern.emit import guidance_widens, to_guidance, to_xgrammar
from pipeline.schema.pattern.length import any_string, bounded
from pipeline.schema.shape.limits import DIALECTS as DIALECTS
from pipeline.schema.shape.limits import GUIDANCE as GUIDANCE
from pipeline.schema.shape.limits import XGRAMMAR as XGRAMMAR
from pipeline.schema.shape.limits import Dialect as Dialect
from pipeline.schema.shape.limits import Drop
from pipeline.schema.shape.limits import speaks as speaks
from pipeline.schema.shape.ranges import number as number
from pipeline.schema.shape.shapes import Literals, Text


def text(dialect: Dialect, shape: Text, drop: Drop) -> dict[str, Any]:
    """A string shape as a schema."""
    return _xgrammar_text(shape, drop) if dialect is XGRAMMAR else _guidance_text(shape, drop)


def _guidance_text(shape: Text, drop: Drop) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for keyword, count in (("minLength", shape.minimum or None), ("maxLength", shape.maximum)):
        if count is not None and count <= GUIDANCE_LENGTH:
            schema[keyword] = count
        elif count is not None:
            _drop_keyword(shape, keyword, drop, f"llguidance is not asked to count beyond {GUIDANCE_LENGTH}")
    patterns = []
    for site, node in shape.patterns:
        try:
            patterns.append(to_guidance(node))
        except Unsupported as error:
            drop(site, str(error))
            continue
        if guidance_widens(node):
            drop(site, "llguidance lets quotes and backslashes through in a class that has all control characters")
    if patterns:
        schema["pattern"] = patterns[0]
    if len(patterns) > 1:
        return {"allOf": [schema, *({"type": "string", "pattern": pattern} for pattern in patterns[1:])]}
    return schema


GUIDANCE_LENGTH = 1_000_000
"""Characters of a string; llguidance refuses the schema from 2^32 on."""

_UNCOUNTED = "xgrammar cannot count these characters, or only at a cost to every mask"


def _xgrammar_text(shape: Text, drop: Drop) -> dict[str, Any]:
    """xgrammar matches patterns against the JSON text between the quotes, its length keywords refuse every escape, and
    vLLM refuses a pattern beside them: so everything has to be said in one pattern, written for the JSON text."""
    why = ""
    for site, _ in shape.patterns[1:]:
        drop(site, "xgrammar takes one pattern a string")
    for node, dropped in _xgrammar_candidates(shape):
        try:
            pattern = to_xgrammar(node)
        except Unsupported as error:
            why = str(error)
            continue
        for keyword in dropped:
            _drop_keyword(shape, keyword, drop, _UNCOUNTED)
        return {"type": "string", "pattern": pattern}
    for site, _ in shape.patterns[:1]:
        drop(site, why)
    if shape.minimum or shape.maximum is not None:
        for keyword in ("minLength", "maxLength"):
            _drop_keyword(shape, keyword, drop, _UNCOUNTED)
    return {"type": "string"}


def _xgrammar_candidates(shape: Text) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Patterns for a string shape, the one that holds most first, each with the keywords that it does not hold."""
    chosen = shape.patterns[0][1] if shape.patterns else None
    lengths = bool(shape.minimum) or shape.maximum is not None
    if chosen is not None and lengths:
        narrowed = bounded(chosen, shape.minimum, shape.maximum)
        if narrowed is not None:
            yield narrowed, ()
    if chosen is not None:
        yield chosen, ("minLength", "maxLength") if lengths else ()
    elif lengths:
        yield any_string(shape.minimum, shape.maximum), ()
        if shape.minimum:
            yield any_string(shape.minimum, None), ("maxLength",)
            yield any_string(1, None), ("minLength", "maxLength")


def _drop_keyword(shape: Text, keyword: str, drop: Drop, why: str) -> None:
    for site in shape.sites:
        if speaks(site, (keyword,)):
            drop(site, why)


def literals(dialect: Dialect, shape: Literals, drop: Drop) -> list[dict[str, Any]]:
    """Constants as schemas, any of which may be met. Numbers that a back end spells otherwise are widened."""
    values = [json.loads(text) for text in shape.texts]
    counts = Counter(map(_type_name, values))
    many = {name for name, count in counts.items() if count > dialect.largest_enum}
    for site in shape.sites if many else ():
        drop(site, f"more than {dialect.largest_enum} constants stall {dialect.name}")
    values = [value for value in values if _type_name(value) not in many]
    kept = [value for value in values if _is_spelled(dialect, value)]
    schemas: list[dict[str, Any]] = [{"type": name} for name in sorted(many)]
    schemas += [{"enum": kept}] if kept else []
    widened = [value for value in values if not _is_spelled(dialect, value)]
    whole = all(isinstance(value, int) for value in widened if _type_name(value) == "number")
    for name in sorted(set(map(_type_name, widened))):
        for site in shape.sites:
            drop(site, f"{dialect.name} spells some of these numbers in another way")
        schemas.append({"type": "integer" if name == "number" and whole else name})
    return schemas


def _type_name(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _is_spelled(dialect: Dialect, value: Any) -> bool:
    """Whether a constant comes out as JSON spells it: no exponent; for xgrammar 64-bit integers and what C's `%.17g`
    prints; for llguidance integers that binary floating point holds."""
    if isinstance(value, list):
        return all(_is_spelled(dialect, item) for item in value)
    if isinstance(value, dict):
        return all(_is_spelled(dialect, item) for item in value.values())
    if isinstance(value, float):
        shown = repr(value)
        return "e" not in shown and (dialect is GUIDANCE or f"{value:.17g}" == shown)
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= (2**53 if dialect is GUIDANCE else 2**63 - 1)
    return True
