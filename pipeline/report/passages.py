"""Passages: the part of a document or of an answer that shows a problem, with what matters in it marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.records import Problem
from pipeline.steps.answer.spans import scan
from pipeline.steps.codes import CODES

AROUND = 320
"""Characters that are kept before and after what is marked."""
MOST = 1200
"""Characters of a passage at most."""

Kind = Literal["text", "mark", "gap", "end"]


@dataclass(frozen=True, slots=True)
class Passage:
    """Pieces of a text in order: plain, marked, `gap` (left out: the text is a number of characters), or `end` (where
    an answer stops, with why)."""

    pieces: tuple[tuple[Kind, str], ...]

    @property
    def marked(self) -> bool:
        return any(kind == "mark" for kind, _ in self.pieces)


def passage(text: str, marks: Sequence[tuple[int, int]] = (), end: str = "") -> Passage:
    """The passage of a text around its marks, [start, end) in code points, of which those outside the text or that
    overlap an earlier one are left out; without marks, its beginning. `end` says why the text stops where it does."""
    marks = _apart([(start, stop) for start, stop in sorted(marks) if 0 <= start < stop <= len(text)])
    first = max(0, marks[0][0] - AROUND) if marks else 0
    last = min(len(text), first + MOST)
    pieces: list[tuple[Kind, str]] = [_gap(first)]
    place = first
    for start, stop in marks:
        if start >= last:
            break
        pieces += [("text", text[place:start]), ("mark", text[start : min(stop, last)])]
        place = min(stop, last)
    return _passage(*pieces, ("text", text[place:last]), _gap(len(text) - last) if last < len(text) else ("end", end))


def _gap(characters: int) -> tuple[Kind, str]:
    return "gap", f"{characters:,}" if characters else ""


def _passage(*pieces: tuple[Kind, str]) -> Passage:
    return Passage(tuple((kind, piece.replace("\r\n", "\n")) for kind, piece in pieces if piece))


def _last(text: str, end: str) -> Passage:
    """The end of a text."""
    first = max(0, len(text) - MOST)
    return _passage(_gap(first), ("text", text[first:]), ("end", end))


def _broken(text: str, at: int, end: str) -> Passage:
    """The passage of a text around the place from which it is no JSON."""
    first = max(0, at - AROUND)
    last = min(len(text), first + MOST)
    halves: tuple[tuple[Kind, str], ...] = (
        ("text", text[first:at]),
        ("end", "no JSON from here"),
        ("text", text[at:last]),
    )
    return _passage(_gap(first), *halves, _gap(len(text) - last) if last < len(text) else ("end", end))


def in_document(text: str, spans: Sequence[tuple[int, int]]) -> Passage:
    """The passage of a document around what supports the values at a problem's place."""
    return passage(text, spans)


def in_answer(raw: str, problem: Problem, finish_reason: str) -> Passage:
    """The passage of an answer around the value at a problem's place; where it stopped being JSON, for an answer that
    is none; its end, for one that was cut."""
    if not raw:
        return Passage(())
    end = "" if finish_reason in ("", "stop") else f"stops here: {finish_reason}"
    found = scan(raw)
    below = f"{problem.pointer}/"
    if problem.pointer and CODES[problem.code].layer not in ("read", "engine"):
        spans = [span for place, span in found.spans.items() if place == problem.pointer or place.startswith(below)]
        if spans:
            return passage(raw, [(min(start for start, _ in spans), max(stop for _, stop in spans))], end)
    if finish_reason == "length":
        return _last(raw, end)
    if CODES[problem.code].layer == "parse" and not found.whole and found.end < len(raw):
        return _broken(raw, found.end, end)
    return passage(raw, (), end)


def _apart(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, stop in marks:
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
    return kept
