"""Cite: passages of a document get ids that a model can name, and what it names is read back.

An id stands in brackets before its passage, as in `[L12] Total 40.00`. Its letters are chosen so that the document
itself holds no such bracket: whoever writes `[L3]` into a document only makes the ids `[La1]`, `[La2]` …
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, product
from string import ascii_lowercase

from pipeline.records import JsonValue

MAX_RANGE = 200
"""Passages that `L3-L9` may name."""
MAX_CITED = 1000
"""Characters of one citation that are read."""
MAX_WORD = 40
"""Characters of an unknown id that are kept."""

_LETTERS = {"lines": "L", "paragraphs": "P"}
_TAKEN = re.compile(r"[\[【][\W_]{0,8}([A-Za-z]+)[\W_]{0,8}\d")
"""What a reader may take for an id, also with blanks or signs of width zero in it."""
_BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_ID = re.compile(r"([A-Za-z]*)0*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of a text: passage n (from 1 on) is [`starts[n-1]`, `ends[n-1]`), and its id `letters` + n."""

    letters: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Cited:
    """What a citation names: numbers of passages, and words that are no id of one."""

    numbers: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


def passages(text: str, kind: str) -> Passages:
    """The `lines` or `paragraphs` of a text that hold anything visible; none for any other kind."""
    if kind not in _LETTERS:
        return Passages("")
    spans = _lines(text) if kind == "lines" else _paragraphs(text)
    seen = [(start, end) for start, end in spans if not text[start:end].isspace() and start < end]
    return Passages(_free(_LETTERS[kind], text), tuple(s for s, _ in seen), tuple(e for _, e in seen))


def numbered(text: str, given: Passages) -> str:
    """The text with the id of each passage before it; nothing else is changed."""
    parts, before = [], 0
    for number, start in enumerate(given.starts, 1):
        parts += [text[before:start], f"[{given.letters}{number}] "]
        before = start
    return "".join([*parts, text[before:]])


def told_of(given: Passages, kind: str) -> str:
    """What the model is told about the ids; nothing of the document is in it."""
    first, last = f"{given.letters}1", f"{given.letters}{len(given)}"
    each = "line" if kind == "lines" else "paragraph"
    return (
        f"Each {each} of the document begins with its id in brackets, from [{first}] to [{last}]. Cite ids as {first}."
    )


def cited(given: Passages, value: JsonValue) -> Cited:
    """The passages that a value cites: a number, an id with or without brackets, several, or a range of them."""
    if value is None or value == "":
        return Cited()
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            Cited((value,))
            if 1 <= value <= len(given)
            else Cited(unknown=(str(value) if abs(value) < 10**MAX_WORD else "a huge number",))
        )
    if not isinstance(value, str):
        return Cited(unknown=(str(value)[:MAX_WORD],))
    words = _words(value[:MAX_CITED])
    numbers: list[int] = []
    unknown: list[str] = []
    for word in words:
        named = list(_named(given, word))
        numbers += named
        if not named:
            unknown.append(word[:MAX_WORD])
    return Cited(tuple(sorted(set(numbers))), tuple(unknown))


def regions(given: Passages, numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Where passages stand; those that follow each other are one region, since a value may be broken over them."""
    found: list[tuple[int, int]] = []
    for index, number in enumerate(numbers):
        follows = index > 0 and numbers[index - 1] == number - 1
        start = found.pop()[0] if follows else given.starts[number - 1]
        found.append((start, given.ends[number - 1]))
    return found


def _words(value: str) -> list[str]:
    spread = re.sub(r"\s*[-–—]\s*", "-", re.sub(r"[\[\]()【】［］]", " ", value))
    return [word for word in re.split(r"[\s,;，；、]+", spread) if word]


def _named(given: Passages, word: str) -> Iterator[int]:
    """The passages of one id or range; nothing if any of it was not given."""
    ends = [_ID.fullmatch(part) for part in word.split("-")]
    known = [
        int(end[2])
        for end in ends
        if end and end[1].lower() in ("", given.letters.lower()) and int(end[2]) <= len(given)
    ]
    if len(known) != len(ends) or len(ends) > 2 or min(known) < 1:
        return
    if 0 <= known[-1] - known[0] < MAX_RANGE:
        yield from range(known[0], known[-1] + 1)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, start + len(line.rstrip())
        start += len(line)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BLANK_LINE.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _free(letter: str, text: str) -> str:
    """Letters that stand before a digit in no bracket of the text."""
    taken = {match.lower() for match in _TAKEN.findall(unicodedata.normalize("NFKC", text))}
    tails = ("".join(more) for length in count() for more in product(ascii_lowercase, repeat=length))
    return next(letters for tail in tails if (letters := letter + tail).lower() not in taken)
