"""Strings of a text shape: the shortest, and those worth trying: bounds, escapes, scripts, members of patterns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice

from pipeline.schema.pattern.ast import Node
from pipeline.schema.pattern.draw import draw, minimal
from pipeline.schema.pattern.length import bounded
from pipeline.schema.shape.shapes import Text

LONGEST = 5000
"""Characters of a string that is tried; a maxLength above is not tried at its bound."""

_KINDS = {
    "plain": "Ann Lee",
    "quotes": 'say "hi" \\ / it\'s',
    "newline": "a\nb\tc\rd",
    "control": "\x01\x1f\x7fx",
    "emoji": "😀👩‍👩‍👧🙏",
    "cjk": "中文日本한국",
    "latin": "Éclair ß ñ",
    "separators": "a\u2028b\ufeffc\u00a0d",
    "digits": "2024-02-29",
}
_TRIES = 12
"""Draws without a new member after which there is taken to be none."""


def shortest(shape: Text) -> str:
    """A string of the shape with few characters. With several patterns, one of the first of them."""
    if not shape.patterns:
        return "a" * min(shape.minimum, LONGEST * 100)
    node = _narrowed(shape, shape.patterns[0][1])
    found = next(of_pattern(node), "")
    if is_long_enough(shape, found):
        return found
    return min(filter(partial(is_long_enough, shape), some_of(node)), key=len, default=found)


def labelled(shape: Text) -> dict[str, str]:
    """Strings of the shape by what they are worth trying for."""
    if shape.patterns:
        return _matching(shape)
    found: dict[str, str] = {}
    highest = LONGEST if shape.maximum is None else shape.maximum
    for label, sample in _KINDS.items():
        found[label] = _fitted(sample, shape.minimum, highest)
    found["shortest"] = "a" * min(shape.minimum, LONGEST)
    if shape.minimum:
        found["shortest of emoji"] = "😀" * min(shape.minimum, LONGEST)
    if shape.maximum is not None and shape.maximum <= LONGEST:
        found["longest"] = "b" * shape.maximum
        found["longest of quotes"] = '"' * shape.maximum
    return {label: text for label, text in found.items() if is_long_enough(shape, text)}


def is_long_enough(shape: Text, text: str) -> bool:
    """Whether a string's length is between the bounds of a shape."""
    return shape.minimum <= len(text) and (shape.maximum is None or len(text) <= shape.maximum)


@lru_cache(maxsize=256)
def some_of(node: Node) -> tuple[str, ...]:
    """A dozen members of a pattern, or all of fewer; drawing them costs some milliseconds."""
    return tuple(islice(of_pattern(node), 12))


def of_pattern(node: Node, seed: int = 0) -> Iterator[str]:
    """Different members of a pattern, a shortest one first; they end when no new ones come up, or none is drawable."""
    rng = random.Random(seed)
    try:
        first = minimal(node)
        yield first
        seen, size, missed = {first}, 1, 0
        while missed < _TRIES:
            text = draw(node, rng, size)
            size, missed = min(size + 1, 30), missed + 1
            if text not in seen and len(text) <= LONGEST:
                seen.add(text)
                missed = 0
                yield text
    except ValueError:
        return


def _narrowed(shape: Text, node: Node) -> Node:
    if not shape.minimum and shape.maximum is None:
        return node
    return bounded(node, shape.minimum, shape.maximum) or node


def _matching(shape: Text) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, (_, whole) in enumerate(shape.patterns):
        node = _narrowed(shape, whole)
        drawn = [text for text in some_of(node) if is_long_enough(shape, text)]
        for label, text in zip(("shortest", "second", "third", "fourth"), drawn, strict=False):
            found[f"{label} of {number}"] = text
        if drawn:
            found[f"longest of {number}"] = max(drawn, key=len)
            found[f"escaped of {number}"] = max(drawn, key=lambda text: sum(char in '"\\\n' for char in text))
    return found


def _fitted(sample: str, lowest: int, highest: int) -> str:
    """A sample cut or repeated until its length fits."""
    if len(sample) < lowest:
        sample *= -(-min(lowest, LONGEST) // len(sample))
        return sample[: max(lowest, 0)] if lowest <= LONGEST else sample
    return sample[:highest]
