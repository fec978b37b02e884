"""Values of other columns of a row (`input.columns`), as JSON has them: what business rules see as `input`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from pipeline.records import JsonValue
from pipeline.runtime.input.formats import Ambiguous, Unreadable

MAX_DEPTH = 64
"""Far deeper than tables are; what travels to workers is encoded and decoded recursively."""

NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL and lone surrogates, which Arrow strings and tokenizers do not take."""

_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Value:
    """`replaced` counts the characters that became U+FFFD; `fault` completes "the column …" and is empty for a value
    that could be taken; `not_utf8` says that it could not because of its bytes."""

    json: JsonValue = None
    replaced: int = 0
    fault: str = ""
    not_utf8: bool = False


class _Fault(Exception):
    def __init__(self, reason: str, *, not_utf8: bool = False) -> None:
        super().__init__(reason)
        self.not_utf8 = not_utf8


def json_value(value: Any) -> Value:
    """A value of a row as JSON.

    Decimals become numbers, exact if they are whole and else the nearest double, as JSON's own are read; dates and
    times ISO 8601 text; durations seconds; bytes their UTF-8 text; what is not finite null; maps objects.
    """
    count = [0]
    try:
        return Value(_json(value, 0, count), count[0])
    except _Fault as fault:
        return Value(fault=str(fault), not_utf8=fault.not_utf8)


def _json(value: Any, depth: int, count: list[int]) -> JsonValue:
    if isinstance(value, dict | list | tuple):
        if depth == MAX_DEPTH:
            raise _Fault(f"is nested deeper than {MAX_DEPTH}")
        if isinstance(value, Ambiguous):
            raise _Fault("holds an object that repeats a key")
        if isinstance(value, dict):
            return {_text(str(key), count): _json(child, depth + 1, count) for key, child in value.items()}
        return [_json(child, depth + 1, count) for child in value]
    if isinstance(value, str):
        return _text(value, count)
    return _scalar(value, count)


def _scalar(value: Any, count: list[int]) -> JsonValue:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return _utf8(value, count)
    if isinstance(value, Unreadable):
        raise _Fault(value.reason, not_utf8=value.not_utf8)
    return _text(str(value), count)


def _number(value: Decimal) -> JsonValue:
    """One JSON type for a whole column as long as doubles are exact, so that rules need not tell 10 from 10.00."""
    if not value.is_finite():
        return None
    whole = value.as_tuple().exponent >= 0 or (abs(value) > _EXACT and value == int(value))  # type: ignore[operator]
    return int(value) if whole else float(value)


def _utf8(value: bytes, count: list[int]) -> str:
    try:
        return _text(value.decode("utf-8"), count)
    except UnicodeDecodeError as error:
        raise _Fault(f"is not UTF-8: {error.reason} at byte {error.start}", not_utf8=True) from None


def _text(text: str, count: list[int]) -> str:
    text, replaced = NOT_STORABLE.subn("\ufffd", text)
    count[0] += replaced
    return text
