"""Which column holds the numbers of a schema: int64, decimal, double or, where none is exact, JSON text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pipeline.schema.columns_together import Together, type_of
from pipeline.schema.storage import DIGITS, INT64, Column, misfits

MAX_SCALE = 18
"""More decimals than this leave too few digits before the point, so such numbers stay doubles."""


def number_column(told: Together, *, integral: bool) -> Column:
    """The column of numbers. `integral` if the schema allows only integers.

    Numbers of a decimal `multipleOf` have its decimals; of an integer one they are integers. The schema's own bounds
    and members decide whether 64 bits do.
    """
    scale = 0 if integral else _scale(told.values("multipleOf"))
    members = [value for value in told.members() or () if type_of(value) in ("integer", "number")]
    if scale is None:
        column = Column("number")
        inexact = any(next(misfits(column, value), None) for value in members)
        return Column("json", note="numbers that no 64-bit float holds exactly") if inexact else column
    needed = [exact(min(members)), exact(max(members))] if members else _bounds(told.parts)
    fractions = [value * 10**scale for value in needed]
    if any(abs(value) >= 10**DIGITS for value in fractions):
        return Column("json", note=f"numbers of more than {DIGITS} digits")
    whole = [math.ceil(value) if value < 0 else math.floor(value) for value in fractions]
    if scale == 0 and all(value in INT64 for value in whole):
        return Column("integer")
    return Column("decimal", scale=scale)


def exact(number: float) -> Fraction:
    """The decimal that JSON shows for a number."""
    return Fraction(number if isinstance(number, int) else repr(number))


def _scale(divisors: Sequence[float]) -> int | None:
    """The fewest decimals that any of the divisors leaves; None for doubles."""
    # An exponent of a normalised Decimal is an int: JSON has no infinite numbers.
    places = [max(0, -int(Decimal(repr(divisor)).normalize().as_tuple().exponent)) for divisor in divisors]
    return min((count for count in places if count <= MAX_SCALE), default=None)


def _bounds(parts: Sequence[Mapping[str, Any]]) -> list[Fraction]:
    """The tightest lowest and highest value that the parts give, those that they give."""

    def tightest(inclusive: str, exclusive: str, inwards: int, choose: Callable[..., Fraction]) -> list[Fraction]:
        given = [exact(part[inclusive]) for part in parts if inclusive in part]
        given += [exact(part[exclusive]) + Fraction(inwards, 10**MAX_SCALE) for part in parts if exclusive in part]
        return [choose(given)] if given else []

    return tightest("minimum", "exclusiveMinimum", 1, max) + tightest("maximum", "exclusiveMaximum", -1, min)
