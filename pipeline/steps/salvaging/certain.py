"""Certain: what the text of an unfinished or broken answer shows to be complete, however deep.

A string, object or array is complete when it is closed; a number, true, false or null when a comma or a closer follows,
since more characters may have been to come. A container that was cut keeps what is complete in it, as the member of an
object; as an item of a list it is left out, and a cut string is too. Text that breaks off in the middle, rather than at
its end, does not even vouch for the string before the break: its closing quote may have been one inside it. Nor for
the number before it: the comma after it may have been one inside it, as in 1,000.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from pipeline.records import JsonValue
from pipeline.schema.walk import escape
from pipeline.steps.answer.scan import STRING
from pipeline.steps.answer.strict import Unparsable, check_bounds, strict_decoder

MAX_CHARACTERS = 1 << 18
"""Of longer answers nothing is kept: the densest, a list of half as many digits, would take over a second."""
_START = re.compile(r"\s*\ufeff?\s*(?:```[A-Za-z0-9_-]*[ \t]*\r?\n)?\s*")
_BLANKS = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(STRING + r"|[^\s{}\[\]:,\"]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Certain:
    """`cut` are the pointers of the containers that more was to come in, outermost first; `left_out` those of the
    values that were begun and are not in `value`."""

    value: JsonValue
    cut: tuple[str, ...]
    left_out: tuple[str, ...]


def certain(text: str, *, end: int | None = None, distinct: bool = False) -> Certain | None:
    """What is certain of a text, None if that is nothing.

    Values that begin at character `end` or later are not taken; `distinct`: of the innermost list that was cut, only
    the items before the first that repeats one.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    try:
        check_bounds(text)
    except Unparsable:
        return None
    start = _START.match(text)
    reader = _Reader(text, len(text) if end is None else end)
    return reader.read(start.end() if start else 0, distinct)


@dataclass(slots=True)
class _Level:
    """One open container: `slot` is the key or index of the value that is being read, `given_up` those of values that
    turned out not to be certain."""

    value: JsonValue
    slot: str | int = 0
    begun: bool = False
    given_up: list[str | int] = field(default_factory=list)


@dataclass(slots=True)
class _Reader:
    text: str
    end: int
    levels: list[_Level] = field(default_factory=list)
    decoder: json.JSONDecoder = field(default_factory=strict_decoder)

    def read(self, position: int, distinct: bool) -> Certain | None:
        if self.text[position : position + 1] not in ("{", "["):
            return None
        try:
            value, after = self.decoder.raw_decode(self.text, position)
        except ValueError:
            self._descend(position)
            return self._gathered(distinct)
        whole = after <= self.end and not self.text[after:].strip()  # else nobody can tell which part is the answer
        return Certain(value, (), ()) if whole and value else None

    def _descend(self, position: int | None) -> None:
        """Read the container at a position up to where it breaks off, and then the one that it breaks off in."""
        while position is not None:
            is_object = self.text[position] == "{"
            self.levels.append(_Level({} if is_object else []))
            position = self._members(position + 1, self.levels[-1])

    def _members(self, position: int, level: _Level) -> int | None:
        """Take the complete members of a container; the position of one that is itself an open container, or None."""
        while True:
            level.begun = False
            start = self._key(position, level)
            if start is None or start >= self.end or start >= len(self.text):
                return None
            level.begun = True
            try:
                value, after = self.decoder.raw_decode(self.text, start)
            except ValueError:
                if self.text[start] in "{[":
                    return start
                self._distrust(start, level)
                return None
            next_one = self._skip(after)
            if not self._is_complete(after, next_one):
                if _is_number(value) and next_one < len(self.text):
                    self._give_up_last(level, int, float)
                return None
            if isinstance(level.value, dict):
                level.value[level.slot] = value
            else:
                level.value.append(value)
                level.slot = len(level.value)
            if self.text[next_one : next_one + 1] != ",":
                level.begun = False
                return None
            position = next_one + 1

    def _key(self, position: int, level: _Level) -> int | None:
        """The position of the next value; None if what stands before it is not whole."""
        start = self._skip(position)
        if not isinstance(level.value, dict):
            return start
        try:
            key, after = self.decoder.raw_decode(self.text, start)
        except ValueError:
            self._distrust(start, level)
            return None
        colon = self._skip(after)
        if not isinstance(key, str) or self.text[colon : colon + 1] != ":":
            if colon < len(self.text) or not isinstance(key, str):
                self._distrust(start, level, broken=True)
            return None
        if key in level.value:
            level.value.clear()
            return None
        level.slot = key
        return self._skip(colon + 1)

    def _distrust(self, position: int, level: _Level, *, broken: bool = False) -> None:
        """Give up the last text of a container where it breaks off before the end of the answer, and the last number of
        an object where digits stand for a key."""
        token, mark = _TOKEN.match(self.text, position), self.text[position : position + 1]
        if isinstance(level.value, dict) and not level.begun and mark.isdigit():
            self._give_up_last(level, int, float)
        elif broken or (mark and not (token and token.end() == len(self.text))):
            self._give_up_last(level, str)

    def _give_up_last(self, level: _Level, *kinds: type) -> None:
        """Take the last member or item back if it is of one of these kinds; true and false are none of them."""
        if not level.value:
            return
        last = next(reversed(level.value)) if isinstance(level.value, dict) else len(level.value) - 1
        if isinstance(level.value[last], bool) or not isinstance(level.value[last], kinds):
            return
        del level.value[last]
        level.given_up.append(last)

    def _is_complete(self, after: int, next_one: int) -> bool:
        """Whether the value that ends at a position cannot go on."""
        if next_one < len(self.text):
            return self.text[next_one] in ",}]"
        return self.text[after - 1] in '"}]'

    def _skip(self, position: int) -> int:
        blanks = _BLANKS.match(self.text, position)
        return blanks.end() if blanks else position

    def _gathered(self, distinct: bool) -> Certain | None:
        """The containers put into each other, from the innermost outwards."""
        pointers = [""]
        for level in self.levels[:-1]:
            pointers.append(f"{pointers[-1]}/{escape(str(level.slot))}")
        innermost = self.levels[-1]
        slots = [*innermost.given_up, *([innermost.slot] if innermost.begun else [])]
        left_out = [f"{pointers[-1]}/{escape(str(slot))}" for slot in slots]
        if distinct and isinstance(innermost.value, list):
            innermost.value = _distinct(innermost.value)
        cut = pointers[:]
        for depth in range(len(self.levels) - 1, 0, -1):
            child, parent = self.levels[depth].value, self.levels[depth - 1]
            if child and isinstance(parent.value, dict):
                parent.value[parent.slot] = child
            else:
                left_out, cut = [pointers[depth]], pointers[:depth]
        root = self.levels[0].value
        return Certain(root, tuple(cut), tuple(left_out)) if root else None


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _distinct(items: list[JsonValue]) -> list[JsonValue]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        text = json.dumps(item)
        if text in seen:
            return items[:index]
        seen.add(text)
    return items
