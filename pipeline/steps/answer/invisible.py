"""Characters that a reader does not see: control, zero-width and bidirectional ones, and fillers.

Some are part of how a text is written, and are not meant: tabs and line ends; a zero-width (non-)joiner after a letter
or mark of a script that joins (Arabic to Thaana, the scripts of India, Myanmar, Khmer, Mongolian); a joiner between
two emoji; one variation selector after a visible character; tag characters after the black flag, as in flags of
regions. Marks of direction (U+200E, U+200F, U+061C, U+202A-E, U+2066-9) are always meant: they change what is seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pipeline.records import JsonValue
from pipeline.schema.walk import escape

_SUSPECT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]|\r(?!\n)"
)
_JOINERS = "\u200c\u200d"
_JOINING_SCRIPTS = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ua840-\ua87f]")
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]*\\Z")


def invisible(text: str) -> str | None:
    """The first invisible character that a text should not hold, as `U+200B`, or None."""
    if text.isascii() and text.isprintable():
        return None
    for match in _SUSPECT.finditer(text):
        if not _belongs(text, match.start()):
            return f"U+{ord(match[0]):04X}"
    return None


def invisible_places(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(JSON pointer, character) of the texts of a value, and of its keys, that hold one. Pointers are made for these
    only: a long key above many items would cost its square."""
    if isinstance(value, str):
        found = invisible(value)
        if found:
            yield _joined(path), found
    elif isinstance(value, dict):
        for key, child in value.items():
            here = (*path, key)
            found = invisible(key)
            if found:
                yield _joined(here), f"{found} in the key"
            yield from invisible_places(child, here)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from invisible_places(child, (*path, str(index)))


def _joined(path: tuple[str, ...]) -> str:
    return "".join(f"/{escape(step)}" for step in path)


def _belongs(text: str, position: int) -> bool:
    character, before, after = text[position], text[position - 1 : position], text[position + 1 : position + 2]
    if not before:
        return False
    if character in _JOINERS:
        joins = _JOINING_SCRIPTS.match(before) or (character == "\u200c" and after and _JOINING_SCRIPTS.match(after))
        return bool(joins) or (character == "\u200d" and _is_emoji(before) and bool(after) and _is_emoji(after))
    if _SELECTOR.match(character):
        return not _SUSPECT.match(before) and not before.isspace()
    if "\U000e0020" <= character <= "\U000e007f":
        return _FLAG.search(text, max(0, position - 8), position) is not None
    return False


def _is_emoji(character: str) -> bool:
    """Roughly: a symbol that is a picture, a skin tone, or the selector that makes one of a text symbol."""
    return unicodedata.category(character) in ("So", "Sk") or character in "\ufe0f\u2640\u2642\u20e3"
