"""Ranges: number shapes as schemas that a back end reads right."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from pipeline.schema.shape.limits import GUIDANCE, Dialect, Drop, speaks
from pipeline.schema.shape.shapes import Number

ENUMERATED = 256
"""Multiples in a range that are few enough to be listed."""


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
        if value is not None and (value not in _written(schema, keywords) or _open_end_slips_in(dialect, shape, end)):
            _drop_number(dialect, shape, keywords, drop)
    if shape.multiple_of is not None and shape.multiple_of not in _written(schema, ("multipleOf",)):
        _drop_number(dialect, shape, ("multipleOf",), drop)
    return schema


def _written(schema: dict[str, Any], keywords: Collection[str]) -> list[Fraction]:
    return [Fraction(repr(schema[name])) for name in keywords if name in schema]


def _open_end_slips_in(dialect: Dialect, shape: Number, end: str) -> bool:
    """llguidance takes 1 for a number between 1 and 1.5, both left out: in short ranges an open end may slip in."""
    if dialect is not GUIDANCE or shape.integer or shape.minimum is None or shape.maximum is None:
        return False
    return shape.maximum - shape.minimum < 1 and (shape.open_minimum if end == "inimum" else shape.open_maximum)


def _drop_number(dialect: Dialect, shape: Number, keywords: Collection[str], drop: Drop) -> None:
    for site in shape.sites:
        if speaks(site, keywords):
            drop(site, _why_dropped(dialect, site[1]))


def _why_dropped(dialect: Dialect, keyword: str) -> str:
    if keyword == "multipleOf":
        return f"{dialect.name} holds multiples only of some steps, if at all"
    return f"{dialect.name} loses legal numbers under this bound"


def _bound(schema: dict[str, Any], keyword: str, value: Fraction | None, largest: int) -> None:
    """Write a bound of whole numbers that a back end computes with exactly."""
    if value is not None and abs(value) <= largest:
        schema[keyword] = _json_number(value)


def _decimal_bound(schema: dict[str, Any], end: str, value: Fraction | None, is_open: bool) -> None:
    """Write a bound of numbers with at most one decimal, if need be a wider one: under `maximum: 12.34` llguidance
    loses 12.3, and the like for every bound of more decimals."""
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
    first, last = math.ceil(lowest / step), math.floor(highest / step)
    if last - first >= ENUMERATED or max(abs(lowest), abs(highest)) > 10**15:
        return None
    return [int(index * step) for index in range(first, last + 1)]
