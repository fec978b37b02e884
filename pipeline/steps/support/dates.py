"""The dates that a text holds: numeric by either order, with names of months, Chinese and Japanese, compact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from pipeline.steps.support.numbers import plain_digits
from pipeline.steps.support.readings import AMBIGUOUS, DERIVED, PLAIN, Reading

Dates = dict[date, list[Reading]]

MAX_DATE = 40
"""Characters of a value that may be one date."""

_NAMES = {
    1: "january jan januar jänner janvier enero gennaio janeiro januari",
    2: "february feb februar février fevrier febrero febbraio fevereiro februari",
    3: "march mar märz maerz mars marzo março maart",
    4: "april apr avril abril aprile",
    5: "may mai mayo maggio maio mei maj",
    6: "june jun juni juin junio giugno junho",
    7: "july jul juli juillet julio luglio julho",
    8: "august aug août aout agosto augustus augusti",
    9: "september sep sept septembre septiembre settembre setembro",
    10: "october oct oktober okt octobre octubre ottobre outubro",
    11: "november nov novembre noviembre novembro",
    12: "december dec dezember dez décembre decembre diciembre dicembre dezembro",
}
"""English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish."""
_MONTHS = {name: number for number, names in _NAMES.items() for name in names.split()}
_MONTH = r"(?P<m>[^\W\d_]{3,10})\.?"
_YEAR = r"(?P<y>\d{4}|'?\d{2})(?!\d)"
_GAP = r"[\s,.\-/]{0,3}"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th|er|º|°)?"
_ISO = re.compile(
    r"(?<!\d)(\d{4})(?:\s?([-/.])\s?(\d{1,2})\s?\2\s?(\d{1,2})|\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日?)(?!\d)"
)
_EITHER = re.compile(r"(?<![\d/.\-])(\d{1,2})\s?([-/.])\s?(\d{1,2})\s?\2\s?(\d{4}|\d{2})(?![\d/]|[.\-]\d)")
_COMPACT = re.compile(r"(?<![\d.,])((?:19|20)\d{2})(\d{2})(\d{2})(?![\d.,]*\d)")
_DAY_FIRST = re.compile(rf"(?<!\d){_DAY}{_GAP}(?:day\s)?(?:of\s|de\s)?{_MONTH}{_GAP}(?:de\s)?{_YEAR}", re.IGNORECASE)
_DAY_SECOND = re.compile(rf"(?<!\d){_DAY}{_GAP}{_YEAR}", re.IGNORECASE)
_MONTH_BEFORE = re.compile(rf"(?<![^\W\d_]){_MONTH}{_GAP}\Z")
_REACH = 14
"""Characters before a day in which its month stands. Looked for from the day back, for digits are rarer than words."""
_DIGIT = re.compile(r"\d")
_PIVOT = 70
"""Two digits from here on are a year of the last century."""


def dates_in(plain: str) -> Dates:
    """Every date of a text, given with plain digits, with its places."""
    found: Dates = {}
    for day, reading in _all(plain):
        found.setdefault(day, []).append(reading)
    return found


def dates_of(value: str) -> dict[date, float]:
    """The dates that a whole value can mean, with how surely; nothing if it is something else. The time of an RFC 3339
    date-time is left out."""
    text = plain_digits(value.strip())
    if len(text) > MAX_DATE or not _DIGIT.search(text):
        return {}
    time = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}.*", text, re.ASCII)
    text = time.group(1) if time else text
    return {day: seen.score for day, seen in _all(text) if seen.end - seen.start == len(text)}


def is_swapped(value: str, plain: str, place: Reading) -> bool:
    """Whether a value and a place in a text are the same date only if the two are read by different orders of day,
    month and year: 04/03/2018 is not 03/04/2018."""
    one, other = _EITHER.fullmatch(plain_digits(value.strip())), _EITHER.fullmatch(plain[place.start : place.end])
    if one is None or other is None:
        return False
    parts = [[int(match[1]), int(match[3]), int(match[4]) % 100] for match in (one, other)]
    return parts[0] != parts[1]


def _all(text: str) -> Iterator[tuple[date, Reading]]:
    for match in _ISO.finditer(text):
        year, _, month, day, month_too, day_too = match.groups()
        yield from _dated(_place(match, PLAIN), year, month or month_too, day or day_too)
    for match in _EITHER.finditer(text):
        yield from _either(match)
    for match in _COMPACT.finditer(text):
        yield from _dated(_place(match, DERIVED), match[1], match[2], match[3])
    for match in _DAY_FIRST.finditer(text):
        yield from _named(match, match, match.start())
    for match in _DAY_SECOND.finditer(text):
        month = _MONTH_BEFORE.search(text, max(0, match.start() - _REACH), match.start())
        if month:
            yield from _named(match, month, month.start())


def _named(day: re.Match[str], month: re.Match[str], start: int) -> Iterator[tuple[date, Reading]]:
    number = _MONTHS.get(month["m"].lower())
    if number:
        score = PLAIN if len(day["y"]) == 4 else DERIVED
        yield from _dated(Reading(start, day.end(), score), day["y"].strip("'"), number, day["d"])


def _either(match: re.Match[str]) -> Iterator[tuple[date, Reading]]:
    """1/2/2018 is in January and in February; 12-01-18 may begin with the year as well."""
    one, _, two, year = match.groups()
    place = _place(match, PLAIN)
    first, second = list(_dated(place, year, two, one)), list(_dated(place, year, one, two))
    readings = first if first == second else first + second
    if len(year) == 2 and len(one) == 2:
        readings += [seen for seen in _dated(place, one, two, year) if seen not in readings]
    for day, seen in readings:
        yield day, seen if len(readings) == 1 else Reading(seen.start, seen.end, AMBIGUOUS)


def _dated(place: Reading, year: str, month: str | int, day: str) -> Iterator[tuple[date, Reading]]:
    number = int(year)
    if len(year) == 2:
        number += 1900 if number >= _PIVOT else 2000
    try:
        yield date(number, int(month), int(day)), place
    except ValueError:  # no such day: another reading may be one
        return


def _place(match: re.Match[str], score: float) -> Reading:
    return Reading(match.start(), match.end(), score)
