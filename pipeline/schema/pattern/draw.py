"""Members of a tree: random ones, and a shortest one."""

from __future__ import annotations

import random
from functools import lru_cache

from pipeline.schema.pattern.ast import NOTHING, Alt, Chars, Node, Seq, chars, intersection
from pipeline.schema.pattern.length import lengths

MAX_DRAWN = 20_000
_ODD_SHARE = 0.15
_PLAIN = [chars([(0x61, 0x7A)]), chars([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)]), chars([(0x20, 0x7E)])]
# Quotes, backslashes, blanks, controls, Latin, CJK, emoji: what encoders and escapes get wrong.
_ODD = chars((ord(char), ord(char)) for char in '\t\n\f\r\x01\x1f "/\\\x7féè\u2028中文😀🙏\U0010ffff')
# The planes that hold most of what is assigned; some tokenizers lack bytes of the others.
_COMMON = chars([(0, 0x2FFFF)])


def draw(node: Node, rng: random.Random, size: int) -> str:
    """A random member. Repetitions go at most `size` beyond their minimum, and stop early once the text is long.

    Raises:
        ValueError: it has no member, or none of at most MAX_DRAWN characters.
    """
    _check(node)
    pieces: list[str] = []
    _draw(node, rng, size, pieces)
    return "".join(pieces)


def minimal(node: Node) -> str:
    """A shortest member.

    Raises:
        ValueError: as `draw`.
    """
    _check(node)
    return _minimal(node)


def _check(node: Node) -> None:
    if node == NOTHING:
        raise ValueError("no string matches")
    shortest = lengths(node)[0]
    if shortest > MAX_DRAWN:
        raise ValueError(f"its shortest member has {shortest} characters; at most {MAX_DRAWN} are drawn")


def _draw(node: Node, rng: random.Random, size: int, pieces: list[str]) -> None:
    if isinstance(node, Chars):
        pieces.append(_character(node, rng))
    elif isinstance(node, Seq):
        for item in node.items:
            _draw(item, rng, size, pieces)
    elif len(pieces) > MAX_DRAWN:
        pieces.append(_minimal(node))
    elif isinstance(node, Alt):
        options = [option for option in node.options if lengths(option)[0] <= MAX_DRAWN]
        _draw(rng.choice(options), rng, size, pieces)
    else:
        most = node.minimum + size if node.maximum is None else min(node.maximum, node.minimum + size)
        for _ in range(rng.randint(node.minimum, most)):
            _draw(node.item, rng, size, pieces)


def _minimal(node: Node) -> str:
    if isinstance(node, Chars):
        return _character(node, None)
    if isinstance(node, Seq):
        return "".join(_minimal(item) for item in node.items)
    if isinstance(node, Alt):
        return _minimal(min(node.options, key=lambda option: lengths(option)[0]))
    return _minimal(node.item) * node.minimum if node.minimum else ""


def _character(node: Chars, rng: random.Random | None) -> str:
    """A readable character where there is one, and with a generator now and then an odd one or any."""
    odd = rng is not None and rng.random() < _ODD_SHARE
    kind = rng.choice((_ODD, _COMMON)) if rng is not None and odd else None
    return _pick(_preferred(node, kind), rng)


@lru_cache(maxsize=1024)
def _preferred(node: Chars, kind: Chars | None) -> Chars:
    for wish in (kind, *_PLAIN) if kind else _PLAIN:
        found = intersection(node, wish)
        if found != NOTHING:
            return found
    return node


def _pick(node: Chars, rng: random.Random | None) -> str:
    if rng is None:
        return chr(node.ranges[0][0])
    index = rng.randrange(sum(high - low + 1 for low, high in node.ranges))
    for low, high in node.ranges:
        if index <= high - low:
            return chr(low + index)
        index -= high - low + 1
    raise AssertionError("the index is within the ranges")
