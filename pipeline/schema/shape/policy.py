"""Policies that change the language on purpose: ways to abstain (wider), bounds on the output (narrower).

Both are opt-in and told apart from what a back end cannot hold: an abstention is outside the acceptance schema and
is judged as one, and a narrowed site says that legal values are out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pipeline.schema.shape.prune import union
from pipeline.schema.shape.shapes import NEVER, Array, Literals, Null, Object, Property, Ref, Shape, Shapes, Text, Union

Abstain = Literal["none", "nullable", "document"]

NOT_APPLICABLE = "not_applicable"
"""The only key of a record that says that the document is not of the schema's kind."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`abstain`: `nullable` lets every required leaf be null, `document` lets the record be
    `{"not_applicable": true}`. `max_items` and `max_length` bound arrays and strings that have no bound."""

    abstain: Abstain = "none"
    max_items: int | None = None
    max_length: int | None = None


def apply(shapes: Shapes, policy: Policy) -> tuple[Shapes, tuple[str, ...]]:
    """The shapes under a policy, and the pointers of the schemas that were narrowed."""
    narrowed: dict[str, None] = {}
    change = _Change(shapes, policy, narrowed)
    named = {name: change.shape(shape) for name, shape in shapes.named.items()}
    root = change.shape(shapes.root)
    if policy.abstain == "document":
        branch = Object((Property(NOT_APPLICABLE, Literals(("true",)), required=True),), NEVER, 1)
        root = union([root, branch])
    return replace(shapes, root=root, named=named), tuple(narrowed)


@dataclass(frozen=True, slots=True)
class _Change:
    shapes: Shapes
    policy: Policy
    narrowed: dict[str, None]

    def shape(self, shape: Shape) -> Shape:
        if isinstance(shape, Union):
            return union(map(self.shape, shape.options))
        if isinstance(shape, Array):
            inner = replace(shape, first=tuple(map(self.shape, shape.first)), rest=self.shape(shape.rest))
            return self._bound_array(inner)
        if isinstance(shape, Object):
            properties = tuple(replace(item, shape=self._value(item)) for item in shape.properties)
            return replace(shape, properties=properties, rest=self.shape(shape.rest))
        return self._bound_text(shape) if isinstance(shape, Text) else shape

    def _value(self, item: Property) -> Shape:
        changed = self.shape(item.shape)
        if self.policy.abstain == "nullable" and item.required and self._is_leaf(item.shape):
            return union([changed, Null()])
        return changed

    def _is_leaf(self, shape: Shape) -> bool:
        """Whether a shape holds no members, so that null can stand for it."""
        for _ in range(len(self.shapes.named) + 1):
            if not isinstance(shape, Ref):
                break
            shape = self.shapes.named[shape.name]
        if isinstance(shape, Union):
            return all(map(self._is_leaf, shape.options))
        if isinstance(shape, Literals) and len(shape.texts) == 1:
            return False  # a constant tells which branch this is; there is nothing to know
        return not isinstance(shape, Array | Object)

    def _bound_array(self, shape: Array) -> Array:
        most = self.policy.max_items
        if most is None or shape.maximum is not None or shape.rest == NEVER:
            return shape
        self._note(shape)
        return replace(shape, maximum=max(most, shape.minimum, len(shape.first)))

    def _bound_text(self, shape: Text) -> Text:
        most = self.policy.max_length
        if most is None or shape.maximum is not None or shape.patterns:
            return shape
        self._note(shape)
        return replace(shape, maximum=max(most, shape.minimum))

    def _note(self, shape: Array | Text) -> None:
        pointers = dict.fromkeys(pointer for pointer, _ in shape.sites)
        self.narrowed.update(pointers or {"": None})
