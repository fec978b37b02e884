"""Fuzzy support: the part of a folded document that is most like a folded value.

Likeness is the normalised Indel similarity (1 − edits / both lengths; an edit puts in or takes out one character),
computed by rapidfuzz on whole texts, so that nothing depends on where a window was laid.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.steps.support.fold import Folded

LEAST = 0.85
"""Likeness from which on a text supports a value; docs/grounding.md has the measurement that it was chosen by."""
LEAST_SHORT = 0.9
"""The same for values below SHORT characters."""
SHORT = 12
MIN_LENGTH = 6
"""Shorter values are like too many words."""
MAX_PIECE = 256
"""Longer values are aligned piece by piece; a piece is a few times as cheap as the whole."""
MAX_PIECES = 16
_SLACK = 0.1
"""How much less alike a place may be before it is widened to whole words, and one piece among others."""
_STRETCH = 1.25
"""How much longer than the value the place of all pieces may be."""
MAX_WORK = 80_000_000
"""Document characters × 64-character blocks of values, about 0.15 s: what one record may cost."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The most similar part [`start`, `end`) of the folded document; `start` is -1 if none is similar enough."""

    start: int
    end: int
    work: int


def least_of(length: int) -> float:
    """The likeness that a value of so many folded characters needs."""
    return LEAST if length >= SHORT else LEAST_SHORT


def likeness(one: str, other: str) -> float:
    """The normalised Indel similarity, from 0 to 1."""
    from rapidfuzz import fuzz

    return fuzz.ratio(one, other) / 100


def align(needle: str, document: Folded, low: int, high: int, least: float) -> Alignment:
    """The part of [`low`, `high`) of the document that is most like a value, if it is about as alike as `least`."""
    if not MIN_LENGTH <= len(needle) <= MAX_PIECE * MAX_PIECES or low >= high:
        return Alignment(-1, -1, 0)
    hay = document.text[low:high]
    count = -(-len(needle) // MAX_PIECE)
    size = -(-len(needle) // count)
    cutoff, places, work = 100 * (least - _SLACK), [], 0
    for start in range(0, len(needle), size):
        piece = needle[start : start + size]
        work += len(hay) * (1 + len(piece) // 64)
        place = _place(piece, hay, cutoff)
        if place is None:
            return Alignment(-1, -1, work)
        places.append(place)
    first, last = min(place[0] for place in places), max(place[1] for place in places)
    if last - first > max(_STRETCH * len(needle), len(needle) + 8):
        return Alignment(-1, -1, work)
    return Alignment(low + first, low + last, work)


def _place(piece: str, hay: str, cutoff: float) -> tuple[int, int] | None:
    from rapidfuzz import fuzz

    if len(piece) > len(hay):  # rapidfuzz would look for the document in the value
        return (0, len(hay)) if fuzz.ratio(piece, hay) >= cutoff else None
    found = fuzz.partial_ratio_alignment(piece, hay, score_cutoff=cutoff)
    return _trimmed(piece, hay, found.dest_start, found.dest_end) if found else None


def _trimmed(piece: str, hay: str, start: int, end: int) -> tuple[int, int]:
    """A window without what stands at its ends and not in the piece: windows are as long as the piece, whatever was
    left out or put in."""
    from rapidfuzz.distance import Indel

    same = [block for block in Indel.opcodes(piece, hay[start:end]) if block.tag == "equal"]
    return (start + same[0].dest_start, start + same[-1].dest_end) if same else (start, end)


def is_identifier(value: str) -> bool:
    """Whether every character counts: a code, an address of mail or of a page, a path. Similar ones are others."""
    return not any(map(str.isspace, value)) and any(sign.isdigit() or sign in "@:/\\_" for sign in value)
