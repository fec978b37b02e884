"""The functions that a rule can call: conversions, `math`, optional values, and those of texts, lists and times."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from pipeline.schema.cel.arguments import Function, number_in, text_in
from pipeline.schema.cel.list_functions import LIST_FUNCTIONS, extreme_of
from pipeline.schema.cel.text_functions import TEXT_FUNCTIONS
from pipeline.schema.cel.times import TIME_FUNCTIONS, duration, instant_text, span_text, timestamp
from pipeline.schema.cel.values import CelError, Instant, Maybe, Meter, Span, kind

MAX_PLACES = 400
"""Decimals of a number that is shown as a text."""


def _size(_meter: Meter, value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise CelError(f"{kind(value)} has no size")
    return len(value)


def _to_int(_meter: Meter, value: Any) -> int:
    if isinstance(value, Instant):
        return math.floor(value.seconds)
    number = _parsed(value)
    if isinstance(value, str) and number.denominator != 1:
        raise CelError("a string that is no whole number")
    return math.trunc(number)


def _parsed(value: Any) -> int | Fraction:
    if not isinstance(value, str):
        return number_in(value)
    try:
        digits, _, exponent = value.lower().partition("e")
        if len(digits) > 400 or abs(int(exponent or 0)) > 400 or not value.isascii() or set("/_ ") & set(value):
            raise ValueError
        return Fraction(value)
    except ValueError as error:
        raise CelError("a string that is no number") from error


def _to_uint(meter: Meter, value: Any) -> int:
    number = _to_int(meter, value)
    if number < 0:
        raise CelError("uint() of a negative number")
    return number


def _to_string(meter: Meter, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return instant_text(value)
    if isinstance(value, Span):
        return span_text(value)
    number = number_in(value)
    meter.spend(number.numerator.bit_length() >> 4)
    if number.denominator == 1:
        if number.numerator.bit_length() > 4096:  # Python converts no more
            raise CelError("a number too long for a text")
        return str(number.numerator)
    places = _places(number.denominator)
    if not places:
        raise CelError("a number that no decimal shows exactly: round it first")
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _places(denominator: int) -> int:
    """The decimals that show a fraction with this denominator exactly; 0 if no MAX_PLACES do."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest > 1 and fives <= MAX_PLACES:
        rest, left = divmod(rest, 5)
        if left:
            return 0
        fives += 1
    return max(twos, fives) if max(twos, fives) <= MAX_PLACES else 0


def _to_bool(_meter: Meter, value: Any) -> bool:
    known = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    known |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if isinstance(value, bool):
        return value
    if text_in(value) not in known:
        raise CelError("a string that is neither true nor false")
    return known[value]


def _round(_meter: Meter, value: Any) -> int:
    """The nearest whole number, halves away from zero."""
    number = Fraction(number_in(value))
    return math.floor(abs(number) + Fraction(1, 2)) * (-1 if number < 0 else 1)


def _or_value(_meter: Meter, value: Any, other: Any) -> Any:
    return _maybe(value).value if _maybe(value).present else other


def _value(_meter: Meter, value: Any) -> Any:
    if not _maybe(value).present:
        raise CelError("value() of what is absent")
    return value.value


def _maybe(value: Any) -> Maybe:
    if not isinstance(value, Maybe):
        raise CelError(f"{kind(value)} is not optional: write .?field")
    return value


FUNCTIONS: dict[str, Function] = {
    "size": Function(_size, "both", 1, 1),
    "int": Function(_to_int, "global", 1, 1),
    "uint": Function(_to_uint, "global", 1, 1),
    "double": Function(lambda _, value: _parsed(value), "global", 1, 1),
    "string": Function(_to_string, "global", 1, 1),
    "bool": Function(_to_bool, "global", 1, 1),
    "dyn": Function(lambda _, value: value, "global", 1, 1),
    "timestamp": Function(timestamp, "global", 1, 1),
    "duration": Function(duration, "global", 1, 1),
    "orValue": Function(_or_value, "member", 2, 2),
    "hasValue": Function(lambda _, value: _maybe(value).present, "member", 1, 1),
    "value": Function(_value, "member", 1, 1),
    "math.abs": Function(lambda _, value: abs(number_in(value)), "global", 1, 1),
    "math.ceil": Function(lambda _, value: math.ceil(number_in(value)), "global", 1, 1),
    "math.floor": Function(lambda _, value: math.floor(number_in(value)), "global", 1, 1),
    "math.trunc": Function(lambda _, value: math.trunc(number_in(value)), "global", 1, 1),
    "math.round": Function(_round, "global", 1, 1),
    "math.sign": Function(lambda _, value: (number_in(value) > 0) - (number_in(value) < 0), "global", 1, 1),
    "math.least": Function(extreme_of(-1), "global", 1, 9),
    "math.greatest": Function(extreme_of(1), "global", 1, 9),
    **TEXT_FUNCTIONS,
    **LIST_FUNCTIONS,
    **{name: Function(call, "member", 1, 2) for name, call in TIME_FUNCTIONS.items()},
}
"""Name → function; `math.` is a prefix of names, not a value."""
