"""Scan: where things stand in text that is JSON or means to be, in one pass, without recursion.

Nothing here judges: a scan of broken text is a best effort that names the place of what a parser found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.schema.walk import escape

STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
"""A string from its quote to the closing one, or to the end of the text."""
_TOKEN = re.compile(STRING + r'|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_BRACKET = re.compile(STRING + r"|([{}\[\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A scalar or a key: [`start`, `end`) are characters of the text, a key has the pointer of its value."""

    pointer: str
    start: int
    end: int
    is_key: bool


@dataclass(slots=True)
class _Frame:
    pointer: str
    is_object: bool
    step: str | int
    key_next: bool


def places(text: str) -> Iterator[Place]:
    """All keys and scalars in the order of the text."""
    frames = [_Frame("", False, "", False)]
    for match in _TOKEN.finditer(text):
        token, frame = match[0], frames[-1]
        if token in "[{":
            is_object = token == "{"
            frames.append(_Frame(_inside(frame), is_object, "" if is_object else 0, is_object))
        elif token in "]}":
            if len(frames) > 1:
                frames.pop()
        elif token == ",":
            if frame.is_object:
                frame.key_next = True
            elif isinstance(frame.step, int):
                frame.step += 1
        elif token == ":":
            frame.key_next = False
        else:
            if frame.key_next:
                frame.step = _decoded(token)
            yield Place(_inside(frame), match.start(), match.end(), frame.key_next)


def pointer_at(text: str, position: int) -> str:
    """The pointer of the key or scalar that stands at a character, or of the last one before it."""
    found = ""
    for place in places(text):
        if place.start > position:
            break
        found = place.pointer
    return found


def repeated_key(text: str) -> str:
    """The pointer of the first key that its object already has, "" if there is none."""
    seen: set[str] = set()
    for place in places(text):
        if place.is_key:
            if place.pointer in seen:
                return place.pointer
            seen.add(place.pointer)
    return ""


def is_deeper(text: str, limit: int) -> bool:
    """Whether brackets outside strings nest deeper than a limit."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for mark in _BRACKET.findall(text):
        if mark == "[" or mark == "{":
            depth += 1
            if depth > limit:
                return True
        elif mark:
            depth -= 1
    return False


def _inside(frame: _Frame) -> str:
    return frame.pointer if frame.step == "" and not frame.is_object else f"{frame.pointer}/{escape(str(frame.step))}"


def _decoded(token: str) -> str:
    try:
        return str(json.loads(token)) if token[0] == '"' else token
    except ValueError:
        return token.strip('"')
