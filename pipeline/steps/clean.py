"""Clean: what the job declares under `clean` is done to a document's text; an offset map leads back to the raw text.

`invisible` takes away what nobody sees (see `schema.locales.letters`). `whitespace` makes runs of blanks one blank (or
one tab, if there is a tab among them: tabs part columns), takes blanks from the ends of lines, makes line breaks line
feeds and leaves at most two in a row. `ocr` corrects letters inside numbers, and only where what then stands there is
printed like an amount, a date, a time, or digits on both sides of the letter. Words broken at the end of a line are
left alone: nobody can tell a broken word from one that has a hyphen. docs/normalise.md has the rules with examples.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pipeline.records import Repair
from pipeline.schema.locales.letters import BLANKS, INVISIBLE, stands_for

_SPACES = re.compile(f"[{BLANKS}\r\n]{{2,}}|[^\\S \t\n\x0b\x0c\x1c-\x1f\x85\u2028\u2029]|[ \t](?:\\Z|(?=\n))")
_BREAK = re.compile("\r\n|\r|\n")

_WORDY = r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
"""A letter, digit or underscore; not of Chinese, Japanese or Korean, which stand right beside numbers."""
_NUMBERLIKE = re.compile(
    rf"(?<!{_WORDY})(?<![.,:/'’|#@&+-])"  # nothing that it could be a part of
    r"[0-9OoQlISBZ][0-9OoQlI|SBZ.,:/'’-]*[0-9OoQlISBZ]"
    rf"(?![.,:/'’|-]?{_WORDY}|[|#@&+])"
)
_CERTAIN = str.maketrans("OoQlI|", "000111")
_FORMAL = str.maketrans("OoQlI|SBZ", "000111582")
_GROUPED = r"[0-9]{1,3}(?:[.,'’][0-9]{3})+"
_FORMS = re.compile(
    rf"(?:{_GROUPED}|[0-9]+)[.,][0-9]{{2}}"
    r"|(?:0?[1-9]|[12][0-9]|3[01])([./-])(?:0?[1-9]|1[0-2])\1(?:[0-9]{2}|(?:19|20)[0-9]{2})"
    r"|(?:19|20)[0-9]{2}([./-])(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?"
)
"""Amounts with cents, dates, times."""
_INSIDE = re.compile("[0-9]+(?:[OoQlI]+[0-9]+)+")
_BAR = re.compile(r"(?<=[0-9][.,])\|(?=[0-9])|(?<=[0-9])\|(?=[.,][0-9])")

Edit = tuple[int, int, str]
"""(start, end, what stands there then), not overlapping, in order."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text and, for each of its code points and its end, the offset in the raw text; none if nothing changed.

    `changes` is the number of places that were changed, by kind in `counts`.
    """

    text: str
    offsets: Sequence[int] = ()
    changes: int = 0
    counts: tuple[tuple[str, int], ...] = ()

    def raw_offset(self, offset: int) -> int:
        """The offset in the raw text of an offset in this one, in code points; rises with it."""
        return self.offsets[offset] if self.offsets else offset

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The raw span of [start, end): without what was taken away right after its last code point."""
        if start >= end:
            return self.raw_offset(start), self.raw_offset(start)
        return self.raw_offset(start), self.raw_offset(end - 1) + 1

    def repairs(self) -> tuple[Repair, ...]:
        """The change, for the outcome; empty if there is none."""
        detail = ", ".join(f"{kind}: {count} places" for kind, count in self.counts)
        return (Repair("document_cleaned", detail=detail),) if self.changes else ()


def clean(text: str, kinds: Sequence[str]) -> Cleaned:
    """The text as the model shall see it: each kind in turn. Without a change it is the same object."""
    cleaned = Cleaned(text)
    for kind in kinds:
        cleaned = _edited(cleaned, list(_KINDS[kind](cleaned.text)), kind)
    return cleaned


def _edited(before: Cleaned, edits: Sequence[Edit], kind: str) -> Cleaned:
    if not edits:
        return before
    text = before.text
    old = before.offsets or array("I", range(len(text) + 1))
    pieces: list[str] = []
    offsets, done = array("I"), 0
    for start, end, put in edits:
        pieces += (text[done:start], put)
        offsets.extend(old[done:start])
        at = start
        for character in put:  # what stays is itself; what is new stands for the next that went
            found = text.find(character, at, end)
            at = found if found >= 0 else at
            offsets.append(old[min(at, end - 1)])
            at += 1
        done = end
    pieces.append(text[done:])
    offsets.extend(old[done:])
    return Cleaned("".join(pieces), offsets, before.changes + len(edits), (*before.counts, (kind, len(edits))))


def _invisible(text: str) -> Iterable[Edit]:
    return ((match.start(), match.end(), stands_for(match[0])) for match in INVISIBLE.finditer(text))


def _whitespace(text: str) -> Iterable[Edit]:
    for match in _SPACES.finditer(text):
        run, end = match[0], match.end()
        breaks = _BREAK.findall(run)
        last = re.split("[\r\n]", run)[-1]
        put = "\n" * min(len(breaks), 2)
        if last and end < len(text) and text[end] != "\n":
            put += "\t" if "\t" in last else " "
        if put != run:
            yield match.start(), end, put


def _ocr(text: str) -> Iterable[Edit]:
    for match in _NUMBERLIKE.finditer(text):
        token = match[0]
        digits = sum(character.isdigit() for character in token)
        letters = sum(character.isalpha() for character in token)
        if not digits or not (letters or "|" in token):
            continue
        fixed = _fixed(token, digits, letters)
        yield from (
            (match.start() + index, match.start() + index + 1, new)
            for index, (old, new) in enumerate(zip(token, fixed, strict=True))
            if old != new
        )


def _fixed(token: str, digits: int, letters: int) -> str:
    """A token with its letters as digits, or as it is in doubt."""
    barless = _BAR.sub("1", token)
    formal = barless.translate(_FORMAL)
    if "|" not in barless and digits >= letters and _FORMS.fullmatch(formal):
        return formal
    return token.translate(_CERTAIN) if _INSIDE.fullmatch(token) else token


_KINDS: dict[str, Callable[[str], Iterable[Edit]]] = {"invisible": _invisible, "whitespace": _whitespace, "ocr": _ocr}
