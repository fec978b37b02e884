"""Walks: random answers under a matcher, to see whether every state that it lets one into has a way to the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.schema.probe.verdict import Matcher, is_allowed

End = Literal["finished", "cut", "dead_end", "error"]
Choose = Callable[[Any], int | None]
"""From a packed mask to a token that it allows; None if there is none."""

MAX_TOKENS = 600


@dataclass(frozen=True, slots=True)
class Walk:
    """One random answer. `cut`: it was still going on after the most tokens that it was given, which proves nothing."""

    end: End
    tokens: tuple[int, ...]
    words: str = ""


def walk(matcher: Matcher, choose: Choose, end_ids: Collection[int], most: int = MAX_TOKENS) -> Walk:
    """Choose tokens until the end token comes. `choose` should come to an end by itself."""
    tokens: list[int] = []
    words = matcher.error()
    while not words and len(tokens) < most:
        mask = matcher.mask()
        words = matcher.error()
        token = None if words else choose(mask)
        if words or token is None or not is_allowed(mask, token):
            break
        if token in end_ids:
            return Walk("finished" if matcher.finished() else "dead_end", tuple(tokens))
        if not matcher.accept(token):
            return Walk("dead_end", tuple(tokens), f"token {token} is allowed but not accepted")
        tokens.append(token)
    if words:
        return Walk("error", tuple(tokens), words)
    if matcher.finished():
        return Walk("finished", tuple(tokens))
    return Walk("cut" if len(tokens) >= most else "dead_end", tuple(tokens))


def walks(
    matcher_of: Callable[[], Matcher],
    chooser_of: Callable[[int], Choose],
    end_ids: Collection[int],
    count: int,
    most: int = MAX_TOKENS,
) -> tuple[Counter[End], tuple[Walk, ...]]:
    """How many seeded walks ended how, and the walks. `chooser_of(seed)` gives the choices of one answer."""
    made = tuple(walk(matcher_of(), chooser_of(seed), end_ids, most) for seed in range(count))
    return Counter(one.end for one in made), made
