"""What CEL calculates with: JSON values, exact fractions, instants and spans; their equality, order and arithmetic.

A number is an `int` or a `Fraction`, never a rounded double: a JSON number counts as the decimal that it shows. All
numbers are of one kind, so 2 == 2.0 and 3 * 0.1 == 0.3 hold, and 7 / 2 is 3.5.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_BITS = 8192
"""Of a numerator or denominator. Twice what the product of the largest and the smallest double needs."""


class CelError(Exception):
    """A rule that has no value for this record, such as one that reads an absent field; the text says why."""


class TooCostly(CelError):
    """The work that a rule may cost is spent; no `||` makes up for it."""


class Meter:
    """What may still be spent: a million `steps` take 0.2 to 0.7 s; `seconds` are for searching by patterns."""

    __slots__ = ("seconds", "steps")

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps = steps
        self.seconds = seconds

    def spend(self, steps: int) -> None:
        """Take from it.

        Raises:
            TooCostly: there was not enough left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TooCostly("it takes more steps than a rule may: test fewer items or shorter texts")

    def searched(self, started: float) -> None:
        """Take what a search took since `started`, by `time.monotonic`.

        Raises:
            TooCostly: there was not enough left.
        """
        self.seconds -= time.monotonic() - started
        if self.seconds < 0:
            raise TooCostly("its patterns take too long")


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """Seconds since 1970-01-01T00:00:00Z."""

    seconds: Fraction


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A duration in seconds."""

    seconds: Fraction


@dataclass(frozen=True, slots=True)
class Maybe:
    """What `.?field` gives."""

    value: Any = None
    present: bool = False


def kind(value: Any) -> str:
    """The name of a value's type in messages."""
    if isinstance(value, bool):
        return "bool"
    if value is None:
        return "null"
    names = ((int | float | Fraction, "number"), (str, "string"), (list, "list"), (dict, "map"))
    return next((name for types, name in names if isinstance(value, types)), type(value).__name__.lower())


def exact(number: Any) -> int | Fraction:
    """A number as what it shows: 0.1 is a tenth.

    Raises:
        CelError: it is not finite.
    """
    if type(number) is float:
        try:
            above, below = Decimal(repr(number)).as_integer_ratio()
        except (ValueError, OverflowError) as error:
            raise CelError(f"{number} is no finite number") from error
        return Fraction(above, below)
    return number  # type: ignore[no-any-return]


def is_number(value: Any) -> bool:
    """Whether a value is one; true and false are none."""
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)


def equal(one: Any, other: Any, meter: Meter) -> bool:
    """JSON equality: values of different kinds are unequal, 1 equals 1.0, key order is irrelevant."""
    if is_number(one):
        return is_number(other) and (one == other if type(one) is type(other) else exact(one) == exact(other))
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        meter.spend(len(one))
        return len(one) == len(other) and all(equal(a, b, meter) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        meter.spend(len(one))
        return one.keys() == other.keys() and all(equal(value, other[key], meter) for key, value in one.items())
    if isinstance(one, str):
        meter.spend(len(one) >> 6)
    return bool(one == other)


def less(one: Any, other: Any) -> bool:
    """Whether one value comes before another of its kind.

    Raises:
        CelError: the two have no order.
    """
    if is_number(one) and is_number(other):
        return exact(one) < exact(other)
    if type(one) is type(other) and isinstance(one, str | bool | Instant | Span):
        return bool(one < other)
    raise CelError(f"{kind(one)} and {kind(other)} have no order{_hint(one, other)}")


def calculate(operator: str, one: Any, other: Any, meter: Meter) -> Any:
    """`+`, `-`, `*`, `/` or `%` of two values.

    Raises:
        CelError: not defined for these two, or beyond MAX_BITS.
    """
    if is_number(one) and is_number(other):
        left, right = exact(one), exact(other)
        bits = sum(part.bit_length() for side in (left, right) for part in (side.numerator, side.denominator))
        meter.spend((bits >> 7) + (bits * bits >> 18))  # the greatest common divisor takes time by the square
        return _number(operator, left, right)
    if operator == "+" and type(one) is type(other) and isinstance(one, str | list):
        meter.spend((len(one) + len(other)) >> (4 if isinstance(one, str) else 0))
        return one + other
    if isinstance(one, Instant | Span) and isinstance(other, Instant | Span):
        return _moved(operator, one, other)
    raise CelError(f"{kind(one)} {operator} {kind(other)} is not defined{_hint(one, other)}")


def bounded(number: int | Fraction) -> int | Fraction:
    """A number as it is.

    Raises:
        CelError: it has more than MAX_BITS.
    """
    if number.numerator.bit_length() > MAX_BITS or number.denominator.bit_length() > MAX_BITS:
        raise CelError("a number grows beyond all bounds")
    return number


def _number(operator: str, one: int | Fraction, other: int | Fraction) -> int | Fraction:
    bounded(one), bounded(other)  # before, since a product of long numbers takes long
    if operator == "+":
        return bounded(one + other)
    if operator == "-":
        return bounded(one - other)
    if operator == "*":
        return bounded(one * other)
    if other == 0:
        raise CelError("a division by zero")
    if operator == "/":
        return bounded(Fraction(one) / other)
    if one.denominator != 1 or other.denominator != 1:
        raise CelError("% takes whole numbers")
    rest = abs(int(one)) % abs(int(other))
    return -rest if one < 0 else rest


def _moved(operator: str, one: Instant | Span, other: Instant | Span) -> Instant | Span:
    """Instants and spans added and subtracted."""
    shapes = isinstance(one, Instant), isinstance(other, Instant)
    if operator == "+" and shapes != (True, True):
        return (Instant if any(shapes) else Span)(one.seconds + other.seconds)
    if operator == "-" and shapes != (False, True):
        return (Instant if shapes == (True, False) else Span)(one.seconds - other.seconds)
    raise CelError(f"{kind(one)} {operator} {kind(other)} is not defined")


def _hint(*values: Any) -> str:
    return ": guard it, as in self.x == null || …" if None in [value for value in values if value is None] else ""
