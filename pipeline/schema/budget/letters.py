"""Letters: the most bytes that the canonical text of a string or a number can take.

A token of a byte-level tokenizer stands for one byte or more, so bytes bound tokens.
"""

from __future__ import annotations

from fractions import Fraction

from pipeline.schema.budget.policy import CODE_POINT_BYTES, NUMBER_CHARACTERS
from pipeline.schema.pattern.ast import Alt, Chars, Node, Repeat, parts
from pipeline.schema.shape.shapes import Number, Text

_SHORT_ESCAPES = frozenset(map(ord, "\b\f\n\r\t"))
_MAX_DECIMALS = 30


def text_bytes(shape: Text) -> int | None:
    """Bytes of a longest string of a shape, without its quotes; None if there is none."""
    bounds: list[int] = []
    if shape.maximum is not None:
        bounds.append(shape.maximum * CODE_POINT_BYTES)
    for _, node in shape.patterns:
        length = pattern_bytes(node)
        if length is not None:
            bounds.append(length)
        if shape.maximum is not None:
            bounds.append(shape.maximum * _widest(node))
    return min(bounds, default=None)


def pattern_bytes(node: Node) -> int | None:
    """Bytes of a longest member of a pattern; None if there is none."""
    if isinstance(node, Chars):
        return _widest(node)
    if isinstance(node, Repeat):
        item = pattern_bytes(node.item)
        if item == 0:
            return 0
        return None if item is None or node.maximum is None else item * node.maximum
    children = node.options if isinstance(node, Alt) else node.items
    lengths = [pattern_bytes(child) for child in children]
    known = [length for length in lengths if length is not None]
    if len(known) < len(lengths):
        return None
    return max(known, default=0) if isinstance(node, Alt) else sum(known)


def number_characters(shape: Number) -> int:
    """Characters of a longest number of a shape: exact where bounds and steps rule it, else as policy expects."""
    bounds = [bound for bound in (shape.minimum, shape.maximum) if bound is not None]
    digits = max((len(str(int(abs(bound)))) for bound in bounds), default=1)
    sign = int(shape.minimum is None or shape.minimum < 0)
    decimals = 0 if shape.integer else _decimals(shape.multiple_of)
    if len(bounds) == 2 and decimals is not None:
        return sign + digits + (1 + decimals if decimals else 0)
    return max(NUMBER_CHARACTERS, sign + digits)


def _decimals(step: Fraction | None) -> int | None:
    """Decimals that a multiple of a step can have; None if that has no bound."""
    if step is None:
        return None
    return next((count for count in range(_MAX_DECIMALS) if 10**count % step.denominator == 0), None)


def _widest(node: Node) -> int:
    """Most bytes of one character of a pattern."""
    widest, pending = 0, [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Chars):
            widest = max([widest, *(_bytes_in(low, high) for low, high in part.ranges)])
        else:
            pending += parts(part)
    return widest


def _bytes_in(low: int, high: int) -> int:
    """Most bytes of one character of a range, escaped as JSON asks for."""
    if any(code not in _SHORT_ESCAPES for code in range(low, min(high, 0x1F) + 1)):
        return CODE_POINT_BYTES
    escaped = low < 0x20 or any(low <= ord(char) <= high for char in '"\\')
    return max(2 if escaped else 1, len(chr(high).encode()))
