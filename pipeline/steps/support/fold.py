"""Folding: texts that differ only in case, width, blanks, line breaks, hyphenation or punctuation fold to one text.

Offsets lead back to the text that was folded. Where words end is asked of that text, which still has its blanks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

_KEPT = "$%+<=>&@#"
"""ASCII characters without which another thing is meant: C++, 5 %, R&D, >= 2."""
_PIECE = re.compile(
    rf"[A-Za-z0-9\u4e00-\u9fff]+(?![\u0300-\u036f])|[A-Za-z0-9]?[^\x00-\x7f]+|[A-Za-z0-9{re.escape(_KEPT)}]"
)
_STEADY = re.compile(r"[A-Za-z0-9\u4e00-\u9fff]+")
_TRADE_MARKS = "™®©℠"
_JOINER = "\u200d"
_UNBOUNDED = re.compile(
    "[\u0590-\u08ff\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufdff]|[\U00020000-\U0003ffff]"
)
"""Scripts that write words without blanks between them, or join particles to them: a word may end anywhere."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text. Run i of it, from `at[i]` on, comes from [`starts[i]`, `ends[i]`) of the text before."""

    text: str
    at: list[int]
    starts: list[int]
    ends: list[int]

    def span(self, start: int, end: int, *, whole: bool = False) -> tuple[int, int] | None:
        """Where a part of the folded text stood; None if it begins or ends within what was one character, unless the
        `whole` character is wanted then."""
        first, last = bisect_right(self.at, start) - 1, bisect_right(self.at, end - 1) - 1
        inside, left = start - self.at[first], end - self.at[last]
        if inside and not self._steady(first):
            if not whole:
                return None
            inside = 0
        if left < self._length(last) and not self._steady(last) and not whole:
            return None
        return self.starts[first] + inside, self.starts[last] + left if self._steady(last) else self.ends[last]

    def index(self, offset: int) -> int:
        """The first folded offset that comes from an offset or from behind it."""
        run = bisect_right(self.starts, offset) - 1
        if run < 0:
            return 0
        return self.at[run] + min(offset - self.starts[run], self._length(run))

    def _length(self, run: int) -> int:
        return (self.at[run + 1] if run + 1 < len(self.at) else len(self.text)) - self.at[run]

    def _steady(self, run: int) -> bool:
        return self._length(run) == self.ends[run] - self.starts[run]


def fold(text: str) -> Folded:
    """Letters and digits in one case and width (NFKC, case folding), and the symbols that carry meaning."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece.isascii() or _STEADY.fullmatch(piece):
            out.append(piece.lower())
            starts.append(match.start())
            ends.append(match.end())
            continue
        for part, start, end in _clusters(piece, match.start()):
            if part:
                out.append(part)
                starts.append(start)
                ends.append(end)
    return Folded("".join(out), [0, *accumulate(map(len, out))][:-1], starts, ends)


def _clusters(piece: str, offset: int) -> list[tuple[str, int, int]]:
    """A base character with its combining marks is folded as one, since marks compose with what they stand on."""
    found, start = [], 0
    for index in range(1, len(piece) + 1):
        if index == len(piece) or not is_mark(piece[index]):
            found.append((_folded(piece[start:index]), offset + start, offset + index))
            start = index
    return found


@lru_cache(maxsize=16384)
def _folded(cluster: str) -> str:
    if cluster[0] in _TRADE_MARKS:
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(character for character in folded if _kept(character))


def _kept(character: str) -> bool:
    kind = unicodedata.category(character)
    if character in _KEPT:
        return True
    return (kind[0] in "LNS" and kind != "Sk") or (kind[0] == "M" and not _is_selector(character))


@lru_cache(maxsize=4096)
def is_mark(character: str) -> bool:
    """Whether a character belongs to the one before it: combining marks, variation selectors, skin tones."""
    return unicodedata.category(character)[0] == "M" or "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or character == "\u20e3"


@lru_cache(maxsize=16384)
def is_bounded(character: str) -> bool:
    """Whether a character is part of words that have blanks or punctuation around them."""
    return character.isalnum() and not _UNBOUNDED.match(character)


def cuts_character(text: str, offset: int) -> bool:
    """Whether what a reader sees as one character stands on both sides of an offset."""
    if offset <= 0 or offset >= len(text):
        return False
    before, after = text[offset - 1], text[offset]
    if after < "\u0300" and before < "\u0300":
        return False
    if is_mark(after) or _JOINER in (before, after):
        return True
    return _is_flag(before) and _is_flag(after) and _flags_before(text, offset) % 2 == 1


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, offset: int) -> int:
    count = 0
    while count < min(offset, 64) and _is_flag(text[offset - 1 - count]):
        count += 1
    return count


_MAX_SHORT = 2
"""Letters of which only the exact form counts: another case of `A` or `US` is another word."""
_SIGNED = re.compile(r"[-−(]\s?[^\w\s]?\s?\d")


def foldable(value: str) -> bool:
    """Whether a value counts in another form, too: not a signed number, nor one or two letters."""
    if _SIGNED.match(value):
        return False
    letters = [character for character in value if character.isalnum()]
    return len(letters) > _MAX_SHORT or not all(map(is_bounded, letters))


_GROUPS = re.compile(r"\d+")
_PHONE = 7
"""So many digits are one thing however they are grouped: telephone, account and register numbers."""


def same_digits(one: str, other: str) -> bool:
    """Whether two texts hold the same numbers: 12 is not 1 2, 9.00 is not 900, but 9,00 and 0355-1234 are 9.00 and
    03551234."""
    if one.isascii() and other.isascii():
        first, second = one, other
    else:
        first, second = unicodedata.normalize("NFKC", one), unicodedata.normalize("NFKC", other)
    groups, others = _GROUPS.findall(first), _GROUPS.findall(second)
    gaps, gaps_other = _GROUPS.split(first)[1:-1], _GROUPS.split(second)[1:-1]
    if groups == others:
        return all(_alike(gap, gap_other) for gap, gap_other in zip(gaps, gaps_other, strict=True))
    whole = "".join(groups)
    marked = any(gap in (".", ",") for gap in (*gaps, *gaps_other))
    return len(whole) >= _PHONE and whole == "".join(others) and not marked


def _alike(gap: str, other: str) -> bool:
    """A mark between two digits makes them one number, so it has to be there in both."""
    if gap in (".", ",") or other in (".", ","):
        return bool(set(gap) & set(".,")) and bool(set(other) & set(".,"))
    return True
