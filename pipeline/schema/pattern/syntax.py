"""A pattern as written: the tree that the parser makes, before anchors are resolved (`anchors.py`).

Captures are gone, since nothing here refers to them; greed makes no difference to which strings match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.schema.pattern.ast import Chars

EdgeKind = Literal["start", "end", "word", "not word"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A condition on a place: start or end of the string, or (not) between a word character and another."""

    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on what follows a place (`ahead`) or comes before it."""

    body: Written
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    items: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these."""

    options: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`minimum` to `maximum` times; None is without end."""

    item: Written
    minimum: int
    maximum: int | None


Written = Chars | Edge | Look | Chain | Choice | Loop


def children(node: Written) -> tuple[Written, ...]:
    """The direct children."""
    if isinstance(node, Chain):
        return node.items
    if isinstance(node, Choice):
        return node.options
    if isinstance(node, Loop):
        return (node.item,)
    return (node.body,) if isinstance(node, Look) else ()
