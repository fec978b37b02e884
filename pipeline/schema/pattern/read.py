"""Reads ECMA 262 regular expressions: unicode mode, with the harmless liberties of the older mode.

The liberties: `{`, `}` and `]` that open or close nothing are themselves, and so is escaped punctuation (`\\-`, `\\@`,
`\\_`). Escaped letters that ECMA does not define (`\\A`, `\\Z`, `\\h`) are refused rather than read as letters:
whoever wrote them meant another dialect.
"""

from __future__ import annotations

import re

from pipeline.schema.pattern.ast import LAST, MAX_NODES, Chars, Malformed, Range, Unsupported, chars, complement
from pipeline.schema.pattern.classes import CLASSES, DOT, property_class
from pipeline.schema.pattern.syntax import Chain, Choice, Edge, Look, Loop, Written

MAX_LENGTH = 100_000
MAX_GROUPS = 64
MAX_RANGES = 20_000
_MAX_DIGITS = 9
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}
_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_LOOKS = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False), "(?<!": (False, True)}
_NAME = re.compile(r"\(\?<[A-Za-z_$][\w$]*>")
_HEX = {"x": re.compile(r"x([0-9a-fA-F]{2})"), "u": re.compile(r"u(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,8})\})")}
_PROPERTY = re.compile(r"[pP]\{([^{}]*)\}")


def read(pattern: str) -> Written:
    """The pattern as written.

    Raises:
        Malformed: it is no ECMA 262 regular expression.
        Unsupported: it is one, and uses what this reader leaves out (back-references, unknown properties), or is
            longer than MAX_LENGTH, nests over MAX_GROUPS groups, or has classes of over MAX_RANGES ranges in all.
    """
    if len(pattern) > MAX_LENGTH:
        raise Unsupported(f"it has {len(pattern)} characters; at most {MAX_LENGTH} are read")
    reader = _Reader(pattern)
    tree = reader.choice(0)
    if reader.at < len(pattern):
        raise Malformed(f"unmatched ) at {reader.at}")
    return tree


