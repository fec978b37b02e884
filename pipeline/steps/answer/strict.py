"""Strict JSON: one bounded value that loses nothing on the way into Python, or a code for why not."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.records import JsonValue
from pipeline.steps.answer.scan import is_deeper, pointer_at, repeated_key

MAX_CHARACTERS = 1 << 20
MAX_DEPTH = 64
MAX_POINTERS = 1 << 22
"""Characters of the JSON pointers of all values of an answer together: long keys around many values would multiply."""
NEVER_SPRAWLS = 4096
"""So many characters of text have no more: half of them key, half of them values."""
MAX_QUOTED = 40
SAFE_INTEGER = 2**53
"""Every integer up to here is a double of its own (IEEE 754 binary64)."""
SURE_DIGITS = 15
"""A decimal of so many significant digits survives a normal double and back (DBL_DIG)."""
_SMALLEST_NORMAL = 2.3e-308
_LONG_INTEGER = re.compile(r"[0-9]{16}")
_WORD_START = re.compile(r"[\w.+\-\u2212]*\Z")
_WORD = re.compile(r"[\w.+\-\u2212]+")
CANONICAL_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
LIKE_A_NUMBER = re.compile(
    r"[+\-\u2212]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?=\.?\d)[\d_]*\.?[\d_]*(?:[eE][+\-\u2212]?\d*)?)"
)
# Possessive, and matched at the start only: a megabyte of blanks would otherwise take minutes.
_BEGINS = re.compile(r'\s*+\ufeff?\s*+(?:["\d\-]|true\b|false\b|null\b)')
_OPENER = re.compile(r"[{\[｛［]")


class Unparsable(ValueError):
    """Text that is not one JSON value by the rules here; `code` says why, `pointer` where, if that can be told.

    `is_json`: the text is JSON as the standard has it, but not as it is accepted here.
    """

    def __init__(self, code: str, message: str, pointer: str = "", *, is_json: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.pointer = pointer
        self.is_json = is_json


@dataclass(frozen=True, slots=True)
class Read:
    """A value, and whether a number of it has to be looked at: it is long, or not what its text says."""

    value: JsonValue
    has_long_numbers: bool


def loads(text: str) -> JsonValue:
    """Strict JSON: one value, no duplicate keys, finite numbers, bounded size and depth.

    Raises:
        Unparsable: with the problem code of what is wrong.
    """
    return read(text).value


def read(text: str) -> Read:
    """`loads`, with what a closer look at the numbers depends on.

    Raises:
        Unparsable: with the problem code of what is wrong.
    """
    check_bounds(text)
    if not text.strip():
        raise Unparsable("empty_output", "the answer is empty")
    inexact: list[str] = []

    def number(literal: str) -> float:
        value = _finite(literal)
        if is_inexact(literal, value):
            inexact.append(literal)
        return value

    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=number)
    except json.JSONDecodeError as error:
        raise _not_json(text, error) from error
    except Unparsable as error:
        raise _placed(text, error) from error
    except ValueError as error:  # CPython refuses integers of more than 4300 digits
        raise Unparsable("number_not_finite", "an integer has thousands of digits", is_json=True) from error
    if len(text) > NEVER_SPRAWLS and sprawls(value):
        raise Unparsable("json_too_large", "the answer has too many values below long keys", is_json=True)
    return Read(value, bool(inexact) or _LONG_INTEGER.search(text) is not None)


def sprawls(value: JsonValue) -> bool:
    """Whether the JSON pointers of all values inside one have more than MAX_POINTERS characters together."""
    total, todo = 0, [(value, 0)]
    while todo and total <= MAX_POINTERS:
        item, length = todo.pop()
        total += length
        if isinstance(item, dict):
            todo += [(child, length + 1 + len(key)) for key, child in item.items()]
        elif isinstance(item, list):
            digits = len(str(len(item)))
            todo += [(child, length + 1 + digits) for child in item]
    return total > MAX_POINTERS


def strict_decoder() -> json.JSONDecoder:
    """A decoder of single values in a text that is within bounds; it raises ValueError for all that `loads` refuses."""
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def is_inexact(literal: str, value: float) -> bool:
    """Whether the shortest decimal of a double is not the decimal that the text gives."""
    if len(literal) <= SURE_DIGITS and abs(value) > _SMALLEST_NORMAL:
        return False
    return Decimal(literal) != Decimal(repr(value))


def check_bounds(text: str) -> None:
    """Refuse text that would cost a parser unbounded memory or stack. Brackets inside strings are not depth.

    Raises:
        Unparsable: with code `json_too_large`.
    """
    if len(text) > MAX_CHARACTERS:
        message = f"the answer has {len(text)} characters; at most {MAX_CHARACTERS} are parsed"
        raise Unparsable("json_too_large", message, is_json=True)
    if is_deeper(text, MAX_DEPTH):
        raise Unparsable("json_too_large", f"the answer nests deeper than {MAX_DEPTH} levels", is_json=True)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        message = f"the key {repeated[:MAX_QUOTED]!r} occurs more than once in one object; raw_text has all its values"
        raise Unparsable("duplicate_key", message, is_json=True)
    return value


def _no_constant(name: str) -> None:
    raise Unparsable("number_not_finite", f"{name} is not a JSON number", name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        message = f"{text[:MAX_QUOTED]} is beyond the range of a double"
        raise Unparsable("number_not_finite", message, text, is_json=True)
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise Unparsable("number_not_finite", f"{text[:MAX_QUOTED]} is too small for a double", text, is_json=True)
    return value


def _placed(text: str, error: Unparsable) -> Unparsable:
    """The same with a JSON pointer; what was raised inside the parser knows only the literal it is about."""
    if error.code == "duplicate_key":
        pointer = repeated_key(text)
    else:
        literal = re.search(rf"(?<![\w.+\-\"]){re.escape(error.pointer)}(?![\w.+\-\"])", text)
        pointer = pointer_at(text, literal.start()) if literal else ""
    return Unparsable(error.code, str(error), pointer, is_json=error.is_json)


def _not_json(text: str, error: json.JSONDecodeError) -> Unparsable:
    """What kind of broken text it is."""
    if not (_BEGINS.match(text) or _OPENER.search(text)):
        return Unparsable("no_json", "the answer holds nothing that begins like JSON")
    if error.msg == "Extra data" and text[error.pos] in "{[" and text.lstrip()[0] in "{[":
        return Unparsable("multiple_json", f"another JSON value begins at character {error.pos}")
    if error.msg in ("Extra data", "Expecting value", "Expecting ',' delimiter"):
        word = _word_at(text, error.pos)
        if LIKE_A_NUMBER.fullmatch(word) and not CANONICAL_NUMBER.fullmatch(word):
            message = f"{word[:MAX_QUOTED]} is not a number as JSON writes it"
            return Unparsable("number_noncanonical", message, pointer_at(text, error.pos))
    return Unparsable("not_json", f"the answer is not JSON: {error.msg} at character {error.pos}")


def _word_at(text: str, position: int) -> str:
    """The word that a character of the text belongs to, 400 characters either way at most."""
    before = _WORD_START.search(text[max(0, position - 400) : position])
    after = _WORD.match(text, position, min(len(text), position + 400))
    return (before[0] if before else "") + (after[0] if after else "")
