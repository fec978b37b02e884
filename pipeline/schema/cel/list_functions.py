"""Functions of CEL on lists: the lists extension of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from pipeline.schema.cel.arguments import Function, list_in
from pipeline.schema.cel.values import CelError, Meter, Span, calculate, is_number, kind, less


def _sum(meter: Meter, items: Any) -> Any:
    if not list_in(items):
        return 0
    total, *rest = items
    if not rest and not is_number(total) and not isinstance(total, Span):
        raise CelError(f"{kind(total)} cannot be added up")
    meter.spend(8 * len(rest))
    for item in rest:
        total = calculate("+", total, item, meter)
    return total


def extreme_of(sign: int) -> Callable[..., Any]:
    """`min` (sign -1) or `max` (sign 1) of a list or of the arguments."""

    def extreme(meter: Meter, *values: Any) -> Any:
        items = list_in(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
        if not items:
            raise CelError("an empty list has no least and no greatest item")
        meter.spend(4 * len(items))
        best = items[0]
        for item in items:  # compared with itself, too: whatever has no order is told
            best = item if less(*((item, best) if sign < 0 else (best, item))) else best
        return best

    return extreme


def _is_sorted(meter: Meter, items: Any) -> bool:
    meter.spend(4 * len(list_in(items)))
    return not any(less(later, earlier) for earlier, later in pairwise(items))


def _sorted(meter: Meter, items: Any) -> list[Any]:
    meter.spend(16 * len(list_in(items)))
    return sorted(items, key=cmp_to_key(lambda one, other: -1 if less(one, other) else int(less(other, one))))


LIST_FUNCTIONS: dict[str, Function] = {
    "sum": Function(_sum, "member", 1, 1),
    "min": Function(extreme_of(-1), "member", 1, 1),
    "max": Function(extreme_of(1), "member", 1, 1),
    "sort": Function(_sorted, "member", 1, 1),
    "isSorted": Function(_is_sorted, "member", 1, 1),
}
"""Name → function."""
