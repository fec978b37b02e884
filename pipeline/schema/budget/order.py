"""Order: named shapes with those that they are made of first, and where they are made of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pipeline.schema.shape.shapes import NEVER, Array, Object, Ref, Shape, Shapes, parts

Parts = Callable[[Shape], Iterable[Shape]]
"""The parts of a shape that matter to whoever asks for the order."""


def post_order(shapes: Shapes, inside: Parts) -> tuple[list[str], list[str]]:
    """(the names that the root leads to, parts first; the names at which a way leads back to itself)."""
    order: list[str] = []
    again: dict[str, None] = {}
    open_names: set[str] = set()
    seen: set[str] = set()
    stack: list[tuple[str, Iterator[str]]] = [("", references(shapes.root, inside))]
    while stack:
        name, steps = stack[-1]
        for step in steps:
            if step in open_names:
                again[step] = None
            elif step not in seen:
                seen.add(step)
                open_names.add(step)
                stack.append((step, references(shapes.named[step], inside)))
                break
        else:
            stack.pop()
            open_names.discard(name)
            if name:
                order.append(name)
    return order, list(again)


def references(shape: Shape, inside: Parts) -> Iterator[str]:
    """The names that a shape is written with."""
    pending = [shape]
    while pending:
        part = pending.pop()
        if isinstance(part, Ref):
            yield part.name
        else:
            pending += inside(part)


def possible(shape: Shape) -> Iterator[Shape]:
    """The parts of which a value can have one or more."""
    if isinstance(shape, Array):
        yield from shape.first[: shape.maximum]
        if shape.maximum is None or shape.maximum > len(shape.first):
            yield shape.rest
    elif isinstance(shape, Object) and shape.maximum == 0:
        return
    else:
        yield from (part for part in parts(shape) if part != NEVER)
