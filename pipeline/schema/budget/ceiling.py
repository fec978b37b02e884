"""Ceiling: the longest canonical text that shapes allow, in tokens and in bytes, or where it has no bound.

Sizes add up from the leaves; a named shape is sized once. Keys and constants are counted by the tokenizer, each by
itself with `JOINT` to spare; strings and numbers are taken as one token a byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.schema.budget.letters import number_characters, pattern_bytes, text_bytes
from pipeline.schema.budget.meter import Count, Meter
from pipeline.schema.budget.order import possible, post_order
from pipeline.schema.budget.policy import END_TOKENS, JOINT, LARGEST, MAX_MEMBERS
from pipeline.schema.shape.merge import compact
from pipeline.schema.shape.shapes import (
    NEVER,
    Anything,
    Array,
    Boolean,
    Literals,
    Null,
    Number,
    Object,
    Property,
    Ref,
    Shape,
    Shapes,
    Text,
    Union,
)

_CALLS, _CHARACTERS = 1500, 100_000
_EXPONENT = re.compile(r"[0-9]e-([0-9]{1,3})")


class Size(NamedTuple):
    """A bound in both units."""

    tokens: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Ceiling:
    """`tokens` counts the end token. Both are None if there is something in `unbounded_at` (sorted pointers)."""

    tokens: int | None
    bytes: int | None
    unbounded_at: tuple[str, ...]


def ceiling(shapes: Shapes, count: Count) -> Ceiling:
    """The bound of shapes."""
    sizer = _Sizer(shapes, Meter(count, _CALLS, _CHARACTERS))
    order, again = post_order(shapes, possible)
    for name in again:
        sizer.note(NEVER, name)
    for name in order:
        sizer.named[name] = sizer.size(shapes.named[name], name)
    whole = sizer.size(shapes.root, "")
    if sizer.unbounded:
        return Ceiling(None, None, tuple(sorted(sizer.unbounded)))
    return Ceiling(whole.tokens + END_TOKENS, whole.bytes, ())


class _Sizer:
    """Where something has no bound, it is noted and counts as nothing, so that all such places are found."""

    def __init__(self, shapes: Shapes, meter: Meter) -> None:
        self.shapes, self.meter = shapes, meter
        self.named: dict[str, Size] = {}
        self.unbounded: set[str] = set()

    def note(self, shape: Shape, name: str) -> Size:
        """Note the pointer of a shape that stands in a named one."""
        sites = shape.sites if isinstance(shape, Text | Array | Object) else ()
        origins = [pointer for pointer, _ in sites] or self.shapes.origins.get(name, ()) or [""]
        self.unbounded.add(origins[0])
        return Size(0, 0)

    def size(self, shape: Shape, name: str) -> Size:
        if isinstance(shape, Ref):
            return self.named.get(shape.name, Size(0, 0))
        if isinstance(shape, Union):
            return _most([self.size(option, name) for option in shape.options])
        if isinstance(shape, Array):
            return self._limited(self._array(shape, name), shape, name)
        if isinstance(shape, Object):
            return self._limited(self._object(shape, name), shape, name)
        if isinstance(shape, Number):
            return Size(number_characters(shape), number_characters(shape))
        if isinstance(shape, Text):
            length = text_bytes(shape)
            whole = None if length is None else Size(length + 2, length + 2)
            return self.note(shape, name) if whole is None else self._limited(whole, shape, name)
        if isinstance(shape, Anything):
            return self.note(shape, name)
        texts = {Boolean: ("true", "false"), Null: ("null",)}.get(type(shape), ())
        return self._constants(shape.texts if isinstance(shape, Literals) else texts)

    def _limited(self, size: Size, shape: Shape, name: str) -> Size:
        return size if size.bytes <= LARGEST else self.note(shape, name)

    def _constants(self, texts: tuple[str, ...]) -> Size:
        """The most of any constant. Those of many bytes come first: the others cannot take more tokens than bytes."""
        lengths = sorted(((_bytes(text) + _unrolled(text), text) for text in texts), reverse=True)
        most = 0
        for index, (length, text) in enumerate(lengths):
            if length <= most:
                break
            if index == MAX_MEMBERS:
                most = length
                break
            most = max(most, self._fixed(text).tokens)
        return Size(most, lengths[0][0] if lengths else 0)

    def _fixed(self, text: str) -> Size:
        more, tokens = _unrolled(text), self.meter.tokens(text)
        length = _bytes(text) + more
        return Size(length if tokens is None else min(length, tokens + more + JOINT), length)

    def _array(self, shape: Array, name: str) -> Size:
        first = [self.size(part, name) for part in shape.first[: shape.maximum]]
        items = _sum(first)
        if shape.rest == NEVER or (shape.maximum is not None and shape.maximum <= len(shape.first)):
            return _plus(items, 2 + len(first))
        rest = _plus(self.size(shape.rest, name), 1)
        if shape.maximum is None:
            return self.note(shape, name)
        further = shape.maximum - len(first)
        return _plus(_sum([items, Size(rest.tokens * further, rest.bytes * further)]), 2 + len(first))

    def _object(self, shape: Object, name: str) -> Size:
        required: list[Size] = []
        optional: list[Size] = []
        for item in shape.properties:
            if item.shape != NEVER:
                member = _sum([self._fixed(f",{compact(item.name)}:"), self._value(item, name)])
                (required if item.required else optional).append(member)
        further = None if shape.maximum is None else max(0, shape.maximum - len(required))
        chosen = [_sum(required), _largest(optional, further)]
        if shape.rest != NEVER and further != 0:
            key = None if shape.names is None else pattern_bytes(shape.names)
            if key is None or further is None:
                return self.note(shape, name)
            rest = _plus(self.size(shape.rest, name), key + 4)
            chosen.append(Size(rest.tokens * further, rest.bytes * further))
        return _plus(_sum(chosen), 2)

    def _value(self, item: Property, name: str) -> Size:
        if isinstance(item.shape, Anything) and item.judges:
            self.unbounded.add(item.judges[0][0])  # no shape has a name for its place
            return Size(0, 0)
        return self.size(item.shape, name)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _unrolled(text: str) -> int:
    """Characters that canonical text takes more for small numbers, which constants show with an exponent."""
    return sum(int(exponent) for exponent in _EXPONENT.findall(text))


def _sum(sizes: list[Size]) -> Size:
    return Size(sum(size.tokens for size in sizes), sum(size.bytes for size in sizes))


def _plus(size: Size, marks: int) -> Size:
    """With so many characters of punctuation."""
    return Size(size.tokens + marks, size.bytes + marks)


def _most(sizes: list[Size]) -> Size:
    return Size(max((size.tokens for size in sizes), default=0), max((size.bytes for size in sizes), default=0))


def _largest(sizes: list[Size], most: int | None) -> Size:
    """The sum of the largest ones; all of them without `most`."""
    tokens = sorted((size.tokens for size in sizes), reverse=True)[:most]
    return Size(sum(tokens), sum(sorted((size.bytes for size in sizes), reverse=True)[:most]))
