"""Tangle: whether judging a value under a schema can take exponential time. For strangers' schemas, in the sandbox.

A validator follows every reference and every branch. Where several of them judge the same value again and again (a
definition that refers twice to the next one, an `anyOf` whose branches all lead back to it at the same place) their
number is multiplied at each step, in the schema or in the value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.errors import SchemaError
from pipeline.schema.walk import IN_PLACE, children, descend, target, unescape

MAX_WEIGHT = 2000
"""Evaluations that one place of a value may cost. The validator does some 30 a millisecond."""
_MAX_STEPS = 500_000

_NOT_JUDGED = frozenset({"$defs", "definitions", "contentSchema"})
_KEYS = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})
_ITEMS = frozenset({"contains", "unevaluatedItems"})
_AGAIN = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""What asks the branches beside it once more which of them accept the value."""
_ANY_KEY, _ANY_ITEM = "*key", "*item"


def check_tangle(body: Mapping[str, Any]) -> None:
    """Refuse a loaded body that could keep a validator busy without end.

    Raises:
        SchemaError: `tangled`.
    """
    try:
        _Tangle(body).check()
    except RecursionError as error:
        raise SchemaError("its references are too many to be followed.", "tangled") from error


class _Tangle:
    def __init__(self, body: Mapping[str, Any]) -> None:
        self._in_place: dict[str, list[str]] = {}
        self._below: dict[str, list[tuple[str, str]]] = {}
        self._reached: dict[str, frozenset[str]] = {}
        self._weights: dict[str, int] = {}
        self._steps = 0
        for pointer, node in descend(body):
            edges = list(_edges(pointer, node))
            self._in_place[pointer] = [to for label, to in edges if not label]
            self._below[pointer] = [(label, to) for label, to in edges if label]

    def check(self) -> None:
        for pointer in self._in_place:
            for label, targets in self._expanded(pointer)[1].items():
                if targets.total() < 2:
                    continue
                back = sum(count for to, count in targets.items() if self._leads_to(to, pointer))
                if back > 1:
                    raise _tangled(f"at {pointer or '/'} {back} ways lead back to it, all at {_said(label)}")
        weight = self._weight("", frozenset())
        if weight > MAX_WEIGHT:
            raise _tangled(f"one place of a value could be judged {weight} times")

    def _expanded(self, pointer: str) -> tuple[int, dict[str, Counter[str]]]:
        """How many schemas judge the same value as this one, itself among them, and by place what judges below it."""
        counts: Counter[str] = Counter()
        waiting = [pointer]
        while waiting:
            at = waiting.pop()
            counts[at] += 1
            self._step()
            waiting += self._in_place.get(at, ())
        below: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for at, count in counts.items():
            for label, to in self._below.get(at, ()):
                below[label][to] += count
        return counts.total(), {label: targets + _wild(label, below) for label, targets in below.items()}

    def _weight(self, pointer: str, above: frozenset[str]) -> int:
        """How often a place below a value that this schema judges may be judged, at most; each turn of a recursion
        counts once."""
        if pointer in above:
            return 1
        if pointer not in self._weights:
            here, below = self._expanded(pointer)
            deeper = [
                sum(count * self._weight(to, above | {pointer}) for to, count in targets.items())
                for targets in below.values()
            ]
            self._weights[pointer] = min(max([here, *deeper]), 10**9)
        return self._weights[pointer]

    def _leads_to(self, start: str, goal: str) -> bool:
        if start not in self._reached:
            seen, waiting = {start}, [start]
            while waiting:
                at = waiting.pop()
                self._step()
                new = [
                    to
                    for to in (*self._in_place.get(at, ()), *(to for _, to in self._below.get(at, ())))
                    if to not in seen
                ]
                seen.update(new)
                waiting += new
            self._reached[start] = frozenset(seen)
        return goal in self._reached[start]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _tangled("its schemas lead to each other in too many ways")


def _edges(pointer: str, node: Any) -> Iterator[tuple[str, str]]:
    """What a schema leads to: ("" for the same value, else the place below it; pointer)."""
    if isinstance(node, Mapping) and "$ref" in node:
        yield "", target(node["$ref"])
    again = isinstance(node, Mapping) and not _AGAIN.isdisjoint(node)
    for keyword, step, _ in children(node):
        if keyword not in _NOT_JUDGED:
            yield _label(keyword, step), pointer + step
            if again and keyword in IN_PLACE:
                yield "", pointer + step


def _label(keyword: str, step: str) -> str:
    if keyword in IN_PLACE:
        return ""
    last = unescape(step.rpartition("/")[2])
    if keyword == "properties":
        return f"key {last}"
    if keyword in _KEYS:
        return _ANY_KEY
    if keyword in _ITEMS:
        return _ANY_ITEM
    return {"items": "item", "prefixItems": f"item {last}"}.get(keyword, keyword)


def _wild(label: str, below: Mapping[str, Counter[str]]) -> Counter[str]:
    """What judges a place besides what names it."""
    wild = {"key ": _ANY_KEY, "item": _ANY_ITEM}.get(label[:4])
    return below.get(wild, Counter()) if wild else Counter()


def _said(label: str) -> str:
    return {_ANY_KEY: "any key", _ANY_ITEM: "any item"}.get(label, label)


def _tangled(why: str) -> SchemaError:
    return SchemaError(
        f"could keep the validator busy without end: {why}. Let one branch decide, or have the schema registered.",
        "tangled",
    )
