"""Dates and times as texts show them (RFC 3339 and the reduced dates of ISO 8601), for comparing by meaning."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from fractions import Fraction

MAX_FRACTION = 30
"""Digits of a second."""

_DATE = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?)?"
_TIME = (
    r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])"
    rf"(?::(?P<second>[0-5][0-9]|60)(?:\.(?P<fraction>[0-9]{{1,{MAX_FRACTION}}}))?)?"
    r"(?P<offset>[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)
_MOMENT = re.compile(rf"(?:{_DATE})?(?:(?P<t>(?<=[0-9])[Tt ])?{_TIME})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a time of day, or both. `date` is (year, month, day), (year, month), (year,) or (); `time` are seconds
    since midnight, None if it is not said; `offset` are seconds east of UTC, None if it is not said."""

    date: tuple[int, ...]
    time: Fraction | None
    offset: int | None

    @property
    def instant(self) -> Fraction | None:
        """Seconds since 1970-01-01T00:00:00Z; of a date without a time, of its midnight in UTC. None if the offset of
        a time is not said, or the date is reduced."""
        if len(self.date) != 3 or (self.time is not None and self.offset is None):
            return None
        days = datetime.date(*self.date).toordinal() - datetime.date(1970, 1, 1).toordinal()
        return days * 86400 + (self.time or Fraction(0)) - (self.offset or 0)


def moment_of(text: str) -> Moment | None:
    """What a text says, such as `2024-02-29`, `2024-02`, `2024-02-29T10:00:00+02:00` or `10:00`; None if it is no such
    text or no such day exists."""
    found = _MOMENT.fullmatch(text) if len(text) <= 80 else None
    if found is None or not text:
        return None
    date = tuple(int(found[part]) for part in ("year", "month", "day") if found[part] is not None)
    if bool(found["t"]) != bool(date and found["hour"]) or (found["t"] and len(date) != 3):
        return None
    try:
        datetime.date(*date, *(1, 1, 1)[len(date) :])
    except ValueError:
        return None
    return Moment(date, _time(found), _offset(found["offset"]))


def before(one: Moment, other: Moment) -> bool | None:
    """Whether a moment comes before another; None if that cannot be said.

    Two instants are compared as such, whatever their offsets. Where one of the two says less (no time, no offset, no
    day), calendar dates are compared as written, as far as both go; equal ones are not before each other. Times of day
    are compared with their offsets if both have one, and as written if neither has.
    """
    if not one.date and not other.date:
        if one.time is None or other.time is None or (one.offset is None) != (other.offset is None):
            return None
        return one.time - (one.offset or 0) < other.time - (other.offset or 0)
    if not one.date or not other.date:
        return None
    if one.time is not None and other.time is not None:
        if one.offset is None and other.offset is None:
            return (one.date, one.time) < (other.date, other.time)
        if one.instant is not None and other.instant is not None:
            return one.instant < other.instant
    common = min(len(one.date), len(other.date))
    return one.date[:common] < other.date[:common]


def _time(found: re.Match[str]) -> Fraction | None:
    if found["hour"] is None:
        return None
    whole = int(found["hour"]) * 3600 + int(found["minute"]) * 60 + int(found["second"] or 0)
    return whole + (Fraction(f"0.{found['fraction']}") if found["fraction"] else Fraction(0))


def _offset(text: str | None) -> int | None:
    if text is None or text in "Zz":
        return None if text is None else 0
    seconds = int(text[1:3]) * 3600 + int(text[4:6]) * 60
    return -seconds if text[0] == "-" else seconds
