"""Instants and durations of CEL: reading, showing, and taking them apart. Nothing here reads a clock or a database."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pipeline.schema.cel.values import CelError, Instant, Meter, Span, exact, is_number, kind
from pipeline.schema.moments import moment_of

_UNITS = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_PIECE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(h|ms|us|µs|ns|m|s)", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})", re.ASCII)


def timestamp(_meter: Meter, value: Any) -> Instant:
    """The instant of a date-time (RFC 3339), of the midnight in UTC that a date begins with, of seconds since 1970."""
    if isinstance(value, Instant):
        return value
    if is_number(value):
        return Instant(Fraction(exact(value)))
    if not isinstance(value, str):
        raise CelError(f"timestamp() takes a string, not {kind(value)}")
    moment = moment_of(value)
    instant = None if moment is None else moment.instant
    if instant is None:
        raise CelError("a string that is no date and no date-time with an offset")
    return Instant(instant)


def duration(_meter: Meter, value: Any) -> Span:
    """The duration of a text such as `1h30m` or `-1.5s`."""
    if isinstance(value, Span):
        return value
    if not isinstance(value, str) or len(value) > 200:
        raise CelError(f"duration() takes a short string such as '1h30m', not {kind(value)}")
    text = value.removeprefix("-")
    pieces = _PIECE.findall(text)
    if text != "0" and (not pieces or "".join(number + unit for number, unit in pieces) != text):
        raise CelError("a string that is no duration such as '1h30m'")
    seconds = sum((Fraction(number) * _UNITS[unit] for number, unit in pieces), Fraction(0))
    return Span(-seconds if value.startswith("-") else seconds)


def instant_text(value: Instant) -> str:
    """RFC 3339 in UTC, to the nanosecond."""
    digits = f"{int(value.seconds % 1 * 10**9):09d}".rstrip("0")
    return f"{_clock(value.seconds).replace(microsecond=0).isoformat()}{'.' + digits if digits else ''}Z"


def span_text(value: Span) -> str:
    """Seconds, to the nanosecond, such as `90.5s`."""
    whole, rest = divmod(abs(value.seconds), 1)
    digits = f"{int(rest * 10**9):09d}".rstrip("0")
    return f"{'-' if value.seconds < 0 else ''}{whole}{'.' + digits if digits else ''}s"


def _clock(seconds: Fraction) -> datetime.datetime:
    try:
        return _EPOCH + datetime.timedelta(seconds=seconds // 1, microseconds=int(seconds % 1 * 10**6))
    except OverflowError as error:
        raise CelError("an instant outside of the years 1 to 9999") from error


def _zone(name: Any) -> int:
    """Seconds east of UTC. Zones by name would be read from the machine, whose database may differ from another's."""
    if name in ("UTC", "Z", ""):
        return 0
    found = _OFFSET.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise CelError("a time zone is 'UTC' or an offset such as '+02:00'")
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return -seconds if found[1] == "-" else seconds


def _of_instant(part: Callable[[datetime.datetime], int]) -> Callable[..., int]:
    def taken(_meter: Meter, value: Any, zone: Any = "UTC") -> int:
        if not isinstance(value, Instant):
            raise CelError(f"{kind(value)} is no timestamp: write timestamp(…)")
        return part(_clock(value.seconds + _zone(zone)))

    return taken


def _of_either(part: Callable[[datetime.datetime], int], unit: Fraction) -> Callable[..., int]:
    of_instant = _of_instant(part)

    def taken(meter: Meter, value: Any, zone: Any = "UTC") -> int:
        return int(value.seconds / unit) if isinstance(value, Span) else of_instant(meter, value, zone)

    return taken


def _milliseconds(meter: Meter, value: Any, zone: Any = "UTC") -> int:
    if isinstance(value, Span):
        return int(value.seconds % 1 * 1000)
    return _of_instant(lambda clock: clock.microsecond // 1000)(meter, value, zone)


TIME_FUNCTIONS: dict[str, Callable[..., int]] = {
    "getFullYear": _of_instant(lambda clock: clock.year),
    "getMonth": _of_instant(lambda clock: clock.month - 1),
    "getDate": _of_instant(lambda clock: clock.day),
    "getDayOfMonth": _of_instant(lambda clock: clock.day - 1),
    "getDayOfWeek": _of_instant(lambda clock: clock.isoweekday() % 7),
    "getDayOfYear": _of_instant(lambda clock: clock.timetuple().tm_yday - 1),
    "getHours": _of_either(lambda clock: clock.hour, Fraction(3600)),
    "getMinutes": _of_either(lambda clock: clock.minute, Fraction(60)),
    "getSeconds": _of_either(lambda clock: clock.second, Fraction(1)),
    "getMilliseconds": _milliseconds,
}
"""Of an instant, by default in UTC: months, days of the month, of the week and of the year count from 0, `getDate` from
1. Of a duration, the whole of it in that unit."""
