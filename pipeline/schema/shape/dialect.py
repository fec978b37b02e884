"""What each grammar back end reads right: how a scalar shape is written for it, and what is left out because it is not.

Found by trying, with the pinned versions: xgrammar 0.2.8 and llguidance 1.7.6 as vLLM 0.32 drives them. The tests try
again, and `gristmill check` tries every schema it compiles. docs/transport.md has the table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.schema.pattern.ast import Node, Unsupported
from pipeline.schema.pattern.emit import guidance_widens, to_guidance, to_xgrammar
from pipeline.schema.pattern.length import any_string, bounded
from pipeline.schema.shape.shapes import Literals, Number, Site, Text

Drop = Callable[[Site, str], None]
"""Called with a site that the written schema does not hold, and why."""

ENUMERATED = 256
"""Multiples in a range that are few enough to be listed."""

_REWRITTEN = frozenset({"not", "then", "dependentRequired", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The limits of one back end. `largest_bound` is for integers, `largest_count` for minItems and maxItems."""

    name: str
    bounded_numbers: bool
    largest_bound: int
    largest_count: int
    largest_enum: int
    names: bool
    absent_keys: bool
    counts_optional_keys: bool
    odd_names_apart: bool

    def tells_name_apart(self, name: str) -> bool:
        """Whether a declared key of this name is never taken for an undeclared one."""
        return self.odd_names_apart or (name.isascii() and name.isprintable() and not {'"', "\\"} & set(name))


XGRAMMAR = Dialect(
    "xgrammar",
    bounded_numbers=False,  # a bound caps numbers at six decimals
    largest_bound=10**18,
    largest_count=5000,
    largest_enum=10_000,  # 20,000 members take 12 s
    names=True,
    absent_keys=False,  # `false` as a property is a compile error
    counts_optional_keys=True,
    odd_names_apart=False,  # names that are not plain in JSON text, or beyond ASCII
)
GUIDANCE = Dialect(
    "guidance",
    bounded_numbers=True,
    largest_bound=2**53,  # computed in binary floating point; near 2^63 the process crashes
    largest_count=5000,
    largest_enum=100_000,
    names=False,
    absent_keys=True,
    counts_optional_keys=False,  # "only supported when all keys listed in properties are required"
    odd_names_apart=True,
)
DIALECTS = {"xgrammar": XGRAMMAR, "guidance": GUIDANCE}


def number(dialect: Dialect, shape: Number, drop: Drop) -> dict[str, Any]:
    """A number shape as a schema. Ranges with few multiples of a step are listed."""
    listed = _multiples(shape)
    if listed is not None:
        return {"enum": listed}
    schema: dict[str, Any] = {"type": "integer" if shape.integer else "number"}
    if shape.integer:
        _bound(schema, "minimum", shape.minimum, dialect.largest_bound)
        _bound(schema, "maximum", shape.maximum, dialect.largest_bound)
    elif dialect.bounded_numbers:
        _decimal_bound(schema, "inimum", shape.minimum, shape.open_minimum)
        _decimal_bound(schema, "aximum", shape.maximum, shape.open_maximum)
    if _step_is_held(dialect, shape):
        assert shape.multiple_of is not None
        schema["multipleOf"] = _json_number(shape.multiple_of)
    wanted = (("inimum", shape.minimum), ("aximum", shape.maximum))
    for end, value in wanted:
        keywords = (f"m{end}", f"exclusiveM{end}")
        if value is not None and (value not in _written(schema, keywords) or _zero_slips_in(dialect, shape, end)):
            _drop_number(dialect, shape, keywords, drop)
    if shape.multiple_of is not None and shape.multiple_of not in _written(schema, ("multipleOf",)):
        _drop_number(dialect, shape, ("multipleOf",), drop)
    return schema


def _written(schema: dict[str, Any], keywords: Collection[str]) -> list[Fraction]:
    return [Fraction(repr(schema[name])) for name in keywords if name in schema]


