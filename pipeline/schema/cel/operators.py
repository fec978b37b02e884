"""Fields, indexes, operators and literals of maps: each makes the function of a node from those of its parts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pipeline.schema.cel.macros import Frame, Run
from pipeline.schema.cel.values import CelError, Maybe, TooCostly, calculate, equal, exact, is_number, kind, less

MATHS = ("+", "-", "*", "/", "%")


def select(base: Run, field: str, optional: bool) -> Run:
    """`base.field` and `base.?field`."""

    def selected(frame: Frame) -> Any:
        value = base(frame)
        if type(value) is dict:
            if field in value:
                return Maybe(value[field], True) if optional else value[field]
            if optional:
                return Maybe()
            raise CelError(f"{field} is absent: guard it with has()")
        if isinstance(value, Maybe):
            inner = value.value if value.present else {}
            return Maybe(inner[field], True) if isinstance(inner, dict) and field in inner else Maybe()
        raise CelError(f"{kind(value)} has no field {field}")

    return selected


def has_field(base: Run, field: str) -> Run:
    """`has(base.field)`."""

    def has(frame: Frame) -> bool:
        value = base(frame)
        if isinstance(value, Maybe):
            value = value.value if value.present else {}
        if not isinstance(value, dict):
            raise CelError(f"{kind(value)} has no field {field}")
        return field in value

    return has


def index(base: Run, key: Run, optional: bool) -> Run:
    """`base[key]` and `base[?key]`."""

    def indexed(frame: Frame) -> Any:
        value, place = base(frame), key(frame)
        optionally = optional or isinstance(value, Maybe)
        if isinstance(value, Maybe):
            value = value.value if value.present else {}
        found = _at(value, place)
        if optionally:
            return found
        if not found.present:
            raise CelError(f"{kind(value)} holds nothing at {_shown(place)}")
        return found.value

    return indexed


def _at(value: Any, place: Any) -> Maybe:
    if isinstance(value, list) and is_number(place):
        whole = int(place) == place and 0 <= place < len(value)
        return Maybe(value[int(place)], True) if whole else Maybe()
    if isinstance(value, dict) and (isinstance(place, str) or is_number(place)):
        name = _key(place)
        return Maybe(value[name], True) if name in value else Maybe()
    raise CelError(f"{kind(value)} cannot be indexed by {kind(place)}")


def _key(place: Any) -> Any:
    return exact(place) if isinstance(place, float) else place


def _shown(place: Any) -> str:
    return f"{place!r:.40}" if isinstance(place, int | str) else kind(place)


def map_of(pairs: list[tuple[Run, Run]]) -> Run:
    """A literal map."""

    def made(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key, value in pairs:
            name = _key(key(frame))
            if not isinstance(name, str | int | Fraction) or isinstance(name, bool):
                raise CelError(f"{kind(name)} cannot be a key")
            if name in built:
                raise CelError("a map repeats a key")
            built[name] = value(frame)
        return built

    return made


def maths(operator: str, parts: list[Run]) -> Run:
    """An operator of arithmetic, on exact numbers."""
    one, other = parts
    return lambda frame: calculate(operator, one(frame), other(frame), frame.meter)


def _either(decisive: bool) -> Callable[[list[Run]], Run]:
    """`||` and `&&`: a part that decides does so whatever the others are, even if those have no value."""

    def of(parts: list[Run]) -> Run:
        def judged(frame: Frame) -> bool:
            fault: CelError | None = None
            for part in parts:
                try:
                    value = part(frame)
                    if not isinstance(value, bool):
                        raise CelError(f"{'||' if decisive else '&&'} takes true or false, not {kind(value)}")
                    if value is decisive:
                        return decisive
                except TooCostly:
                    raise
                except CelError as error:
                    fault = fault or error
            if fault is not None:
                raise fault
            return not decisive

        return judged

    return of


def _choice(parts: list[Run]) -> Run:
    condition, first, second = parts

    def chosen(frame: Frame) -> Any:
        value = condition(frame)
        if not isinstance(value, bool):
            raise CelError(f"?: takes true or false, not {kind(value)}")
        return first(frame) if value else second(frame)

    return chosen


def _not(parts: list[Run]) -> Run:
    (operand,) = parts

    def negated(frame: Frame) -> bool:
        value = operand(frame)
        if not isinstance(value, bool):
            raise CelError(f"! takes true or false, not {kind(value)}")
        return not value

    return negated


def _inside(parts: list[Run]) -> Run:
    one, other = parts

    def inside(frame: Frame) -> bool:
        value, whole = one(frame), other(frame)
        if isinstance(whole, dict):
            return (isinstance(value, str) or is_number(value)) and bool(_key(value) in whole)
        if isinstance(whole, list):
            frame.meter.spend(len(whole))
            return any(equal(value, item, frame.meter) for item in whole)
        raise CelError(f"nothing is in {kind(whole)}: write contains() for strings")

    return inside


def _compared(test: Callable[[Frame, Any, Any], bool]) -> Callable[[list[Run]], Run]:
    def of(parts: list[Run]) -> Run:
        one, other = parts
        return lambda frame: test(frame, one(frame), other(frame))

    return of


OPERATORS: dict[str, Callable[[list[Run]], Run]] = {
    "||": _either(True),
    "&&": _either(False),
    "?:": _choice,
    "in": _inside,
    "unary !": _not,
    "unary -": lambda parts: lambda frame: calculate("-", 0, parts[0](frame), frame.meter),
    "==": _compared(lambda frame, one, other: equal(one, other, frame.meter)),
    "!=": _compared(lambda frame, one, other: not equal(one, other, frame.meter)),
    "<": _compared(lambda _, one, other: less(one, other)),
    ">": _compared(lambda _, one, other: less(other, one)),
    "<=": _compared(lambda _, one, other: not less(other, one)),
    ">=": _compared(lambda _, one, other: not less(one, other)),
}
