"""Shapes: what a schema says about values, one JSON type at a time, with the keyword sites that said so.

A JSON Schema is a conjunction of keywords that mostly speak about one type each and are silent about others; grammar
back ends read that in their own ways. A shape says the same positively: a union of typed shapes. Everything that a
grammar gets is made from shapes, everything that a grammar does not get is a `Left`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from pipeline.schema.pattern.ast import Node

Site = tuple[str, str]
"""A keyword where it stands in a source: (JSON pointer of its schema, keyword)."""


@dataclass(frozen=True, slots=True)
class Left:
    """A site that the grammar does not hold, or not wholly: the validator has to. `why` is for people."""

    pointer: str
    keyword: str
    why: str


@dataclass(frozen=True, slots=True)
class Literals:
    """These values and no others, as compact JSON texts."""

    texts: tuple[str, ...]
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Boolean:
    """true or false."""

    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Null:
    """null."""

    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """Numbers between bounds; `open_*` says that a bound itself is left out."""

    integer: bool = False
    minimum: Fraction | None = None
    maximum: Fraction | None = None
    open_minimum: bool = False
    open_maximum: bool = False
    multiple_of: Fraction | None = None
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """Strings of so many code points that match every pattern (each describes whole strings)."""

    minimum: int = 0
    maximum: int | None = None
    patterns: tuple[tuple[Site, Node], ...] = ()
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    """Arrays: shapes of the first items, the shape of all further ones (Never: there are none)."""

    first: tuple[Shape, ...]
    rest: Shape
    minimum: int = 0
    maximum: int | None = None
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """One declared key of an object. `judges` are the sites of the schemas that its value has to satisfy."""

    name: str
    shape: Shape
    required: bool
    judges: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Object:
    """Objects: declared keys in order, then undeclared ones of shape `rest` (Never: closed) whose names match `names`.

    `names` is a pattern of whole names, or None for any.
    """

    properties: tuple[Property, ...]
    rest: Shape
    minimum: int = 0
    maximum: int | None = None
    names: Node | None = None
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Union:
    """Any of these."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """The shape of that name in the `Shapes` that this one belongs to."""

    name: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Every JSON value."""


@dataclass(frozen=True, slots=True)
class Never:
    """No value."""


Shape = Literals | Boolean | Null | Number | Text | Array | Object | Union | Ref | Anything | Never
ANYTHING, NEVER = Anything(), Never()


@dataclass(frozen=True)
class Shapes:
    """A root shape, the named shapes that it refers to, and the sites that shapes could not express.

    The language is a superset of the source's, in canonical form (see docs/transport.md); what it has beyond the source
    is the violation of some `left` site. `origins` tells which source schemas a named shape stands for.
    """

    root: Shape
    named: Mapping[str, Shape]
    left: tuple[Left, ...]
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: tuple[tuple[frozenset[str], Site], ...] = ()
    """For every `if` with an `else`: the schemas that decide it, and the site at which a value that passed for one that
    meets the `if`, and does not, is refused."""


def parts(shape: Shape) -> Iterator[Shape]:
    """The shapes directly inside a shape."""
    if isinstance(shape, Array):
        yield from shape.first
        yield shape.rest
    elif isinstance(shape, Object):
        yield from (item.shape for item in shape.properties)
        yield shape.rest
    elif isinstance(shape, Union):
        yield from shape.options


Type = Literal["null", "boolean", "number", "string", "array", "object"]
TYPES: tuple[Type, ...] = ("object", "array", "string", "number", "boolean", "null")