def _zero_slips_in(dialect: Dialect, shape: Number, end: str) -> bool:
    """llguidance takes 0 for a number between 0 and less than 1, both left out."""
    if dialect is not GUIDANCE or shape.integer:
        return False
    if end == "inimum":
        return shape.open_minimum and shape.minimum == 0 and shape.maximum is not None and shape.maximum < 1
    return shape.open_maximum and shape.maximum == 0 and shape.minimum is not None and shape.minimum > -1


def _drop_number(dialect: Dialect, shape: Number, keywords: Collection[str], drop: Drop) -> None:
    for site in shape.sites:
        if speaks(site, keywords):
            drop(site, _why_dropped(dialect, site[1]))


def speaks(site: Site, keywords: Collection[str]) -> bool:
    """Whether a site is one of these keywords, or one that the reader rewrote into others and that may be behind them."""
    return site[1] in keywords or site[1] in _REWRITTEN


def _why_dropped(dialect: Dialect, keyword: str) -> str:
    if keyword == "multipleOf":
        return f"{dialect.name} holds multiples only of some steps, if at all"
    return f"{dialect.name} loses legal numbers under this bound"


def _bound(schema: dict[str, Any], keyword: str, value: Fraction | None, largest: int) -> None:
    """Write a bound of whole numbers that a back end computes with exactly."""
    if value is not None and abs(value) <= largest:
        schema[keyword] = _json_number(value)


def _decimal_bound(schema: dict[str, Any], end: str, value: Fraction | None, is_open: bool) -> None:
    """Write a bound of numbers with at most one decimal, if need be a wider one: under `maximum: 12.34` llguidance loses
    12.3, and the like for every bound of more decimals."""
    if value is None or abs(value) > 10**15:
        return
    if (value * 10).denominator == 1:
        schema[f"exclusiveM{end}" if is_open else f"m{end}"] = _json_number(value)
    else:
        schema[f"m{end}"] = _json_number(Fraction((math.ceil if end == "aximum" else math.floor)(value * 10), 10))


def _json_number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _step_is_held(dialect: Dialect, shape: Number) -> bool:
    """llguidance counts steps from zero upwards, and a decimal step only if it is a power of ten; vLLM refuses the
    keyword for xgrammar. Whole numbers need no step of one."""
    step = shape.multiple_of
    if step is None or dialect.name != "guidance" or shape.minimum is None or shape.minimum < 0:
        return False
    if step == 1:
        return False
    if step.denominator == 1:
        return step <= 10**6 and (shape.maximum is None or shape.maximum >= step)
    return step.numerator == 1 and step.denominator in (10, 100, 1000, 10_000, 100_000, 1_000_000)


def _multiples(shape: Number) -> list[int] | None:
    """The values of a whole-number shape with a step, if they are few."""
    step, lowest, highest = shape.multiple_of, shape.minimum, shape.maximum
    if step is None or step == 1 or lowest is None or highest is None or not shape.integer:
        return None
    step = step if step.denominator == 1 else Fraction(step.numerator)  # whole multiples of p/q are multiples of p
    first, last = math.ceil(lowest / step), math.floor(highest / step)
    if last - first >= ENUMERATED or max(abs(lowest), abs(highest)) > 10**15:
        return None
    return [int(index * step) for index in range(first, last + 1)]


def text(dialect: Dialect, shape: Text, drop: Drop) -> dict[str, Any]:
    """A string shape as a schema."""
    return _xgrammar_text(shape, drop) if dialect is XGRAMMAR else _guidance_text(shape, drop)


def _guidance_text(shape: Text, drop: Drop) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if shape.minimum:
        schema["minLength"] = shape.minimum
    if shape.maximum is not None:
        schema["maxLength"] = shape.maximum
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
    types = sorted({_type_name(value) for value in values})
    if len(values) > dialect.largest_enum and len(types) == 1:
        for site in shape.sites:
            drop(site, f"more than {dialect.largest_enum} constants stall {dialect.name}")
        return [{"type": types[0]}]
    kept = [value for value in values if _is_spelled(dialect, value)]
    schemas: list[dict[str, Any]] = [{"enum": kept}] if kept else []
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
