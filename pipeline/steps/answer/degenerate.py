"""Degenerate: why an answer that was cut would not end. Only failures are classified here, never a finished answer.

A tail is periodic if the text ends with the same block several times over; the block may be a character, a string,
an object or half of two. Blocks that differ in a counter are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

MIN_BLANKS = 64
"""More blanks than any indentation of what is parsed."""
MIN_TAIL = 200
MIN_REPEATS = 3
MIN_REPEATS_OF_SHORT = 24
SHORT = 12
"""A block of so few characters, such as `0.0, `, may well stand in a list a dozen times in a row."""
MAX_TRIES = 400
"""Distances that are looked at. The same ending is rare outside of loops, so this bounds the hostile case only."""
_ENDING = 24
_ENDING_IF_SURE = 6


@dataclass(frozen=True, slots=True)
class Tail:
    """text[start:] repeats a block of `period` characters."""

    start: int
    period: int

    @property
    def second(self) -> int:
        """Where the block begins for the second time."""
        return self.start + self.period


def trailing_blanks(text: str) -> int:
    """How many blanks a text ends with."""
    return len(text) - len(text.rstrip())


def periodic_tail(text: str, *, sure: bool = False) -> Tail | None:
    """The repetition that a text ends with, the one of the shortest block; None if it is none.

    `sure`: it is known that there is one, so fewer repetitions are enough.
    """
    size, period = len(text), 0
    ending = _ENDING_IF_SURE if sure else _ENDING
    for _ in range(MAX_TRIES):
        period = _next_distance(text, text[-ending:], period)
        if period == 0 or 2 * period > size:
            return None
        if text[size - period :] != text[size - 2 * period : size - period]:
            continue
        run = period + _common_ending(text, size - period)
        if _is_loop(period, run, sure):
            return Tail(size - run, period)
        period = run - period  # up to here all other distances at which the text repeats are multiples of this one
    return None


def _is_loop(period: int, run: int, sure: bool) -> bool:
    if sure:
        return run >= MIN_REPEATS * period
    repeats = MIN_REPEATS_OF_SHORT if period < SHORT else MIN_REPEATS
    return run >= MIN_TAIL and run >= repeats * period


def _next_distance(text: str, ending: str, distance: int) -> int:
    """The next greater distance at which the ending of the text stands before, 0 if it does nowhere."""
    found = text.rfind(ending, 0, len(text) - distance - 1)
    return len(text) - len(ending) - found if found >= 0 else 0


def _common_ending(text: str, end: int) -> int:
    """How many characters before `end` are those before the end of the text: doubled while it holds, then halved."""
    size, known, step = len(text), 0, 64
    while step:
        reach = known + step
        same = reach <= end and text[size - reach : size - known] == text[end - reach : end - known]
        if same:
            known = reach
            step *= 2
        else:
            step //= 2
    return known
