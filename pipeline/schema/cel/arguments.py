"""What functions of CEL demand of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.schema.cel.values import CelError, bounded, exact, is_number, kind


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a meter and values, of which there are `least` to `most`, a target among them.

    `style`: called as `member` (x.f()), as `global` (f(x)) or as `both`.
    """

    call: Callable[..., Any]
    style: str
    least: int
    most: int


def text_in(value: Any) -> str:
    """The value as text, or CelError."""
    if not isinstance(value, str):
        raise CelError(f"{kind(value)} is no string")
    return value


def list_in(value: Any) -> list[Any]:
    """The value as a list, or CelError."""
    if not isinstance(value, list):
        raise CelError(f"{kind(value)} is no list")
    return value


def number_in(value: Any) -> int | Fraction:
    """The value as an exact number within bounds, or CelError."""
    if not is_number(value):
        raise CelError(f"{kind(value)} is no number")
    return bounded(exact(value))


def whole_in(value: Any) -> int:
    """The value as a whole number, or CelError."""
    number = number_in(value)
    if number.denominator != 1:
        raise CelError("a position has to be a whole number")
    return int(number)
