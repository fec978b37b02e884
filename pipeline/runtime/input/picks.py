"""Picks: which rows of a span belong to a unit, as text that costs about three bytes a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_PICKS = re.compile(r"(\d+(x\d+)?( \d+(x\d+)?)*)?")


def packed(rows: Sequence[int]) -> str:
    """Ascending numbers as text: for each run of them the gap before it, and its length if it is not one.

    0, 1, 2, 5, 9 becomes `0x3 2 3`.
    """
    runs: list[list[int]] = []
    for before, row in pairwise((-1, *rows)):
        if runs and row == before + 1:
            runs[-1][1] += 1
        else:
            runs.append([row - before - 1, 1])
    return " ".join(str(gap) if length == 1 else f"{gap}x{length}" for gap, length in runs)


def unpacked(text: str, count: int) -> list[int]:
    """The `count` numbers that the text stands for.

    Raises:
        ValueError: it stands for others, or for none.
    """
    if not isinstance(text, str) or not _PICKS.fullmatch(text):
        raise ValueError("picks that are none")
    runs = [(int(gap), int(length or 1)) for gap, _, length in (run.partition("x") for run in text.split())]
    if sum(length for _, length in runs) != count:
        raise ValueError(f"picks that are not {count} rows")
    return list(_numbers(runs))


def _numbers(runs: Iterable[tuple[int, int]]) -> Iterable[int]:
    at = 0
    for gap, length in runs:
        at += gap
        yield from range(at, at + length)
        at += length
