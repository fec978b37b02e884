"""What comparing two subschemas gives: findings, and pairs of subschemas that are still to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pipeline.schema.drift.report import Class

ABSENT: Any = object()
"""Stands for "nothing there", where None is a value."""

FREE: dict[str, Any] = {}
"""The one schema that stands for "anything goes": known by identity, so that it is not looked into for ever."""

Turn = Literal["same", "flip", "exact"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference below a pair: `steps` are reference tokens from it.

    `keeps`: every old value is still accepted; `adds_nothing`: no new value is accepted. `readers` overrides what a
    reader's class would be by these two. `why` adds to the kind's own.
    """

    kind: str
    steps: tuple[str, ...]
    before: Any = ABSENT
    after: Any = ABSENT
    keeps: bool = True
    adds_nothing: bool = True
    readers: Class | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two subschemas to compare. `turn`: what a change means for the parent: the same, the reverse (`not`), or nothing
    that can be told (`exact`). `in_place`: they judge the same value as the parent, which then knows what they have
    evaluated."""

    old: Any
    new: Any
    steps: tuple[str, ...]
    turn: Turn = "same"
    in_place: bool = False


Found = Finding | Pair


def presence(kind: str, keyword: str, old: Any, new: Any) -> Finding:
    """A condition that is there on one side only: `kind` is `constraint`, or the start of another `…_added` pair."""
    if old is ABSENT:
        return Finding(f"{kind}_added", (keyword,), ABSENT, new, keeps=False)
    return Finding(f"{kind}_removed", (keyword,), old, ABSENT, adds_nothing=False)
