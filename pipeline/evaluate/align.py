"""Align: which item that was found stands for which that was expected, whatever the order of the two lists.

Equal items are paired first. Of the others the pairs with the greatest sum of similarities are taken (the assignment
problem; the shortest augmenting paths of Jonker and Volgenant, 1987, on a dense matrix). Lists of more such pairs than
`MAX_PAIRS` are paired in order instead, so that no list of a model costs more than a moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.same import alike, text_key
from pipeline.records import JsonValue

MAX_PAIRS = 4096
"""Pairs of items, of those that equal none of the other list, that are compared."""
MAX_PARTS = 200
"""Leaves of one item that its similarity is told by."""
_NEAR = 1e-6
"""What decides between equally similar items: how near their places are."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Pairs of indexes (expected, found), None for what has no partner; `in_order`: too many to align."""

    pairs: tuple[tuple[int | None, int | None], ...]
    in_order: bool = False


def align(expected: Sequence[JsonValue], found: Sequence[JsonValue]) -> Aligned:
    """Pair the items of two lists, in the order of the expected ones; those left over come last."""
    ours, theirs = [_parts(item) for item in expected], [_parts(item) for item in found]
    pairs: dict[int, int] = {}
    free = set(range(len(found)))
    for keys in (_exact, _folded):
        _pair_equal(list(map(keys, ours)), list(map(keys, theirs)), pairs, free)
    rest = [index for index in range(len(expected)) if index not in pairs], sorted(free)
    in_order = len(rest[0]) * len(rest[1]) > MAX_PAIRS
    if in_order:
        pairs.update(zip(*rest, strict=False))
    elif all(rest):
        bags = [[_bag(parts) for parts in side] for side in (ours, theirs)]
        similar = np.array([[_similar(ours[i], theirs[j], (bags[0][i], bags[1][j])) for j in rest[1]] for i in rest[0]])
        similar += _NEAR / (1 + np.abs(np.subtract.outer(rest[0], rest[1])))
        pairs.update((rest[0][i], rest[1][j]) for i, j in assign(similar))
    left = sorted(set(range(len(found))) - set(pairs.values()))
    return Aligned((*((i, pairs.get(i)) for i in range(len(expected))), *((None, j) for j in left)), in_order)


def assign(similar: npt.NDArray[np.float64]) -> list[tuple[int, int]]:
    """(row, column) pairs with the greatest sum; every row or every column has one."""
    if similar.shape[0] > similar.shape[1]:
        return sorted((row, column) for column, row in assign(similar.T))
    cost = similar.max() - similar
    rows, columns = cost.shape
    of_row, of_column = np.zeros(rows + 1), np.zeros(columns + 1)
    taken = np.zeros(columns + 1, dtype=np.int64)  # which row has each column, from 1; 0: none
    for row in range(1, rows + 1):
        taken[0], column = row, 0
        least, way = np.full(columns + 1, np.inf), np.zeros(columns + 1, dtype=np.int64)
        seen = np.zeros(columns + 1, dtype=bool)
        while taken[column]:
            seen[column] = True
            here = taken[column]
            reduced = cost[here - 1] - of_row[here] - of_column[1:]
            better = ~seen[1:] & (reduced < least[1:])
            least[1:][better], way[1:][better] = reduced[better], column
            column = int(np.argmin(np.where(seen, np.inf, least)))
            step = least[column]
            of_row[taken[seen]] += step
            of_column[seen] -= step
            least[~seen] -= step
        while column:
            taken[column] = taken[way[column]]
            column = int(way[column])
    return sorted((int(row) - 1, index - 1) for index, row in enumerate(taken) if index and row)


Parts = tuple[tuple[str, JsonValue], ...]
"""The leaves of an item: the way to each, with `*` for items of lists inside, and its value."""
Bag = Counter[Hashable]


def _parts(item: JsonValue) -> Parts:
    found: list[tuple[str, JsonValue]] = []
    todo: list[tuple[str, JsonValue]] = [("", item)]
    while todo and len(found) < MAX_PARTS:
        way, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{way}/{key}", child) for key, child in value.items()]
        elif isinstance(value, list):
            todo += [(f"{way}/*", child) for child in value]
        elif value is not None:
            found.append((way, value))
    return tuple(found)


def _exact(parts: Parts) -> Hashable:
    return frozenset(Counter((way, type(value) is bool, value) for way, value in parts).items())


def _folded(parts: Parts) -> Hashable:
    return frozenset(_bag(parts).items())


def _bag(parts: Parts) -> Bag:
    return Counter(
        (way, type(value) is bool, text_key(value) if isinstance(value, str) else value) for way, value in parts
    )


def _pair_equal(ours: list[Hashable], theirs: list[Hashable], pairs: dict[int, int], free: set[int]) -> None:
    places: dict[Hashable, list[int]] = defaultdict(list)
    for index in sorted(free, reverse=True):
        places[theirs[index]].append(index)
    for index, key in enumerate(ours):
        if index not in pairs and places.get(key):
            pairs[index] = places[key].pop()
            free.discard(pairs[index])


def _similar(one: Parts, other: Parts, bags: tuple[Bag, Bag]) -> float:
    """Of two texts or numbers how alike they are; of objects and lists the share of leaves that they have in common."""
    if len(one) == len(other) == 1 and one[0][0] == other[0][0]:
        return alike(one[0][1], other[0][1])
    both = bags[0].total() + bags[1].total()
    return 2 * (bags[0] & bags[1]).total() / both if both else 1.0