class _Reader:
    """`at` is the next character's index."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._nodes = 0
        self._ranges = 0

    def choice(self, depth: int) -> Written:
        if depth > MAX_GROUPS:
            raise Unsupported(f"groups nest deeper than {MAX_GROUPS} levels")
        options: list[Written] = []
        items: list[Written] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            self._nodes += 1
            if self._nodes > MAX_NODES:
                raise Unsupported(f"it has over {MAX_NODES} parts")
            if self._take("|"):
                options.append(_chain(items))
                items = []
            else:
                items.append(self._term(depth))
                self._count_ranges(items[-1])
        options.append(_chain(items))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _count_ranges(self, item: Written) -> None:
        leaf = item.item if isinstance(item, Loop) else item
        self._ranges += len(leaf.ranges) if isinstance(leaf, Chars) else 0
        if self._ranges > MAX_RANGES:
            raise Unsupported(f"its classes have over {MAX_RANGES} ranges")

    def _term(self, depth: int) -> Written:
        char = self.text[self.at]
        if char in "*+?" or _COUNT.match(self.text, self.at):
            raise Malformed(f"nothing to repeat at {self.at}")
        if char in "^$":
            self.at += 1
            return Edge("start" if char == "^" else "end")
        if self.text.startswith((r"\b", r"\B"), self.at):
            self.at += 2
            return Edge("word" if self.text[self.at - 1] == "b" else "not word")
        for opening, (ahead, negative) in _LOOKS.items():
            if self._take(opening):
                return Look(self._body(depth), ahead, negative)
        return self._quantified(self._atom(depth))

    def _quantified(self, item: Written) -> Written:
        counts = self._counts()
        if counts is None:
            return item
        self._take("?")
        if self.text[self.at : self.at + 1] in ("*", "+", "?") or _COUNT.match(self.text, self.at):
            raise Malformed(f"nothing to repeat at {self.at}")
        return Loop(item, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        low, comma, high = match.groups()
        if max(len(low), len(high or "")) > _MAX_DIGITS:
            raise Unsupported(f"a repetition count has over {_MAX_DIGITS} digits")
        minimum = int(low)
        maximum = minimum if comma is None else int(high) if high else None
        if maximum is not None and maximum < minimum:
            raise Malformed(f"the repetition {match[0]} is out of order")
        return minimum, maximum

    def _atom(self, depth: int) -> Written:
        char = self.text[self.at]
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        self.at += 1
        if char == ".":
            return DOT
        if char == "\\":
            found = self._escaped(in_class=False)
            return found if isinstance(found, Chars) else _one(found)
        return _one(ord(char))

    def _group(self, depth: int) -> Written:
        name = _NAME.match(self.text, self.at)
        if name:
            self.at = name.end()
        elif not self._take("(?:"):
            self.at += 1
            if self._take("?"):
                raise Malformed(f"the group at {self.at - 2} is of no kind that ECMA 262 knows")
        return self._body(depth)

    def _body(self, depth: int) -> Written:
        tree = self.choice(depth + 1)
        if not self._take(")"):
            raise Malformed("a group is not closed")
        return tree

    def _class(self) -> Chars:
        start = self.at
        self.at += 1
        negative = self._take("^")
        ranges: list[Range] = []
        while not self._take("]"):
            if self.at >= len(self.text):
                raise Malformed(f"the class at {start} is not closed")
            ranges.extend(self._class_range())
        return complement(chars(ranges)) if negative else chars(ranges)

    def _class_range(self) -> list[Range]:
        low = self._class_atom()
        if not (self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", "")):
            return _ranges(low)
        self.at += 1
        high = self._class_atom()
        if isinstance(low, Chars) or isinstance(high, Chars):
            return [*_ranges(low), (ord("-"), ord("-")), *_ranges(high)]  # as without unicode mode: no range
        if low > high:
            raise Malformed(f"a class range before {self.at} is out of order")
        return [(low, high)]

    def _class_atom(self) -> int | Chars:
        char = self.text[self.at]
        self.at += 1
        if char != "\\":
            return ord(char)
        return 8 if self._take("b") else self._escaped(in_class=True)

    def _escaped(self, in_class: bool) -> int | Chars:
        """What follows a backslash: a code point (half a surrogate pair included) or a class."""
        if self.at >= len(self.text):
            raise Malformed(r"it ends in \ ")
        char = self.text[self.at]
        if char in CLASSES:
            self.at += 1
            return CLASSES[char]
        if char in _HEX:
            return self._hexadecimal(char)
        if char in "pP":
            return self._property(char == "P")
        self.at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c" and self.text[self.at : self.at + 1].isascii() and self.text[self.at : self.at + 1].isalpha():
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if char == "0" and self.text[self.at : self.at + 1] not in tuple("0123456789"):
            return 0
        if char in "123456789k" and not in_class:
            raise Unsupported(f"the back-reference \\{char}")
        if char.isalnum():
            raise Unsupported(f"the escape \\{char}, which ECMA 262 does not define")
        return ord(char)

    def _hexadecimal(self, kind: str) -> int:
        value = self._digits(kind)
        if value is None or value > LAST:
            raise Malformed(f"the escape \\{kind} at {self.at} does not name a character")
        if 0xD800 <= value <= 0xDBFF and self.text.startswith("\\u", self.at):
            before, self.at = self.at, self.at + 1
            low = self._digits("u")
            if low is not None and 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
            self.at = before
        return value

    def _digits(self, kind: str) -> int | None:
        match = _HEX[kind].match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return int(next(digits for digits in match.groups() if digits), 16)

    def _property(self, negative: bool) -> Chars:
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            raise Malformed(f"\\p at {self.at} lacks its {{name}}")
        self.at = match.end()
        found = property_class(match[1])
        return complement(found) if negative else found

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True


def _one(point: int) -> Chars:
    return chars([(point, point)])


def _ranges(found: int | Chars) -> list[Range]:
    return list(found.ranges) if isinstance(found, Chars) else [(found, found)]


def _chain(items: list[Written]) -> Written:
    return items[0] if len(items) == 1 else Chain(tuple(items))
