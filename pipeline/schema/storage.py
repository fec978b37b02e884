"""Columns, and how values are stored in them: strictly, or not at all.

A column is one node of a tree that mirrors the record, free of Arrow (`arrow.py` gives the types). What a column cannot
hold exactly is a misfit, which `steps/validate.py` reports as a coded problem; nothing is ever coerced or rounded.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from pipeline.records import JsonValue
from pipeline.schema.walk import escape

Kind = Literal["string", "integer", "number", "decimal", "date", "boolean", "list", "struct", "json"]

INT64 = range(-(2**63), 2**63)
DIGITS = 38
"""What a 128-bit decimal holds."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Column:
    """One node of the tree. `json` columns hold the value's JSON text; `fields` are in schema order.

    `scale` is the number of decimals of a `decimal`; `format` names what the text of a `string` is, where Arrow has a
    type for that which would lose some of it; `note` says in one sentence why a column is text and not typed.
    """

    kind: Kind
    nullable: bool = False
    item: Column | None = None
    fields: tuple[tuple[str, Column], ...] = ()
    scale: int = 0
    format: str = ""
    note: str = ""


class _Misfit(Exception):
    """A value is not what its column holds; the text completes "the value …"."""


def misfits(column: Column, value: JsonValue, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Where a schema-valid value does not fit its column: (JSON pointer, reason). Members may be missing."""
    if value is None and column.nullable and column.kind != "json":
        return
    if column.kind == "list" and column.item is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from misfits(column.item, item, f"{pointer}/{index}")
    elif column.kind == "struct" and isinstance(value, dict):
        for name, child in column.fields:
            if name in value:
                yield from misfits(child, value[name], f"{pointer}/{escape(name)}")
        if not value.keys() <= {name for name, _ in column.fields}:
            yield pointer, "holds a key that has no column"
    else:
        try:
            _leaf(column, value)
        except _Misfit as misfit:
            yield pointer, str(misfit)


def stored(column: Column, value: JsonValue, *, all_nullable: bool = False, pointer: str = "") -> Any:
    """The value as its column takes it: JSON text where the column is `json`, Decimal, date, missing members as None.

    With `all_nullable`, as in degraded tables, required members may be missing.

    Raises:
        TypeError: the value was not validated against the schema that the column comes from, or is a misfit.
    """
    if value is None and column.kind != "json" and (column.nullable or all_nullable):
        return None
    if column.kind == "list" and column.item is not None and isinstance(value, list):
        item = column.item
        return [
            stored(item, one, all_nullable=all_nullable, pointer=f"{pointer}/{index}")
            for index, one in enumerate(value)
        ]
    if column.kind == "struct" and isinstance(value, dict):
        return _members(column, value, all_nullable, pointer)
    try:
        return _leaf(column, value)
    except _Misfit as misfit:
        raise TypeError(f"the value at {pointer or '/'} {misfit}; validate records before they are written") from None


def _members(column: Column, value: dict[str, Any], all_nullable: bool, pointer: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, child in column.fields:
        here = f"{pointer}/{escape(name)}"
        if name in value:
            row[name] = stored(child, value[name], all_nullable=all_nullable, pointer=here)
        elif child.nullable or all_nullable:
            row[name] = None
        else:
            raise TypeError(f"the value at {here} is missing, and its column takes no null")
    if not value.keys() <= row.keys():
        raise TypeError(f"the value at {pointer or '/'} holds a key that has no column: {sorted(value)}")
    return row


def _leaf(column: Column, value: JsonValue) -> Any:
    if column.kind == "json":
        return _json_text(value)
    if value is None:
        raise _Misfit("is null, which its column does not take")
    if column.kind in _NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        return _NUMBERS[column.kind](column, value)
    if column.kind == "boolean" and isinstance(value, bool):
        return value
    if column.kind == "date" and isinstance(value, str):
        return _day(value)
    if column.kind == "string" and isinstance(value, str):
        if not is_unicode(value):
            raise _Misfit("holds half of a UTF-16 surrogate pair, which no column of text can")
        return value
    raise _Misfit(f"is {_ARTICLES.get(type(value), type(value).__name__)}, and its column takes {column.kind} only")


def _json_text(value: JsonValue) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Half a surrogate pair has no UTF-8 form, but its escape is JSON all the same.
        return text if is_unicode(text) else json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _Misfit(f"cannot be written as JSON: {error}") from None


def is_unicode(text: str) -> bool:
    """Whether a text has a UTF-8 form: no half of a surrogate pair in it."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _day(text: str) -> date:
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise _Misfit("is not a date YYYY-MM-DD from 0001-01-01 to 9999-12-31") from None


def _integer(_column: Column, value: float) -> int:
    exact = _unscaled(value, 0)
    if exact not in INT64:
        raise _Misfit("is an integer beyond 64 bits")
    _check_spacing(value, 0)
    return exact


def _double(_column: Column, value: float) -> float:
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted) or (isinstance(value, int) and int(converted) != value):
        raise _Misfit("is an integer that a 64-bit float cannot hold exactly, or not finite")
    return converted


def _decimal(column: Column, value: float) -> Decimal:
    exact = _unscaled(value, column.scale)
    if abs(exact) >= 10**DIGITS:
        raise _Misfit(f"has more than the {DIGITS - column.scale} digits before the decimal point of its column")
    _check_spacing(value, column.scale)
    # From digits: arithmetic would round to the precision of whatever decimal context is in force.
    return Decimal((int(exact < 0), tuple(map(int, str(abs(exact)))), -column.scale))


def _unscaled(value: float, scale: int) -> int:
    """The number as a multiple of 10^-scale, from the decimal that JSON shows (repr of a float)."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _Misfit("is not finite")
    shown = Fraction(value if isinstance(value, int) else repr(value)) * 10**scale
    if shown.denominator != 1:
        raise _Misfit(f"has more than the {scale} decimals of its column" if scale else "is not an integer")
    return int(shown)


def _check_spacing(value: float, scale: int) -> None:
    """Refuse floats whose neighbours lie further apart than the column's last digit: reading them lost that digit."""
    if isinstance(value, float) and math.ulp(value) > 10.0**-scale:
        raise _Misfit("is too large to be exact when written with a fraction or an exponent; write fewer digits")


_NUMBERS: dict[str, Callable[[Column, float], Any]] = {"integer": _integer, "number": _double, "decimal": _decimal}
_ARTICLES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def as_json(value: Any) -> Any:
    """What a reader finds in a column, as JSON has it: decimals as the numbers and dates as the texts they were."""
    if isinstance(value, dict):
        return {name: as_json(child) for name, child in value.items()}
    if isinstance(value, list):
        return [as_json(child) for child in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, date) else value
