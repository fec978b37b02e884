"""Read: a schema body as shapes.

Every conjunction of schemas that can judge one value becomes a named shape, made once and referred to by name, so that
recursion is followed and nothing is copied. Then shapes without a finite value are taken out: they are dead ends for
a decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.schema.shape.choices import alternatives
from pipeline.schema.shape.members import array, object_
from pipeline.schema.shape.merge import Places, leave_excluded, literals_of, simple, types_of
from pipeline.schema.shape.prune import pruned, union
from pipeline.schema.shape.shapes import ANYTHING, NEVER, TYPES, Ref, Shape, Shapes
from pipeline.schema.shape.source import Conjunction, Source, conditions
from pipeline.schema.walk import constrains

MAX_SHAPES = 6000
"""Conjunctions that are told apart; beyond, values are unconstrained and left to the validator."""


def read(body: Mapping[str, Any]) -> Shapes:
    """The shapes of a body that `registry` let pass. A root of Never means that no document can satisfy it."""
    reader = _Reader(Source(body))
    root = reader.shape_of(("",))
    while reader.pending:
        conjunction = reader.pending.pop()
        reader.shapes[reader.names[conjunction]] = reader.define(conjunction)
    origins = {
        name: tuple(pointer for pointer in conjunction if not pointer.startswith("#"))
        for conjunction, name in reader.names.items()
    }
    left = tuple(reader.source.left.values())
    return pruned(Shapes(root, reader.shapes, left, origins, tuple(conditions(reader.source))))


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[Conjunction, str] = {}
        self.shapes: dict[str, Shape] = {}
        self.pending: list[Conjunction] = []

    def shape_of(self, conjunction: Conjunction) -> Shape:
        """The shape of the values that satisfy the schemas at all these pointers, by name where it takes more."""
        conjunction = tuple(
            pointer for pointer in dict.fromkeys(conjunction) if self.source.nodes[pointer] not in (True, {})
        )
        if not conjunction:
            return ANYTHING
        if any(self.source.nodes[pointer] is False for pointer in conjunction):
            return NEVER
        if conjunction not in self.names:
            if len(self.names) >= MAX_SHAPES:
                for pointer in conjunction:
                    self.source.leave(pointer, "*", f"the schema has more than {MAX_SHAPES} different places")
                return ANYTHING
            self.names[conjunction] = f"s{len(self.names)}"
            self.pending.append(conjunction)
        return Ref(self.names[conjunction])

    def define(self, conjunction: Conjunction) -> Shape:
        options: dict[Shape, None] = {}
        for pointers in alternatives(self.source, conjunction):
            for shape in self._typed(Places(self.source, pointers), conjunction):
                if shape != NEVER:
                    options[shape] = None
        return union(list(options))

    def _typed(self, places: Places, conjunction: Conjunction) -> list[Shape]:
        literals = literals_of(places, conjunction)
        if literals is not None:
            return [literals] if literals.texts else []
        types, whole = types_of(places)
        if len(types) == len(TYPES) and not any(constrains(key) for _, node in places.nodes() for key in node):
            return [ANYTHING]
        found = []
        for kind in TYPES:
            if kind not in types:
                continue
            if kind in ("object", "array"):
                leave_excluded(places, kind)
            if kind == "object":
                found.append(object_(places, conjunction, self.shape_of))
            elif kind == "array":
                found.append(array(places, self.shape_of))
            else:
                found.append(simple(places, kind, whole))
        return found
