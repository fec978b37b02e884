"""From a pattern to the tree of the whole strings that contain a match: anchors resolved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pipeline.schema.pattern import ast
from pipeline.schema.pattern.ast import (
    ANY,
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Node,
    Repeat,
    Seq,
    Unsupported,
    alt,
    repeat,
    seq,
)
from pipeline.schema.pattern.read import read
from pipeline.schema.pattern.syntax import Chain, Choice, Look, Loop, Written

MAX_ANCHORED = 64
ANYTHING = repeat(ANY, 0, None)


@lru_cache(maxsize=512)
def parse(pattern: str) -> Node:
    """The language of the strings in which an ECMA 262 pattern finds a match.

    Raises:
        Malformed: it is no ECMA 262 regular expression.
        Unsupported: it has look-around, back-references, `\\b`, an anchor below a repetition, or is too large.
    """
    node = _whole(_resolve(read(pattern)))
    ast.check_size(node)
    return node


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a piece matches anywhere, only from the start of the string on, only up to its end, only as all of it.

    The union of the four is exact: an anchor in the middle is true only where everything before it (or after it) is
    empty, so it moves to the edge and the rest shrinks to the empty string, or to nothing.
    """

    free: Node = NOTHING
    start: Node = NOTHING
    end: Node = NOTHING
    both: Node = NOTHING

    @property
    def anchored(self) -> bool:
        return not self.start == self.end == self.both == NOTHING

    def of(self) -> tuple[tuple[bool, bool, Node], ...]:
        known = (False, False, self.free), (True, False, self.start), (False, True, self.end), (True, True, self.both)
        return tuple(part for part in known if part[2] != NOTHING)


def _resolve(node: Written) -> _Parts:
    if isinstance(node, Chars):
        return _Parts(node)
    if isinstance(node, Choice):
        return _union([_resolve(option) for option in node.options])
    if isinstance(node, Chain):
        return _chain([_resolve(item) for item in node.items])
    if isinstance(node, Loop):
        return _loop(_resolve(node.item), node)
    if isinstance(node, Look):
        raise Unsupported("look-ahead" if node.ahead else "look-behind")
    if node.kind == "start":
        return _Parts(start=EMPTY)
    if node.kind == "end":
        return _Parts(end=EMPTY)
    raise Unsupported(r"the word boundary \b or \B")


def _union(options: list[_Parts]) -> _Parts:
    return _Parts(
        alt(*(option.free for option in options)),
        alt(*(option.start for option in options)),
        alt(*(option.end for option in options)),
        alt(*(option.both for option in options)),
    )


def _loop(item: _Parts, loop: Loop) -> _Parts:
    if not item.anchored:
        return _Parts(repeat(item.free, loop.minimum, loop.maximum))
    if loop.maximum == 0:
        return _Parts(EMPTY)
    if loop.maximum != 1:
        raise Unsupported("an anchor (^ or $) below a repetition")
    return item if loop.minimum == 1 else _union([item, _Parts(EMPTY)])


def _chain(items: list[_Parts]) -> _Parts:
    if sum(item.anchored for item in items) > MAX_ANCHORED:
        raise Unsupported(f"over {MAX_ANCHORED} parts with anchors (^ or $) in a row")
    result, plain = _Parts(EMPTY), list[Node]()
    for item in items:
        if item.anchored:
            result = _joined(_joined(result, _Parts(seq(*plain))), item)
            plain = []
        else:
            plain.append(item.free)
    return _joined(result, _Parts(seq(*plain)))


def _joined(left: _Parts, right: _Parts) -> _Parts:
    found: dict[tuple[bool, bool], list[Node]] = {}
    for left_start, left_end, before in left.of():
        for right_start, right_end, after in right.of():
            # The right one starts the string only if nothing is before it, the left one ends it only if nothing is
            # after it.
            first = _only_empty(before) if right_start else before
            second = _only_empty(after) if left_end else after
            found.setdefault((left_start or right_start, left_end or right_end), []).append(seq(first, second))
    places = ((False, False), (True, False), (False, True), (True, True))
    joined = _Parts(*(alt(*found.get(place, [])) for place in places))
    for _, _, node in joined.of():
        ast.check_size(node)
    return joined


def _only_empty(node: Node) -> Node:
    return EMPTY if ast.nullable(node) else NOTHING


def _whole(parts: _Parts) -> Node:
    options = [
        seq(ANYTHING, _trimmed(_trimmed(parts.free, 0), -1), ANYTHING),
        seq(_trimmed(parts.start, -1), ANYTHING),
        seq(ANYTHING, _trimmed(parts.end, 0)),
        parts.both,
    ]
    return ANYTHING if ANYTHING in options else alt(*options)


def _trimmed(node: Node, side: int) -> Node:
    """The node without what any text beside it (0: before, -1: after) takes over: fewer ways to read one string."""
    if ast.nullable(node):
        return EMPTY
    if isinstance(node, Seq):
        items = list(node.items)
        while items and ast.nullable(items[side]):
            items.pop(side)
        items[side] = _trimmed(items[side], side)
        return seq(*items)
    if isinstance(node, Alt):
        return alt(*(_trimmed(option, side) for option in node.options))
    if isinstance(node, Repeat):
        rest, edge = repeat(node.item, node.minimum - 1, node.minimum - 1), _trimmed(node.item, side)
        return seq(edge, rest) if side == 0 else seq(rest, edge)
    return node
