"""Atlas: the places of a schema's shapes, what is to be tried at each, and the shortest way from the root to it.

A place is one shape where it is written; a mark is a place and one thing to try there: an option, a key present or
absent, a number of items, an enum member, a kind of string. Together the marks are what good instances cover.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.schema.probe import numbers, texts
from pipeline.schema.shape.shapes import (
    NEVER,
    Anything,
    Array,
    Boolean,
    Literals,
    Number,
    Object,
    Ref,
    Shape,
    Shapes,
    Text,
    Union,
)

MAX_PLACES = 3000
"""Places that are tried; a schema with more is covered from the root as far as this goes."""

MAX_MEMBERS = 24
"""Members of an enum that are tried: the first, the last and some between."""

MAX_ITEMS = 40
"""Items up to which a maxItems (or keys, a maxProperties) is tried at its bound."""

_ANYTHING: dict[str, Any] = {
    "number": 0,
    "text": 'any "text"',
    "null": None,
    "true": True,
    "decimal": 1.5,
    "empty list": [],
    "list": [1, "a", None],
    "empty object": {},
    "object": {"a": 1, "b": {"c": []}},
}

Mark = tuple[int, str]
"""(number of the place, what was tried)."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a place is reached: the place above and what has to be chosen there; the root has none above."""

    above: int | None
    step: str


@dataclass
class Atlas:
    """Built from the root outwards. `places` are in the order of their distance."""

    shapes: Shapes
    places: list[Shape] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)
    values: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Of the places without parts: what to write for each label."""

    _numbers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        queue: list[tuple[Shape, Way]] = [(self.shapes.root, Way(None, ""))]
        for shape, way in queue:  # grows
            place = self.followed(shape)
            if id(place) in self._numbers or len(self.places) >= MAX_PLACES or place == NEVER:
                continue
            number = self._numbers[id(place)] = len(self.places)
            self.places.append(place)
            self.ways.append(way)
            self.labels.append(self._labels(number, place))
            queue += ((part, Way(number, step)) for step, part in steps(place))

    def followed(self, shape: Shape) -> Shape:
        """A shape, or the one that its name stands for."""
        while isinstance(shape, Ref):
            shape = self.shapes.named[shape.name]
        return shape

    def number(self, place: Shape) -> int | None:
        """The number of a place; None for one that is not tried."""
        return self._numbers.get(id(place))

    def route(self, mark: Mark) -> dict[int, str]:
        """What to choose at which place so that a mark comes up."""
        route: dict[int, str] = {}
        number: int | None = mark[0]
        step = mark[1]
        while number is not None:
            route[number] = step
            way = self.ways[number]
            number, step = way.above, way.step
        return route

    def marks(self) -> list[Mark]:
        """Everything to try: a mark of every place, the farthest first, since others are on the way; then what leads to
        other places; then the first of each scalar, the second, and so on."""
        visits = [(n, self.labels[n][0]) for n in range(len(self.places) - 1, -1, -1) if self.labels[n]]
        inner = [(n, label) for n, labels in enumerate(self.labels) if n not in self.values for label in labels]
        leaves = [(index, (n, label)) for n in self.values for index, label in enumerate(self.labels[n])]
        ordered = visits + inner + [mark for _, mark in sorted(leaves, key=lambda leaf: (leaf[0], leaf[1][0]))]
        return list(dict.fromkeys(ordered))

    def _labels(self, number: int, place: Shape) -> tuple[str, ...]:
        if isinstance(place, Union):
            return tuple(step for step, _ in steps(place))
        if isinstance(place, Array):
            return tuple(f"items {count}" for count in _counts(place.minimum, place.maximum))
        if isinstance(place, Object):
            return tuple(_object_labels(place))
        values = self.values[number] = _scalar_values(place)
        return tuple(values)


def steps(place: Shape) -> Iterator[tuple[str, Shape]]:
    """What can be chosen at a place to come to each of its parts."""
    if isinstance(place, Union):
        yield from ((f"option {index}", option) for index, option in enumerate(place.options))
    elif isinstance(place, Array):
        yield from ((f"items {index + 1}", part) for index, part in enumerate(place.first))
        if place.rest != NEVER:
            yield f"items {max(len(place.first) + 1, place.minimum)}", place.rest
    elif isinstance(place, Object):
        yield from ((f"with {item.name}", item.shape) for item in place.properties if item.shape != NEVER)
        if place.rest != NEVER:
            yield "extra 1", place.rest


def _counts(minimum: int, maximum: int | None) -> list[int]:
    wanted = [minimum, minimum + 1, minimum + 2, *([] if maximum is None else [maximum])]
    most = MAX_ITEMS if maximum is None else min(maximum, MAX_ITEMS)
    return sorted({count for count in wanted if count <= max(minimum, most)})


def _object_labels(place: Object) -> Iterator[str]:
    optional = [item.name for item in place.properties if not item.required and item.shape != NEVER]
    for name in optional:
        yield f"with {name}"
        yield f"without {name}"
    if place.rest != NEVER:
        yield "extra 0"
        room = MAX_ITEMS if place.maximum is None else place.maximum - (len(place.properties) - len(optional))
        yield from (f"extra {count}" for count in (1, 2) if count <= room)
    if place.maximum is not None and place.maximum <= MAX_ITEMS:
        yield "full"


def _scalar_values(place: Shape) -> dict[str, Any]:
    if isinstance(place, Literals):
        step = max(1, len(place.texts) // MAX_MEMBERS)
        chosen = [*place.texts[::step][: MAX_MEMBERS - 1], *place.texts[-1:]]
        return {f"member {index}": json.loads(text) for index, text in enumerate(dict.fromkeys(chosen))}
    if isinstance(place, Boolean):
        return {"true": True, "false": False}
    if isinstance(place, Number):
        return numbers.labelled(place) or {"shortest": numbers.shortest(place)}
    if isinstance(place, Text):
        return texts.labelled(place) or {"shortest": texts.shortest(place)}
    return dict(_ANYTHING) if isinstance(place, Anything) else {"null": None}
