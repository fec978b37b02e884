"""Minimal: the smallest value of every shape, in characters of canonical text.

Sizes are the least fixed point of "the least of the options" and "the sum of the parts", so recursion is no matter. The
values are those of shapes: a site that shapes leave to the validator may refuse them.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from itertools import chain, islice, product
from typing import Any

from pipeline.schema.probe import numbers, texts
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
    parts,
)

MAX_SIZE = 2_000_000
MAX_NESTING = 150
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ODD = ("extra", 'odd "key" \\ 中 😀')


class TooLargeError(ValueError):
    """The smallest value of a shape is larger than MAX_SIZE characters, or nested deeper than MAX_NESTING."""


class Minimal:
    """The sizes and values of one `Shapes`. Scalars are worked out once."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self._scalars: dict[int, Any] = {}
        self.sizes: dict[str, float] = {}
        """The least size of every named shape; infinite for one without a value."""
        self._settle(shapes.named)

    def size(self, shape: Shape) -> float:
        """Characters of the smallest value; infinite if there is none."""
        if isinstance(shape, Ref):
            return self.sizes.get(shape.name, math.inf)
        if isinstance(shape, Union):
            return min(map(self.size, shape.options), default=math.inf)
        if isinstance(shape, Array):
            within = shape.first[: shape.minimum]
            further = max(0, shape.minimum - len(shape.first))
            items = sum(map(self.size, within)) + (further * self.size(shape.rest) if further else 0)
            return 2 + items + max(0, shape.minimum - 1)
        if isinstance(shape, Object):
            members = [_key_size(item.name) + self.size(item.shape) for item in self.needed(shape)]
            members += [_key_size(name) + self.size(shape.rest) for name in self.fresh(shape, len(members))]
            return 2 + sum(members) + max(0, len(members) - 1)
        if shape == NEVER or (isinstance(shape, Literals) and not shape.texts):
            return math.inf
        return _written(self._scalar(shape))

    def value(self, shape: Shape, depth: int = 0) -> Any:
        """A smallest value.

        Raises:
            TooLargeError: it is too large, too deep, or there is none.
        """
        size = self.size(shape)
        if size > MAX_SIZE or depth > MAX_NESTING:
            raise TooLargeError(f"the smallest value has {size} characters at level {depth}")
        if isinstance(shape, Ref):
            return self.value(self.shapes.named[shape.name], depth)
        if isinstance(shape, Union):
            return self.value(min(shape.options, key=self.size), depth)
        if isinstance(shape, Array):
            return [self.value(item_shape(shape, index), depth + 1) for index in range(shape.minimum)]
        if isinstance(shape, Object):
            value = {item.name: self.value(item.shape, depth + 1) for item in self.needed(shape)}
            for name in self.fresh(shape, len(value)):
                value[name] = self.value(shape.rest, depth + 1)
            return value
        return self._scalar(shape)

    def needed(self, shape: Object) -> list[Property]:
        """The declared keys of a smallest object, in order: the required ones, and as many more as must be."""
        missing = shape.minimum - sum(item.required for item in shape.properties)
        optional = sorted(
            (_key_size(item.name) + self.size(item.shape), index)
            for index, item in enumerate(shape.properties)
            if not item.required and item.shape != NEVER
        )
        if missing > 0 and shape.rest != NEVER:
            rest = self.size(shape.rest) + 4
            optional = [(size, index) for size, index in optional if size <= rest]
        chosen = {index for size, index in optional[: max(0, missing)] if size < math.inf}
        return [item for index, item in enumerate(shape.properties) if item.required or index in chosen]

    def fresh(self, shape: Object, present: int) -> list[str]:
        """Names for the undeclared keys of a smallest object that has so many declared ones."""
        missing = min(shape.minimum - present, MAX_SIZE // 4)
        return list(islice(fresh_names(shape), missing)) if missing > 0 else []

    def _scalar(self, shape: Shape) -> Any:
        if id(shape) not in self._scalars:
            self._scalars[id(shape)] = _smallest(shape)
        return self._scalars[id(shape)]

    def _settle(self, named: Mapping[str, Shape]) -> None:
        """Sizes fall from infinity, each to that of a finite value: a name is redone when a part of it fell."""
        users: dict[str, set[str]] = defaultdict(set)
        for name, shape in named.items():
            for part in inside(shape):
                if isinstance(part, Ref):
                    users[part.name].add(name)
        queue = deque(named)
        waiting = set(queue)
        while queue:
            name = queue.popleft()
            waiting.discard(name)
            size = self.size(named[name])
            if size < self.sizes.get(name, math.inf):
                self.sizes[name] = size
                fallen = users[name] - waiting
                queue += sorted(fallen)
                waiting |= fallen


def minimal(shapes: Shapes, shape: Shape) -> Any:
    """A smallest value of a shape. Raises `TooLargeError`."""
    return Minimal(shapes).value(shape)


def shortest(shapes: Shapes) -> Any:
    """A smallest value of the root. Raises `TooLargeError`."""
    return Minimal(shapes).value(shapes.root)


def item_shape(shape: Array, index: int) -> Shape:
    """The shape of the item at a position."""
    return shape.first[index] if index < len(shape.first) else shape.rest


def inside(shape: Shape) -> Iterator[Shape]:
    """A shape and all that it is written with, without following names."""
    pending = [shape]
    while pending:
        part = pending.pop()
        yield part
        pending += parts(part)


def fresh_names(shape: Object, *, odd: bool = False) -> Iterator[str]:
    """Undeclared keys that an object may have, short ones first; they may end, where a pattern rules the names.

    `odd`: some with quotes, blanks and other scripts come first.
    """
    declared = {item.name for item in shape.properties}
    made = texts.of_pattern(shape.names) if shape.names is not None else chain(_ODD if odd else (), _words())
    seen: set[str] = set()
    for name in made:
        if name not in declared and name not in seen:
            seen.add(name)
            yield name


def _words() -> Iterator[str]:
    for length in range(6):
        yield from map("".join, product(_LETTERS, repeat=length))


def _smallest(shape: Shape) -> Any:
    if isinstance(shape, Literals):
        return json.loads(min(shape.texts, key=len))
    if isinstance(shape, Number):
        return numbers.shortest(shape)
    if isinstance(shape, Text):
        return texts.shortest(shape)
    if isinstance(shape, Anything):
        return 0
    assert isinstance(shape, Boolean | Null), shape
    return True if isinstance(shape, Boolean) else None


def _key_size(name: str) -> int:
    return _written(name) + 1


def _written(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
