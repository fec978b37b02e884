"""Regular languages as small trees: what a `pattern` means, free of syntax.

A tree says which whole strings it matches, in code points; there are no anchors and no captures. The constructors
`seq`, `alt`, `repeat` keep trees simple (flat, nothing empty inside), so build with them. Repetitions are numbers and
are never unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

MAX_NODES = 20_000
MAX_DEPTH = 100
LAST = 0x10FFFF

Range = tuple[int, int]


class Unsupported(Exception):
    """No tree (or no grammar) holds this pattern; the text says what stands in the way."""


class Malformed(ValueError):
    """The pattern is no ECMA 262 regular expression."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of sorted, separate, inclusive code point ranges; never a surrogate. No range: no string."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Seq:
    """One string of each item, in order. No items: the empty string."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """A string of any option."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`minimum` to `maximum` strings of the item, one after the other; None is without end."""

    item: Node
    minimum: int
    maximum: int | None


Node = Chars | Seq | Alt | Repeat
EMPTY = Seq(())
NOTHING = Chars(())


def chars(ranges: Iterable[Range]) -> Chars:
    """The characters of any ranges, in any order, without surrogates."""
    merged: list[Range] = []
    for low, high in sorted(part for whole in ranges for part in _without_surrogates(whole)):
        # Both sides of the surrogates stay apart, so that no range of a tree spans them.
        if merged and low <= merged[-1][1] + 1 and low != 0xE000:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return Chars(tuple(merged))


def complement(node: Chars) -> Chars:
    """Every other character."""
    gaps, start = [], 0
    for low, high in node.ranges:
        gaps.append((start, low - 1))
        start = high + 1
    return chars([*gaps, (start, LAST)])


def intersection(one: Chars, other: Chars) -> Chars:
    """The characters of both."""
    return complement(chars([*complement(one).ranges, *complement(other).ranges]))


def literal(text: str) -> Node:
    """Exactly this text."""
    return seq(*(chars([(ord(char), ord(char))]) for char in text))


def _without_surrogates(whole: Range) -> list[Range]:
    low, high = whole
    parts = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    return [(first, last) for first, last in parts if first <= last]


ANY = complement(NOTHING)


def seq(*items: Node) -> Node:
    """The concatenation."""
    flat: list[Node] = []
    for item in items:
        for part in item.items if isinstance(item, Seq) else (item,):
            if part == NOTHING:
                return NOTHING
            last = flat[-1] if flat else None
            if _endless(last) and _endless(part) and last.item == part.item:
                flat[-1] = Repeat(part.item, last.minimum + part.minimum, None)
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*options: Node) -> Node:
    """The union. Single characters become one class."""
    flat = [part for option in options for part in (option.options if isinstance(option, Alt) else (option,))]
    letters = chars(pair for part in flat if isinstance(part, Chars) for pair in part.ranges)
    kept: list[Node] = list(dict.fromkeys(part for part in flat if not isinstance(part, Chars)))
    if letters != NOTHING:
        kept.insert(0, letters)
    if not kept:
        return NOTHING
    return kept[0] if len(kept) == 1 else Alt(tuple(kept))


def repeat(item: Node, minimum: int, maximum: int | None) -> Node:
    """The repetition, with nested ones joined where that is the same language."""
    if item == EMPTY or maximum == 0:
        return EMPTY
    if item == NOTHING:
        return EMPTY if minimum == 0 else NOTHING
    if nullable(item):
        minimum = 0
    if (minimum, maximum) == (1, 1):
        return item
    if isinstance(item, Repeat):
        joined = _joined(item, minimum, maximum)
        if joined is not None:
            return joined
    return Repeat(item, minimum, maximum)


def _joined(inner: Repeat, minimum: int, maximum: int | None) -> Node | None:
    """One repetition for two nested ones, where every count between the bounds can be reached."""
    if inner.minimum <= 1 and maximum is None:
        return repeat(inner.item, inner.minimum * minimum, None)
    if inner.minimum <= 1 and (minimum, maximum) == (0, 1):
        return repeat(inner.item, 0, inner.maximum)
    if inner.minimum == inner.maximum and minimum == maximum:
        return repeat(inner.item, inner.minimum * minimum, inner.minimum * minimum)
    return None


def _endless(node: Node | None) -> TypeGuard[Repeat]:
    return isinstance(node, Repeat) and node.maximum is None


def nullable(node: Node) -> bool:
    """Whether the empty string is a member."""
    if isinstance(node, Seq):
        return all(nullable(item) for item in node.items)
    if isinstance(node, Alt):
        return any(nullable(option) for option in node.options)
    return isinstance(node, Repeat) and (node.minimum == 0 or nullable(node.item))


def parts(node: Node) -> tuple[Node, ...]:
    """The direct children."""
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Alt):
        return node.options
    return (node.item,) if isinstance(node, Repeat) else ()


def check_size(node: Node) -> int:
    """The number of nodes.

    Raises:
        Unsupported: over MAX_NODES nodes or MAX_DEPTH levels.
    """
    level, nodes, depth = [node], 0, 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Unsupported(f"its tree has over {MAX_NODES} nodes or {MAX_DEPTH} levels")
        level = [child for parent in level for child in parts(parent)]
    return nodes
