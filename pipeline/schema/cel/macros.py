"""The macros of CEL that go through the items of a list, or the keys of a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pipeline.schema.cel.syntax import Macro, Node, parts_of
from pipeline.schema.cel.values import CelError, Meter, TooCostly, kind

PER_ITEM = 4
"""Steps that one turn of a macro costs, besides one for each node of what it evaluates."""


class Frame:
    """The variables of one evaluation, and what it may still spend."""

    __slots__ = ("meter", "slots")

    def __init__(self, slots: list[Any], meter: Meter) -> None:
        self.slots = slots
        self.meter = meter

    def charged(self) -> Meter:
        """The meter, after paying for one call."""
        self.meter.spend(4)
        return self.meter


Run: TypeAlias = Callable[[Frame], Any]


def macro(node: Macro, target: Run, slot: int, bodies: list[Run]) -> Run:
    """The function of a macro; its variable is kept in a slot of its own."""
    cost = PER_ITEM + sum(map(_nodes, node.bodies))

    def each(frame: Frame) -> Iterator[Any]:
        return _each(frame, target(frame), slot, cost)

    if node.kind == "map":
        test, change = (None, bodies[0]) if len(bodies) == 1 else (bodies[0], bodies[1])
        return lambda frame: [change(frame) for _ in each(frame) if test is None or _judged(test(frame), node.kind)]
    test = bodies[0]
    if node.kind == "filter":
        return lambda frame: [item for item in each(frame) if _judged(test(frame), node.kind)]
    if node.kind == "exists_one":
        return lambda frame: sum(_judged(test(frame), node.kind) for _ in each(frame)) == 1
    return _quantified(node.kind, each, test)


def _quantified(name: str, each: Callable[[Frame], Iterator[Any]], test: Run) -> Run:
    """`all` and `exists`: one item may decide although others have no value."""
    decisive = name == "exists"

    def judged(frame: Frame) -> bool:
        fault: CelError | None = None
        for _ in each(frame):
            try:
                if _judged(test(frame), name) is decisive:
                    return decisive
            except TooCostly:
                raise
            except CelError as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return not decisive

    return judged


def _each(frame: Frame, items: Any, slot: int, cost: int) -> Iterator[Any]:
    if not isinstance(items, list | dict):
        raise CelError(f"{kind(items)} has no items to go through")
    slots = frame.slots
    while len(slots) <= slot:
        slots.append(None)
    for item in items:
        frame.meter.spend(cost)
        slots[slot] = item
        yield item


def _nodes(node: Node) -> int:
    """The nodes of a syntax tree."""
    return 1 + sum(map(_nodes, parts_of(node)))


def _judged(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"{name}() takes true or false, not {kind(value)}")
    return value
