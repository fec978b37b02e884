"""Prune: take out what has no finite value. A required child that needs itself, an empty enum, bounds that cross."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline.schema.shape.shapes import (
    ANYTHING,
    NEVER,
    Array,
    Literals,
    Never,
    Object,
    Ref,
    Shape,
    Shapes,
    Union,
    parts,
)


def union(options: Iterable[Shape]) -> Shape:
    """Any of these: flat, each once, without Never."""
    flat: dict[Shape, None] = {}
    for option in options:
        inner = option.options if isinstance(option, Union) else (option,)
        flat.update(dict.fromkeys(shape for shape in inner if shape != NEVER))
    if ANYTHING in flat:
        return ANYTHING
    kept = tuple(flat)
    return NEVER if not kept else kept[0] if len(kept) == 1 else Union(kept)


def pruned(shapes: Shapes) -> Shapes:
    """The same language without dead ends, and without names that the root does not lead to."""
    finite = _finite(shapes.named)
    named = {name: _cleared(shape, finite) for name, shape in shapes.named.items() if name in finite}
    root = _cleared(shapes.root, finite)
    reached: dict[str, Shape] = {}
    pending = [root]
    while pending:
        shape = pending.pop()
        if isinstance(shape, Ref) and shape.name not in reached:
            reached[shape.name] = named[shape.name]
            pending.append(named[shape.name])
        pending += parts(shape)
    kept = {name: shape for name, shape in named.items() if name in reached}
    return replace(shapes, root=root, named=kept, origins={name: shapes.origins[name] for name in kept})


def _finite(named: Mapping[str, Shape]) -> set[str]:
    """The names whose shape has a value, as a least fixed point: a name is looked at again when what it needs is in."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, shape in named.items():
        pending = [shape]
        while pending:
            part = pending.pop()
            if isinstance(part, Ref):
                users[part.name].add(name)
            pending += parts(part)
    finite: set[str] = set()
    queue = list(named)
    while queue:
        name = queue.pop()
        if name not in finite and _has_value(named[name], finite):
            finite.add(name)
            queue += users[name]
    return finite


def _has_value(shape: Shape, finite: set[str]) -> bool:
    if isinstance(shape, Ref):
        return shape.name in finite
    if isinstance(shape, Union):
        return any(_has_value(option, finite) for option in shape.options)
    if isinstance(shape, Array):
        needed = list(shape.first[: shape.minimum]) + ([shape.rest] if shape.minimum > len(shape.first) else [])
        return all(_has_value(part, finite) for part in needed)
    if isinstance(shape, Object):
        if not all(_has_value(item.shape, finite) for item in shape.properties if item.required):
            return False
        declared = sum(_has_value(item.shape, finite) for item in shape.properties)
        return declared >= shape.minimum or _has_value(shape.rest, finite)
    return bool(shape.texts) if isinstance(shape, Literals) else not isinstance(shape, Never)


def _cleared(shape: Shape, finite: set[str]) -> Shape:
    """A shape with Never for what has no value; arrays stop before it, closed objects lose the key."""
    if not _has_value(shape, finite):
        return NEVER
    if isinstance(shape, Union):
        return union(_cleared(option, finite) for option in shape.options)
    if isinstance(shape, Array):
        first = [_cleared(part, finite) for part in shape.first]
        rest = _cleared(shape.rest, finite)
        if NEVER in first:
            first, rest = first[: first.index(NEVER)], NEVER
        maximum = shape.maximum
        if rest == NEVER:
            maximum = len(first) if maximum is None else min(maximum, len(first))
        return replace(shape, first=tuple(first), rest=rest, maximum=maximum)
    if isinstance(shape, Object):
        rest = _cleared(shape.rest, finite)
        properties = [replace(item, shape=_cleared(item.shape, finite)) for item in shape.properties]
        kept = tuple(item for item in properties if item.shape != NEVER or rest != NEVER)
        return replace(shape, properties=kept, rest=rest)
    return shape
