"""Where a span may begin and end: with words, numbers and characters, not inside of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from pipeline.steps.support.fold import cuts_character, is_bounded, is_mark
from pipeline.steps.support.numbers import stands_free

MAX_WORD = 40
"""Characters by which a span is widened at most to where a word ends."""

MAX_TRIES = 256
"""Places looked at for one value, most of which are inside of words, before a slower search is asked."""

WHOLE: Final = 2
WEAK: Final = 1
"""Between a digit and a letter, as in 12kg."""
NO: Final = 0


def occurrences(text: str, value: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Where a text stands between two offsets, those inside of words among them: the first MAX_TRIES."""
    start = low - 1
    for _ in range(MAX_TRIES):
        start = text.find(value, start + 1, high)
        if start < 0:
            return
        yield start, start + len(value)


def apart(text: str, value: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Where a text stands between two offsets and is not, as far as ASCII tells, inside of a word: the first MAX_TRIES.
    What stands before is asked first, so that a text of one letter costs no more than any other."""
    left = r"(?<![^\W_])" if is_bounded(value[0]) and value[0].isascii() else ""
    right = r"(?![A-Za-z0-9])" if is_bounded(value[-1]) else ""
    found = re.compile(left + re.escape(value) + right).finditer(text, low, high)
    yield from (match.span() for match in islice(found, MAX_TRIES))


def standing(text: str, start: int, end: int) -> int:
    """How well a span keeps to the ends of words, numbers and characters."""
    if cuts_character(text, start) or (cuts_character(text, end) and not _selects(text, end)):
        return NO
    before, last = _letter_before(text, start), _letter_before(text, end)
    first, after = text[start], text[end : end + 1]
    worst = WHOLE
    if before and is_bounded(before) and is_bounded(first):
        if before.isdigit() == first.isdigit():
            return NO
        worst = WEAK
    if after and is_bounded(after) and is_bounded(last):
        if after.isdigit() == last.isdigit():
            return NO
        worst = WEAK
    if after and after in "+#" and is_bounded(last) and not text[end + 1 : end + 2].isalnum():
        return NO  # C is not C++
    if worst == WEAK and _is_code(text[start:end]):
        return NO  # A12 is not A12B
    if first.isdigit() and not (_free_left(text, start) and (worst == WHOLE or stands_free(text, start, end))):
        return NO
    return worst if not last.isdigit() or _free_right(text, end) else NO


def _letter_before(text: str, offset: int) -> str:
    """The character before an offset, without the marks that combine with it; empty at the beginning."""
    first = max(0, offset - MAX_WORD)
    while offset > first and is_mark(text[offset - 1]):
        offset -= 1
    return text[offset - 1 : offset]


def _is_code(span: str) -> bool:
    """Whether letters and digits stand together without a blank."""
    return any(map(str.isdigit, span)) and any(map(str.isalpha, span)) and not any(map(str.isspace, span))


def _free_left(text: str, start: int) -> bool:
    return not (start > 1 and text[start - 1] in ".," and text[start - 2].isdigit())


def _free_right(text: str, end: int) -> bool:
    return not (end + 1 < len(text) and text[end] in ".," and text[end + 1].isdigit())


def _selects(text: str, end: int) -> bool:
    return "\ufe00" <= text[end] <= "\ufe0f"


def to_end(text: str, end: int) -> int:
    """The end of a span with the variation selector that belongs to its last character."""
    return end + 1 if end < len(text) and is_mark(text[end]) and _selects(text, end) else end


def to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A span widened to the ends of the words that it cuts."""
    first, last = max(0, start - MAX_WORD), min(len(text), end + MAX_WORD)
    while start > first and (cuts_character(text, start) or _joined(text, start)):
        start -= 1
    while end < last and (cuts_character(text, end) or _joined(text, end)):
        end += 1
    return start, end


def _joined(text: str, offset: int) -> bool:
    return is_bounded(_letter_before(text, offset) or " ") and is_bounded(text[offset])
