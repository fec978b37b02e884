"""Aligned: a repaired value held against the text it was made of, piece by piece and in order.

A repairer of JSON may add or take away quotes, commas and closers, and spell true, false and null as JSON does. Every
key and scalar has to stand in the text as it is in the value, character by character but for escapes, between nothing
but punctuation, and nothing else may stand there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pipeline.records import JsonValue
from pipeline.schema.walk import escape
from pipeline.steps.answer.relaxed import PUNCTUATION
from pipeline.steps.answer.strict import CANONICAL_NUMBER, LIKE_A_NUMBER

_QUOTES = "\"'“”„＂`"
_GAP = re.compile(r"[\s{}\[\]:,｛｝［］：，、\ufeff]*")
_TO_ASCII = str.maketrans(PUNCTUATION)
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4}){2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_WORD = re.compile(r"[^\s{}\[\]:,\"']+")
_SPELLINGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_SPELLINGS_OF_NULL = frozenset({"null", "None", "NULL", "Null"})
_NO_TEXT = frozenset({"true", "false", "null", "none", "nil", "undefined", "nan", "inf", "infinity"})
"""Words that stand for something else in one language or another; without quotes they are no texts."""
_TWO_KEYS = re.compile(rf"[{_QUOTES}]\s*[:,：，]")
"""In a key: it is a key and what came after it."""
_NOT_BARE = re.compile(rf"[{{}}\[\]:,{re.escape(''.join(PUNCTUATION) + _QUOTES)}]")


def aligned(text: str, value: JsonValue) -> list[str] | None:
    """The pointers of the leaves that the text writes otherwise than JSON does; None if the value does not hold every
    key, scalar and container of the text, in order, and none besides."""
    position, changed = 0, []
    pointers = iter(leaves(value))
    for is_key, content, between in _pieces(value):
        gap = _GAP.match(text, position)
        start = gap.end() if gap else position
        end = None if is_key and _TWO_KEYS.search(content) else _end_of(text, start, content)
        if end is None or not _fits(text[position:start], between, is_key):
            return None
        position = end
        if not is_key:
            pointer, _ = next(pointers)
            if _literal(text[start:end]) != (content,):
                changed.append(pointer)
    return changed if _fits(text[position:], _closing(value), is_key=True) else None


def leaves(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    """The scalars of a value with their pointers."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{pointer}/{escape(key)}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, f"{pointer}/{index}")
    else:
        yield pointer, value


def _literal(token: str) -> tuple[JsonValue] | None:
    try:
        return (json.loads(token),)
    except ValueError:
        return None


def _pieces(value: JsonValue) -> Iterator[tuple[bool, JsonValue, str]]:
    """(is it a key, the key or scalar, the punctuation of strict JSON between it and the one before)."""
    between = ""
    for is_scalar, is_key, content in _events(value):
        if is_scalar:
            yield is_key, content, between
            between = ":" if is_key else ""
        else:
            between += content


def _closing(value: JsonValue) -> str:
    tail = ""
    for is_scalar, is_key, content in _events(value):
        tail = (":" if is_key else "") if is_scalar else tail + content
    return tail


def _events(value: JsonValue) -> Iterator[tuple[bool, bool, JsonValue]]:
    """(is scalar or key, is key, content or punctuation), colons left out."""
    if isinstance(value, dict):
        yield False, False, "{"
        for index, (key, child) in enumerate(value.items()):
            if index:
                yield False, False, ","
            yield True, True, key
            yield from _events(child)
        yield False, False, "}"
    elif isinstance(value, list):
        yield False, False, "["
        for index, child in enumerate(value):
            if index:
                yield False, False, ","
            yield from _events(child)
        yield False, False, "]"
    else:
        yield True, False, value


def _fits(gap: str, between: str, is_key: bool) -> bool:
    """Whether raw punctuation is the strict one but for commas and closers that are too many or missing."""
    raw = "".join(gap.translate(_TO_ASCII).replace("\ufeff", "").split())
    if "".join(raw).strip("{}[]:,"):
        return False
    commas, strict_commas = raw.count(","), between.count(",")
    if commas > strict_commas + (1 if "}" in between or "]" in between else 0):
        return False
    if between == "," and commas == 0 and not is_key:  # two scalars in a row may as well be one
        return False
    position = 0
    marks = between.replace(",", "")
    for mark in raw.replace(",", ""):
        while position < len(marks) and marks[position] != mark and marks[position] in "]}":
            position += 1
        if position == len(marks) or marks[position] != mark:
            return False
        position += 1
    return all(mark in "]}" for mark in marks[position:])


def _end_of(text: str, start: int, content: JsonValue) -> int | None:
    """Where a key or scalar ends that starts in the text at `start`, maybe with a quote; None if it does not."""
    if isinstance(content, str):
        return _end_of_text(text, start, content)
    word = _WORD.match(text, start)
    if word is None:
        return None
    if isinstance(content, bool) or content is None:
        same = word[0] in _SPELLINGS_OF_NULL if content is None else _SPELLINGS.get(word[0]) is content
    else:
        literal = _literal(word[0]) if CANONICAL_NUMBER.fullmatch(word[0]) else None
        same = literal is not None and type(literal[0]) is type(content) and literal[0] == content
    return word.end() if same else None


def _end_of_text(text: str, start: int, content: str) -> int | None:
    opened = start < len(text) and text[start] in _QUOTES
    position = start + opened
    for character in content:
        step = _step(text, position, character)
        if step == 0:
            return None
        position += step
    closed = position < len(text) and text[position] in _QUOTES
    if not (opened and closed) and (not content or _NOT_BARE.search(content)):
        return None  # where such a text ends is a guess
    if not opened and not closed and (content.casefold() in _NO_TEXT or LIKE_A_NUMBER.fullmatch(content)):
        return None
    return position + closed


def _step(text: str, position: int, character: str) -> int:
    """How many characters of the text write one character of a value; 0 if they do not."""
    raw = text[position : position + 1]
    if raw == "\\":
        match = _ESCAPE.match(text, position)
        while match:
            literal = _literal(f'"{match[0]}"') if match[0] != "\\'" else ("'",)
            if literal == (character,):
                return len(match[0])
            if len(match[0]) != 12:
                break
            match = _ESCAPE.match(text, position, position + 6)  # two escapes that are no pair
    return int(raw == character)
