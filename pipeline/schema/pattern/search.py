"""A pattern for the `regex` package: searching strings in bounded time, with ECMA 262's reading of classes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from pipeline.schema.pattern.ast import ANY, NOTHING, Chars, Malformed, Unsupported, complement, intersection
from pipeline.schema.pattern.read import read
from pipeline.schema.pattern.syntax import Chain, Choice, Edge, Look, Loop, Written, children

MAX_EXPANDED = 100_000
"""What a pattern demands at least, written out without counts: `regex` copies what must be there."""

_EDGES = {"start": r"\A", "end": r"\Z", "word": r"\b", "not word": r"\B"}
_LOOKS = {(True, False): "=", (True, True): "!", (False, False): "<=", (False, True): "<!"}
_ENDLESS = 2**31 - 1
_HARD = 99
_FORK = 0.25

_BLANKS = r" \t\n\r\f\v\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_OUTSIDE_CLASS = {r"\s": f"[{_BLANKS}]", r"\S": f"[^{_BLANKS}]", "$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}
_INSIDE_CLASS = {r"\s": _BLANKS}
_TOKEN = re.compile(r"\\.|.", re.DOTALL)
_COUNT = re.compile(r"\{\s*([0-9]*)\s*(?:,\s*([0-9]*)\s*)?\}")


@dataclass(frozen=True, slots=True)
class Finder:
    """A compiled pattern. Up to `quick_length` characters no search can take long, and the faster `quick` is used."""

    timed: Any
    quick: Any
    quick_length: int

    def finds(self, text: str, seconds: float) -> bool:
        """Whether the pattern matches somewhere in the text.

        Raises:
            TimeoutError: the search took longer than `seconds`.
        """
        if len(text) <= self.quick_length:  # a time limit alone costs 2 µs, as much as eight short searches
            return self.quick.search(text) is not None
        return self.timed.search(text, timeout=seconds) is not None


def compile_finder(pattern: str) -> Finder:
    """The finder of a pattern: as ECMA 262 has it, or, for what `read` leaves out, as near as `regex` comes to it.

    Raises:
        ValueError: neither reading can be compiled, or it demands over MAX_EXPANDED characters.
    """
    try:
        tree = read(pattern)
    except (Malformed, Unsupported) as refused:
        text, length = _foreign(pattern), 0
        problem = str(refused)
    else:
        if _expanded(tree) > MAX_EXPANDED:
            raise ValueError(f"it demands over {MAX_EXPANDED} characters")
        text, length, problem = _text(tree), _quick_length(tree), ""
    try:
        timed = regex.compile(text, regex.ASCII | regex.DOTALL | regex.VERSION0)
    except (regex.error, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(problem or str(error)) from error
    return Finder(timed, _quick(text) or timed, length) if length else Finder(timed, timed, 0)


def _quick(text: str) -> Any:
    """The same by Python's own engine, up to twice as fast; None where it cannot (look-behind of several lengths)."""
    try:
        return re.compile(text, re.ASCII | re.DOTALL)
    except (re.error, OverflowError, RecursionError):
        return None


def _text(node: Written) -> str:
    if isinstance(node, Chars):
        return _class(node)
    if isinstance(node, Chain):
        return "".join(_text(item) for item in node.items)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(_text(option) for option in node.options)})"
    if isinstance(node, Loop):
        item = _text(node.item)
        item = item if isinstance(node.item, Chars | Choice) else f"(?:{item})"
        high = "" if node.maximum is None or node.maximum > _ENDLESS else str(node.maximum)
        return f"{item}{{{node.minimum},{high}}}"
    if isinstance(node, Look):
        return f"(?{_LOOKS[node.ahead, node.negative]}{_text(node.body)})"
    return _EDGES[node.kind]


def _class(node: Chars) -> str:
    if node == NOTHING:
        return "(?!)"
    if node == ANY:
        return "."
    if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return _point(node.ranges[0][0])
    rest = complement(node)
    if len(rest.ranges) < len(node.ranges):  # shorter, and halves of surrogate pairs are judged elsewhere
        return f"[^{_ranges(rest)}]"
    return f"[{_ranges(node)}]"


def _ranges(node: Chars) -> str:
    return "".join(_point(low) + (f"-{_point(high)}" if high > low else "") for low, high in node.ranges)


def _point(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _expanded(node: Written) -> int:
    below = sum(_expanded(child) for child in children(node))
    return below * max(node.minimum, 1) if isinstance(node, Loop) else max(below, 1)


def _quick_length(tree: Written) -> int:
    """The length up to which a search takes at most some 10 million steps: length to the power of loops and starts."""
    anchored = isinstance(tree, Chain) and tree.items[:1] == (Edge("start"),)
    power = math.ceil(_loops(tree)) + (0 if anchored else 1)
    return {0: 1 << 20, 1: 1 << 20, 2: 3000, 3: 200, 4: 50}.get(power, 0)


def _loops(node: Written) -> float:
    """How many loops of variable length can share out a text among them; _HARD if that is not easily said.

    Two ways to go on count as a quarter: four such places are at most 16 searches.
    """
    if isinstance(node, Choice):
        return max(map(_loops, node.options)) + _FORK * (len(node.options) - 1)
    below = sum(map(_loops, children(node)))
    if not isinstance(node, Loop):
        return below
    if node.maximum == 1:
        return below + _FORK
    if below == 1 and _separated(node.item):
        return 2  # such as (-[a-z]+)*: where a turn ends is not open to choice
    if below or not isinstance(node.item, Chars | Chain):
        return _HARD
    return 0 if node.minimum == node.maximum else 1


def _separated(item: Written) -> bool:
    """Whether each turn of a loop begins, or ends, with a character that is nowhere else in it."""
    if not isinstance(item, Chain):
        return False
    inner = [one for part in item.items for one in (children(part) if isinstance(part, Loop) else (part,))]
    return any(
        isinstance(edge, Chars)
        and all(isinstance(one, Chars) and intersection(one, edge) == NOTHING for one in inner if one is not edge)
        for edge in (item.items[0], item.items[-1])
    )


def _foreign(pattern: str) -> str:
    """A pattern that is not quite ECMA 262, or refers back: word for word, with its blanks, dots and ends."""
    least = 1
    for low, _ in _COUNT.findall(pattern):
        least *= max(int(low[:7] or 0), 1)
    if least > MAX_EXPANDED or len(pattern) > MAX_EXPANDED:
        raise ValueError(f"it demands over {MAX_EXPANDED} characters")
    translated, in_class = [], False
    for token in _TOKEN.findall(pattern):
        translated.append((_INSIDE_CLASS if in_class else _OUTSIDE_CLASS).get(token, token))
        in_class = token != "]" and (in_class or token == "[")
    return "".join(translated)
