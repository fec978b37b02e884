"""Spans: where in a JSON text each leaf of its value stands, in code points, by JSON pointer.

One pass without recursion. Time is linear in the text; memory too, since pointers, which repeat the keys above them,
may take only so many characters together.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from pipeline.schema.walk import escape
from pipeline.steps.parse import MAX_CHARACTERS, MAX_DEPTH

MAX_POINTER_CHARACTERS = 1 << 22
"""Of all pointers of a text together: one long key above many leaves would otherwise cost the square of the text."""

_BLANKS = re.compile(r"[ \t\r\n]*+")
# Possessive: an unterminated string of a million characters is not tried again from its every character.
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+")
_AFTER_LITERAL = re.compile(r"[ \t\r\n,\]}]")

Span = tuple[int, int]
"""[start, end) in code points. Of a string: what stands between its quotes, as it is written, escapes and all."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass over a text found. Reading stopped at `end`, inside the value that `pointer` names.

    `whole`: a value was read to its end there. Otherwise the text is cut or no strict JSON from `end` on, and `spans`
    holds the leaves that were finished before.
    """

    spans: dict[str, Span]
    end: int
    pointer: str
    whole: bool


@dataclass(slots=True)
class _Open:
    """A container that is being read; `index` counts the items of a list, `keys` are those of an object so far."""

    bracket: str
    pointer: str
    index: int = 0
    keys: set[str] = field(default_factory=set)


def spans_of(text: str) -> dict[str, Span]:
    """The span of every leaf (string, number, true, false, null) of strict JSON text, by JSON pointer, in order.

    Of a string it is what stands between the quotes. Empty containers have no leaf. Empty, too, if the text is not one
    strict JSON value, repeats a key, or is larger or deeper than `steps/parse.py` parses.
    """
    found = scan(text)
    rest = _blanks(text, found.end)
    return found.spans if found.whole and rest == len(text) else {}


def scan(text: str, start: int = 0) -> Scan:
    """Read one JSON value from `start` as far as it is strict JSON; what follows it is not looked at."""
    reader = _Reader(text, start)
    if len(text) <= MAX_CHARACTERS:
        reader.read()
    return Scan(reader.spans, reader.at, reader.pointer, reader.whole)


class _Reader:
    """`read` leaves its results in the attributes."""

    def __init__(self, text: str, start: int) -> None:
        self.spans: dict[str, Span] = {}
        self.at = start
        self.pointer = ""
        self.whole = False
        self._text = text
        self._open: list[_Open] = []
        self._characters = 0

    def read(self) -> None:
        while self._value():
            if not self._separator():
                return

    def _value(self) -> bool:
        """Read a leaf, or open containers down to the next one; False where neither stands."""
        while True:
            self._skip()
            bracket = self._text[self.at : self.at + 1]
            if bracket not in ("{", "["):
                return self._leaf()
            if len(self._open) == MAX_DEPTH:
                return False
            self._open.append(_Open(bracket, self.pointer))
            self.at += 1
            self._skip()
            if self._text.startswith("}" if bracket == "{" else "]", self.at):
                return True  # `_separator` closes it
            if not self._next():
                return False

    def _leaf(self) -> bool:
        string = _STRING.match(self._text, self.at)
        found = string or _LITERAL.match(self._text, self.at)
        self._characters += len(self.pointer)
        if found is None or self._characters > MAX_POINTER_CHARACTERS:
            return False
        cut = found.end() == len(self._text)  # after a cut, 12 may be the beginning of 123
        if string is None and self._open and (cut or not _AFTER_LITERAL.match(self._text, found.end())):
            return False
        quote = 1 if string else 0
        self.spans[self.pointer] = (found.start() + quote, found.end() - quote)
        self.at = found.end()
        return True

    def _separator(self) -> bool:
        """Close containers and pass a comma; False at the end of the whole value, or where neither stands."""
        while self._open:
            innermost = self._open[-1]
            self.pointer = innermost.pointer
            self._skip()
            mark = self._text[self.at : self.at + 1]
            if mark == ",":
                self.at += 1
                innermost.index += 1
                return self._next()
            if mark != ("}" if innermost.bracket == "{" else "]"):
                return False
            self.at += 1
            self._open.pop()
        self.whole = True
        return False

    def _next(self) -> bool:
        """Go to the next member or item of the innermost container: past the key and its colon."""
        innermost = self._open[-1]
        if innermost.bracket == "[":
            self.pointer = f"{innermost.pointer}/{innermost.index}"
            return True
        self._skip()
        found = _STRING.match(self._text, self.at)
        if found is None:
            return False
        key = json.loads(found[0])
        colon = _blanks(self._text, found.end())
        if key in innermost.keys or not self._text.startswith(":", colon):
            return False
        innermost.keys.add(key)
        self.pointer = f"{innermost.pointer}/{escape(key)}"
        self.at = colon + 1
        return True

    def _skip(self) -> None:
        self.at = _blanks(self._text, self.at)


def _blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
