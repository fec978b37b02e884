"""Draw: values of shapes, random but bounded, steered to what has not come up yet.

A drawing starts from the smallest value and has some characters to spend on more: an option that is not the smallest,
an optional key, another item. So recursion ends by itself. Shapes are a superset of their source: the validator has to
judge what is drawn.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pipeline.schema.probe.atlas import Atlas, Mark
from pipeline.schema.probe.minimal import MAX_SIZE, Minimal, TooLargeError, fresh_names, item_shape
from pipeline.schema.shape.shapes import NEVER, Array, Object, Property, Shape, Shapes, Union

RICH, LEAN, SMALL = 3000, 200, 0
"""Characters that a drawing may spend beyond the smallest value: to show all, to show something, none."""

MORE = (40, 100, LEAN, LEAN, 500, 500)
"""When everything came up, some more at random: recursion goes deeper than it has to."""

MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Drawn:
    """A value and the marks (see `Atlas`) that came up in it."""

    value: Any
    marks: frozenset[Mark]


@dataclass
class Drawer:
    """Draws values of one `Shapes` and remembers what came up."""

    shapes: Shapes
    rng: random.Random
    minimal: Minimal = field(init=False)
    atlas: Atlas = field(init=False)
    seen: set[Mark] = field(default_factory=set)
    visited: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.minimal = Minimal(self.shapes)
        self.atlas = Atlas(self.shapes)

    def draw(self, target: Mark | None = None, spare: int = LEAN, keys: float = 0.5) -> Drawn:
        """One value of the root; `target` comes up in it, and optional keys with probability `keys`.

        Raises:
            TooLargeError: even the smallest value is too large.
        """
        drawing = _Drawing(self, spare, keys, self.atlas.route(target) if target else {})
        value = drawing.draw(self.shapes.root, 0)
        self.seen |= drawing.marks
        self.visited |= {number for number, _ in drawing.marks}
        return Drawn(value, frozenset(drawing.marks))


class _Drawing:
    """One value. `left` is what may still be spent."""

    def __init__(self, drawer: Drawer, spare: int, keys: float, route: dict[int, str]) -> None:
        self.atlas, self.minimal, self.rng, self.seen = drawer.atlas, drawer.minimal, drawer.rng, drawer.seen
        self.left: float = spare
        self.keys, self.route = keys, route
        self.marks: set[Mark] = set()

    def draw(self, shape: Shape, depth: int) -> Any:
        place = self.atlas.followed(shape)
        number = self.atlas.number(place)
        if number is None or depth > MAX_DEPTH:
            return self.minimal.value(place, depth)
        step = self.route.pop(number, None)  # once: further down the same place may come again
        if isinstance(place, Union):
            return self._union(place, number, step, depth)
        if isinstance(place, Array):
            return self._array(place, number, step, depth)
        if isinstance(place, Object):
            return self._object(place, number, step, depth)
        return self._scalar(place, number, step)

    def _union(self, place: Union, number: int, step: str | None, depth: int) -> Any:
        sizes = [self.minimal.size(option) for option in place.options]
        least = min(sizes)
        if least > MAX_SIZE:
            raise TooLargeError(f"the smallest option of place {number} has {least} characters")
        affordable = [f"option {index}" for index, size in enumerate(sizes) if size <= least + max(0, self.left)]
        label = self._chosen(number, step, affordable)
        index = int(label.split()[1])
        self.left -= sizes[index] - least
        return self.draw(place.options[index], depth)

    def _array(self, place: Array, number: int, step: str | None, depth: int) -> list[Any]:
        labels = [label for label in self.atlas.labels[number] if self._affords(place, int(label.split()[1]))]
        label = self._chosen(number, step, labels or [f"items {place.minimum}"])
        count = max(int(label.split()[1]), place.minimum)
        self.left -= self._price(place, count)
        return [self.draw(item_shape(place, index), depth + 1) for index in range(count)]

    def _affords(self, place: Array, count: int) -> bool:
        return self._price(place, count) <= self.left

    def _price(self, place: Array, count: int) -> float:
        return sum(self.minimal.size(item_shape(place, index)) + 1 for index in range(place.minimum, count))

    def _object(self, place: Object, number: int, step: str | None, depth: int) -> dict[str, Any]:
        wanted = {item.name for item in self.minimal.needed(place)}
        most = len(place.properties) + 2 if place.maximum is None else place.maximum
        optional = [item for item in place.properties if item.name not in wanted and item.shape != NEVER]
        self.rng.shuffle(optional)
        optional.sort(key=lambda item: (f"with {item.name}" != step, (number, f"with {item.name}") in self.seen))
        for item in optional:
            price = self.minimal.size(item.shape) + len(item.name) + 4
            if len(wanted) < most and self._includes(item, number, step, price):
                self.left -= price
                wanted.add(item.name)
        value = {item.name: self.draw(item.shape, depth + 1) for item in place.properties if item.name in wanted}
        for item in place.properties:
            if not item.required and item.shape != NEVER:
                self.marks.add((number, f"{'with' if item.name in wanted else 'without'} {item.name}"))
        self._undeclared(place, number, step, value, depth)
        if place.maximum is not None and len(value) == place.maximum:
            self.marks.add((number, "full"))
        return value

    def _includes(self, item: Property, number: int, step: str | None, price: float) -> bool:
        if step in (f"with {item.name}", "full"):
            return True
        if step == f"without {item.name}" or price > self.left:
            return False
        return self.rng.random() < self.keys

    def _undeclared(self, place: Object, number: int, step: str | None, value: dict[str, Any], depth: int) -> None:
        least = max(0, place.minimum - len(value))
        if place.rest == NEVER:
            return
        room = 10_000 if place.maximum is None else max(0, place.maximum - len(value))
        price = self.minimal.size(place.rest) + 4
        counts = [count for count in (0, 1, 2) if least + count <= room and count * price <= self.left]
        if step == "full":
            extra = min(room, 100)
        else:
            step = step if step is not None and step.startswith("extra ") else None
            label = self._chosen(number, step, [f"extra {count}" for count in counts] or ["extra 0"])
            extra = min(room, least + int(label.split()[1]))
            self.left -= (extra - least) * price
        names = fresh_names(place, odd=least == 0)
        for name in islice(names, extra):
            value[name] = self.draw(place.rest, depth + 1)

    def _scalar(self, place: Shape, number: int, step: str | None) -> Any:
        values = self.atlas.values[number]
        least = self.minimal.size(place)
        cheap = [label for label, value in values.items() if _length(value) <= least + self.left]
        label = self._chosen(number, step, cheap or [min(values, key=lambda label: _length(values[label]))])
        self.left -= max(0, _length(values[label]) - least)
        return values[label]

    def _chosen(self, number: int, step: str | None, labels: list[str]) -> str:
        """What is asked for, else what has not come up yet, else any."""
        label = step
        if label is None:
            new = [one for one in labels if (number, one) not in self.seen and (number, one) not in self.marks]
            label = self.rng.choice(new or labels)
        self.marks.add((number, label))
        return label


def draw(shapes: Shapes, rng: random.Random, size: int = LEAN) -> Any:
    """A random value of the root, of about `size` characters beyond its smallest. Raises `TooLargeError`."""
    return Drawer(shapes, rng).draw(spare=size).value


def covering(shapes: Shapes, rng: random.Random, most: int) -> Iterator[Drawn]:
    """Up to `most` values that together cover the marks of a schema; ends soon after everything came up.

    The first shows as much as possible, the second is a smallest one; each further one goes for something new.
    """
    yield from covered_by(Drawer(shapes, rng), most)


def covered_by(drawer: Drawer, most: int) -> Iterator[Drawn]:
    """`covering` with a drawer that the caller keeps."""
    marks = drawer.atlas.marks()
    places = len(drawer.atlas.places)
    drawn = 0
    for spare, keys in ((RICH, 1.0), (SMALL, 0.0)):
        if drawn < most:
            yield from _tried(drawer, None, spare, keys)
            drawn += 1
    for index, mark in enumerate(marks):
        if drawn >= most:
            return
        if mark in drawer.seen or (index < places and mark[0] in drawer.visited):
            continue
        yield from _tried(drawer, mark, LEAN, (0.0, 0.3, 0.8)[index % 3])
        drawer.seen.add(mark)  # whether or not it came up: once is enough
        drawn += 1
    for spare in MORE[: most - drawn]:
        yield from _tried(drawer, None, spare, 0.5)


def _tried(drawer: Drawer, mark: Mark | None, spare: int, keys: float) -> Iterator[Drawn]:
    try:
        yield drawer.draw(mark, spare, keys)
    except (TooLargeError, RecursionError):
        return


def _length(value: Any) -> int:
    return len(value) + 2 if isinstance(value, str) else len(json.dumps(value))
