"""Numbers of a number shape: the shortest, and those worth trying."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from pipeline.schema.shape.shapes import Number

MAX_DIGITS = 15
"""Decimals that are tried between two bounds; a double shows no more."""

LARGE = 2**53 + 1
"""A whole number that no double holds."""


def fits(shape: Number, value: Fraction) -> bool:
    """Whether a number belongs to a shape."""
    if shape.integer and value.denominator != 1:
        return False
    if shape.multiple_of is not None and (value / shape.multiple_of).denominator != 1:
        return False
    if shape.minimum is not None and (value < shape.minimum or (shape.open_minimum and value == shape.minimum)):
        return False
    return shape.maximum is None or not (value > shape.maximum or (shape.open_maximum and value == shape.maximum))


def spelled(value: Fraction) -> int | float | None:
    """The JSON number of a decimal; None if no double shows it."""
    if value.denominator == 1:
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if Fraction(repr(number)) == value else None


def labelled(shape: Number) -> dict[str, int | float]:
    """Numbers of a shape by what they are worth trying for: bounds, steps, zero, a sign, many digits."""
    found: dict[str, int | float] = {}
    for label, value in _candidates(shape):
        number = spelled(value) if fits(shape, value) else None
        if number is not None and number not in found.values():
            found.setdefault(label, number)
    return found


def shortest(shape: Number) -> int | float:
    """A number of the shape with few characters. Where no candidate fits, its lower bound, which may be none of it."""
    found = labelled(shape)
    if found:
        return min(found.values(), key=lambda number: len(str(number)))
    bound = shape.minimum if shape.minimum is not None else shape.maximum
    return 0 if bound is None else float(bound) if bound.denominator != 1 else int(bound)


def _candidates(shape: Number) -> Iterator[tuple[str, Fraction]]:
    step = shape.multiple_of or (Fraction(1) if shape.integer else None)
    yield "zero", Fraction(0)
    for label, bound, up in (("lowest", shape.minimum, True), ("highest", shape.maximum, False)):
        if bound is None:
            continue
        yield label, bound
        if step is not None:
            index = math.ceil(bound / step) if up else math.floor(bound / step)
            yield label, index * step
            yield f"{label} but one", (index + 1 if up else index - 1) * step
        yield f"{label} whole", Fraction(math.floor(bound) + 1 if up else math.ceil(bound) - 1)
        yield from _near(label, bound, up)
    unit = step if step is not None and step.denominator > 1 else Fraction(1)
    for label, value in (("one", 1), ("negative", -7), ("some", 42), ("large", LARGE), ("very negative", -LARGE)):
        yield label, value * (step if step is not None else Fraction(1))
    yield "steps", unit * 1999
    if step is None:
        for label, text in (("decimal", "19.99"), ("tiny", "0.0000015"), ("digits", "-3.141592653589793")):
            yield label, Fraction(text)


def _near(label: str, bound: Fraction, up: bool) -> Iterator[tuple[str, Fraction]]:
    """Decimals just inside a bound, of one digit and of ever more."""
    for digits in (1, 2, 3, 6, 9, MAX_DIGITS):
        scale = 10**digits
        index = math.floor(bound * scale) + 1 if up else math.ceil(bound * scale) - 1
        yield f"{label} {digits} digits", Fraction(index, scale)
