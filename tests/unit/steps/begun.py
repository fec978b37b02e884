"""What a cut JSON text shows: the value as far as it goes, with a mark where it stops."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_BEGUN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*\\?\Z', re.DOTALL)
_SCALAR = re.compile(r"[A-Za-z0-9.+-]+")
CUT = object()
"""A scalar whose end the text does not show."""


class CutDict(dict[str, Any]):
    """An object whose end the text does not show."""


class CutList(list[Any]):
    """An array whose end the text does not show."""


def begun(text: str) -> Any:
    """The value that a text begins with.

    Raises:
        ValueError: this is no beginning of JSON, or more follows after its end.
    """
    value, end = _value(text, 0)
    if _blank(text, end) != len(text):
        raise ValueError("text after the value")
    return value


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> tuple[Any, int]:
    at = _blank(text, at)
    if at == len(text):
        return CUT, at
    if text[at] == "{":
        return _members(text, at + 1)
    if text[at] == "[":
        return _items(text, at + 1)
    if text[at] == '"':
        return _string(text, at)
    found = _SCALAR.match(text, at)
    if not found:
        raise ValueError(f"no JSON at {at}")
    if found.end() == len(text):
        return CUT, found.end()
    return json.loads(found[0], parse_float=Decimal, parse_int=Decimal), found.end()


def _string(text: str, at: int) -> tuple[Any, int]:
    if found := _STRING.match(text, at):
        return json.loads(found[0]), found.end()
    if not _BEGUN.match(text, at):
        raise ValueError(f"no string at {at}")
    return CUT, len(text)


def _items(text: str, at: int) -> tuple[list[Any], int]:
    items = CutList()
    while (at := _blank(text, at)) < len(text):
        if text[at] == "]":
            return list(items), at + 1
        item, at = _value(text, at)
        items.append(item)
        at = _comma(text, at, "]")
    return items, at


def _members(text: str, at: int) -> tuple[dict[str, Any], int]:
    members = CutDict()
    while (at := _blank(text, at)) < len(text):
        if text[at] == "}":
            return dict(members), at + 1
        if text[at] != '"':
            raise ValueError(f"no key at {at}")
        key, at = _string(text, at)
        at = _blank(text, at)
        if key is CUT or at == len(text):
            return members, len(text)  # a key whose value did not begin: nothing was said
        if text[at] != ":" or key in members:
            raise ValueError(f"no member at {at}")
        if _blank(text, at + 1) == len(text):
            return members, len(text)
        members[key], at = _value(text, at + 1)
        at = _comma(text, at, "}")
    return members, at


def _comma(text: str, at: int, end: str) -> int:
    at = _blank(text, at)
    if at < len(text) and text[at] not in ("," + end):
        raise ValueError(f"neither a comma nor an end at {at}")
    return at + 1 if at < len(text) and text[at] == "," else at
