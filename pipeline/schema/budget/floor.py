"""Floor: a record of few tokens. Fewest characters is not fewest tokens, so what can be chosen is chosen by counting.

From the leaves upwards every constant, string of a least length and option that a smallest record needs is replaced by
the one of fewest tokens out of some candidates. Which optional keys a minProperties takes is chosen by characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from pipeline.schema.budget.meter import Count, Meter
from pipeline.schema.budget.order import post_order
from pipeline.schema.budget.policy import MAX_FILLED, MAX_MEMBERS, MAX_SHORTEST
from pipeline.schema.probe import texts
from pipeline.schema.probe.minimal import Minimal, TooLargeError
from pipeline.schema.shape.merge import compact
from pipeline.schema.shape.shapes import Array, Literals, Object, Shape, Shapes, Text, Union

_CALLS, _CHARACTERS = 600, 60_000
_OPTION_CHARACTERS = 4000
_FILLINGS = ("a", " ", "-", "=", "*", "#", "_", ".", "0", "the ", "information ")


def candidates(shapes: Shapes, count: Count) -> list[Any]:
    """Records of few characters and of few tokens; the caller counts which is the shortest.

    Raises:
        TooLargeError: even the smallest record has over MAX_SHORTEST characters or 150 levels, or there is none.
    """
    minimal = Minimal(shapes)
    size = minimal.size(shapes.root)
    if size > MAX_SHORTEST:
        none = size == math.inf
        what = (
            "no record can satisfy the schema" if none else f"the smallest record of the schema has {size} characters"
        )
        raise TooLargeError(f"{what}; a token budget needs one of at most {MAX_SHORTEST}.")
    fewest_characters = minimal.value(shapes.root)
    try:
        fewest_tokens = _Floor(shapes, Meter(count, _CALLS, _CHARACTERS)).value()
    except (TooLargeError, RecursionError):
        # Choices by tokens led into a loop, as a count that falls with length can.
        return [fewest_characters]
    return [fewest_characters, *([] if fewest_tokens == fewest_characters else [fewest_tokens])]


class _Floor:
    def __init__(self, shapes: Shapes, meter: Meter) -> None:
        self.meter = meter
        self.named = dict(shapes.named)
        self.shapes = replace(shapes, named=self.named)
        self.minimal = Minimal(self.shapes)
        self._made: list[Shape] = []
        """`Minimal` knows scalars by their identity: those made here have to stay."""

    def value(self) -> Any:
        order, _ = post_order(self.shapes, self._needed)
        for name in order:
            self.named[name] = self._chosen(self.named[name])
        return self.minimal.value(self._chosen(self.shapes.root))

    def _needed(self, shape: Shape) -> Iterator[Shape]:
        """The parts that a smallest value may have."""
        if isinstance(shape, Union):
            yield from self._cheap(shape)
        elif isinstance(shape, Array):
            yield from shape.first[: shape.minimum]
            if shape.minimum > len(shape.first):
                yield shape.rest
        elif isinstance(shape, Object):
            needed = self.minimal.needed(shape)
            yield from (item.shape for item in needed)
            if shape.minimum > len(needed):
                yield shape.rest

    def _cheap(self, shape: Union) -> list[Shape]:
        return sorted(shape.options, key=self.minimal.size)[:MAX_MEMBERS]

    def _chosen(self, shape: Shape) -> Shape:
        made = self._with_choices(shape)
        self._made.append(made)
        return made

    def _with_choices(self, shape: Shape) -> Shape:
        if isinstance(shape, Literals):
            return self._one_of(sorted(shape.texts, key=len)[:MAX_MEMBERS]) or shape
        if isinstance(shape, Text):
            return self._one_of([compact(text) for text in _strings(shape)]) or shape
        if isinstance(shape, Array):
            first = [self._chosen(part) if index < shape.minimum else part for index, part in enumerate(shape.first)]
            rest = self._chosen(shape.rest) if shape.minimum > len(first) else shape.rest
            return replace(shape, first=tuple(first), rest=rest)
        if isinstance(shape, Object):
            needed = {item.name for item in self.minimal.needed(shape)}
            changed = [
                replace(item, shape=self._chosen(item.shape)) if item.name in needed else item
                for item in shape.properties
            ]
            rest = self._chosen(shape.rest) if shape.minimum > len(needed) else shape.rest
            return replace(shape, properties=tuple(changed), rest=rest)
        return self._option(shape) if isinstance(shape, Union) else shape

    def _one_of(self, options: list[str]) -> Literals | None:
        text = self.meter.fewest(options) if options else None
        return None if text is None else Literals((text,))

    def _option(self, shape: Union) -> Shape:
        """The option whose smallest value has the fewest tokens, of equals the one of fewest characters."""
        best: tuple[tuple[int, float], Shape] | None = None
        for option in map(self._chosen, self._cheap(shape)):
            size = self.minimal.size(option)
            if size > _OPTION_CHARACTERS:
                continue
            tokens = self.meter.tokens(compact(self.minimal.value(option)))
            if tokens is not None and (best is None or (tokens, size) < best[0]):
                best = (tokens, size), option
        return shape if best is None else best[1]


def _strings(shape: Text) -> list[str]:
    """Strings of a shape that may take few tokens; none where the shortest is plain to see."""
    if len(shape.patterns) == 1:
        drawn = [texts.shortest(shape), *islice(texts.of_pattern(shape.patterns[0][1]), 6)]
        return [text for text in drawn if texts.is_long_enough(shape, text)]
    if shape.patterns or not 0 < shape.minimum <= MAX_FILLED:
        return []
    return [(filling * shape.minimum)[: shape.minimum] for filling in _FILLINGS]
