"""Meet: whether some string satisfies several patterns and a length together.

A grammar for strings that cannot be is refused by one back end and a dead end in the other, so it has to be known
before. The trees are walked side by side as automata: their linear forms (Antimirov, "Partial derivatives of regular
expressions", 1996) say which characters may come first and what is left of the tree behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import product

from pipeline.schema.pattern.ast import (
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Node,
    Repeat,
    Seq,
    intersection,
    nullable,
    repeat,
    seq,
)
from pipeline.schema.pattern.length import any_string, lengths

MAX_STEPS = 3000
"""Pairs of states that are looked at before the question is left open."""


def meet(nodes: Sequence[Node], minimum: int, maximum: int | None) -> bool | None:
    """Whether a string of so many code points is a member of all trees; None if MAX_STEPS do not tell."""
    if NOTHING in nodes or (maximum is not None and maximum < minimum):
        return False
    for node in nodes:
        low, high = lengths(node)
        if (maximum is not None and low > maximum) or (high is not None and high < minimum):
            return False
    sides = [node for node in nodes if node != any_string(0, None)]
    if not sides or (len(sides) == 1 and minimum == 0 and maximum is None):
        return True
    return _walked((*sides, any_string(minimum, maximum)))


def _walked(start: tuple[Node, ...]) -> bool | None:
    seen = {start}
    queue = deque([start])
    steps = 0
    while queue:
        state = queue.popleft()
        if all(map(nullable, state)):
            return True
        for choice in product(*(list(_linear(node)) for node in state)):
            steps += 1
            if steps > MAX_STEPS:
                return None
            common = choice[0][0]
            for first, _ in choice[1:]:
                common = intersection(common, first)
            after = tuple(rest for _, rest in choice)
            if common != NOTHING and after not in seen:
                seen.add(after)
                queue.append(after)
    return False


def _linear(node: Node) -> Iterator[tuple[Chars, Node]]:
    """The ways to take one character off the front: (which characters, what has to follow)."""
    if isinstance(node, Chars):
        if node != NOTHING:
            yield node, EMPTY
    elif isinstance(node, Alt):
        for option in node.options:
            yield from _linear(option)
    elif isinstance(node, Repeat):
        left = None if node.maximum is None else node.maximum - 1
        rest = repeat(node.item, max(0, node.minimum - 1), left)
        for first, after in _linear(node.item):
            yield first, seq(after, rest)
    else:
        yield from _linear_seq(node)


def _linear_seq(node: Seq) -> Iterator[tuple[Chars, Node]]:
    for index, item in enumerate(node.items):
        for first, after in _linear(item):
            yield first, seq(after, *node.items[index + 1 :])
        if not nullable(item):
            return
