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


def passage(text: str, marks: Sequence[tuple[int, int]] = (), end: str = "", at: int | None = None) -> Passage:
    """The passage of a text around its marks, [start, end) in code points, of which those outside the text or that
    overlap an earlier one are left out. Without marks: around `at`, or from the beginning. `end` says why the text
    stops where it does."""
    marks = _apart([(start, stop) for start, stop in sorted(marks) if 0 <= start < stop <= len(text)])
    if marks:
        first = max(0, marks[0][0] - AROUND)
        last = min(len(text), max(stop for _, stop in marks) + AROUND, first + MOST)
    else:
        first = max(0, (at or 0) - AROUND) if at is not None else 0
        last = min(len(text), first + MOST)
    pieces: list[tuple[Kind, str]] = [("gap", f"{first:,}")] if first else []
    place = first
    for start, stop in marks:
        if start >= last:
            break
        pieces += [("text", text[place:start]), ("mark", text[start : min(stop, last)])]
        place = min(stop, last)
    pieces.append(("text", text[place:last]))
    if last < len(text):
        pieces.append(("gap", f"{len(text) - last:,}"))
    elif end:
        pieces.append(("end", end))
    return Passage(tuple((kind, piece.replace("\r\n", "\n")) for kind, piece in pieces if piece))


def in_document(text: str, spans: Sequence[tuple[int, int]]) -> Passage:
    """The passage of a document around what supports the values at a problem's place."""
    return passage(text, spans)


def in_answer(raw: str, problem: Problem, finish_reason: str) -> Passage:
    """The passage of an answer around the value at a problem's place; where it stopped being JSON, for an answer that
    is none; its end, for one that was cut."""
    end = "" if finish_reason in ("", "stop") else f"stops here: {finish_reason}"
    found = scan(raw)
    below = f"{problem.pointer}/"
    if problem.pointer and CODES[problem.code].layer not in ("read", "engine"):
        spans = [span for place, span in found.spans.items() if place == problem.pointer or place.startswith(below)]
        if spans:
            return passage(raw, [(min(start for start, _ in spans), max(stop for _, stop in spans))], end)
    if finish_reason == "length" or (CODES[problem.code].layer == "parse" and not found.whole):
        return passage(raw, (), end, at=min(found.end, len(raw)) if found.end else None)
    return passage(raw, (), end)


def _apart(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, stop in marks:
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
    return kept
