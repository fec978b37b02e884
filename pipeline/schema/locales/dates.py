"""Dates as people print them: read if there is just one reading, and that one is a day of the calendar.

babel's `parse_date` is not used: it swaps day and month where the month is above 12, takes the first three numbers of
any text, and guesses centuries from today. Its tables are: order of fields, names of months and days.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from pipeline.schema.locales.letters import ascii_digits, visible
from pipeline.schema.locales.numbers import MAX_PRINTED, locale_of

FIRST_YEAR, LAST_YEAR = 1583, 2199
"""Years that are read: since the Gregorian calendar. Those of other calendars (Thai 2567, Hijri 1445) lie outside."""

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EARLY = re.compile("(?<![0-9])0[0-9]{3}(?![0-9])")
"""A year before 1000, which must not be taken for one of two digits."""
_YEAR_FIRST = re.compile(r"([0-9]{4})(\s*[-/.]\s*|\s+)([0-9]{1,2})(\s*[-/.]\s*|\s+)([0-9]{1,2})\.?")
_NUMBERS = re.compile(r"([0-9]{1,2})(\s*[-/.]\s*|\s+)([0-9]{1,2})(\s*[-/.]\s*|\s+)([0-9]{2}|[0-9]{4})\.?")
_MARKED = re.compile(r"([0-9]{4})\s*[年년]\s*([0-9]{1,2})\s*[月월]\s*([0-9]{1,2})\s*[日号號일]\s*\(?([^\s()]*)\)?")
_WORD = r"[^\s0-9,./()'’،·–-]+"
_TOKEN = re.compile(rf"[0-9]+|{_WORD}")
_ORDINARY: Mapping[str, str] = {
    "en": "st nd rd th of the day",
    "de": "den der dem am",
    "fr": "er le",
    "es": "de del el o",
    "pt": "de do o feira",
    "it": "il o",
    "ca": "de del d",
    "nl": "e de",
    "ro": "a",
}
"""Words that stand in dates of a language beside the names, ordinal endings among them."""

Fields = Mapping[str, int]


@dataclass(frozen=True)
class DateStyle:
    """`order` of the fields where all are numbers; `pivot` is the first of the hundred years that two digits stand for
    (None: two digits are no year); with `formats` (CLDR patterns, compiled) nothing else is read."""

    order: str
    months: Mapping[str, frozenset[int]]
    days: Mapping[str, frozenset[int]]
    words: frozenset[str]
    pivot: int | None = None
    formats: tuple[re.Pattern[str], ...] = ()


@lru_cache(maxsize=256)
def date_style(locale: str, formats: tuple[str, ...] = (), pivot: int | None = None) -> DateStyle:
    """The style of a locale.

    Raises:
        ValueError: nobody knows the locale, it does not settle the order of day and month, or a format is none.
    """
    known = locale_of(locale)
    if known.language == "en" and known.territory is None and not formats:
        raise ValueError(
            "locale en does not say whether the day or the month stands first. Write en_US, en_GB or other"
        )
    order = "".join(dict.fromkeys(re.findall("[yMd]", known.date_formats["short"].pattern)))
    quoted = re.findall("'([^']+)'", " ".join(known.date_formats[name].pattern for name in ("full", "long", "medium")))
    words = frozenset(_folded(word) for text in (*quoted, _ORDINARY.get(known.language, "")) for word in text.split())
    names = [_names(table) for table in (known.months, known.days)]
    compiled = tuple(re.compile(_expression(text, pivot), re.IGNORECASE) for text in formats)
    return DateStyle(order, names[0], names[1], words, pivot, compiled)


def read_date(text: str, style: DateStyle) -> str | None:
    """The ISO 8601 date that a text prints, None if it has no reading, or two."""
    if len(text) > MAX_PRINTED:
        return None
    plain = unicodedata.normalize("NFKC", ascii_digits(visible(text))).strip()
    if _EARLY.search(plain):
        return None
    if _ISO.fullmatch(plain):
        readings: Iterator[Fields] = iter([dict(zip("yMd", map(int, plain.split("-")), strict=True))])
    else:
        readings = _by_format(plain, style) if style.formats else _by_locale(plain, style)
    found = {day for fields in readings if (day := _day(fields, style.pivot)) is not None}
    return found.pop().isoformat() if len(found) == 1 else None


def _day(fields: Fields, pivot: int | None) -> datetime.date | None:
    """The day that fields name; None if there is none, or it is another day of the week than they say."""
    year = fields["y"]
    if year < 100:
        if pivot is None:
            return None
        year = pivot + (year - pivot) % 100
    try:
        day = datetime.date(year, fields["M"], fields["d"])
    except ValueError:
        return None
    wrong = "E" in fields and day.weekday() != fields["E"]
    return None if wrong or not FIRST_YEAR <= year <= LAST_YEAR else day


def _by_locale(text: str, style: DateStyle) -> Iterator[Fields]:
    if match := _YEAR_FIRST.fullmatch(text):
        if match[2].strip() == match[4].strip():
            yield {"y": int(match[1]), "M": int(match[3]), "d": int(match[5])}
    elif match := _MARKED.fullmatch(text):
        fields = {"y": int(match[1]), "M": int(match[2]), "d": int(match[3])}
        for day in style.days.get(_folded(match[4]), ()) if match[4] else (None,):
            yield fields if day is None else {**fields, "E": day}
    elif match := _NUMBERS.fullmatch(text):
        numbers = match[1], match[3], match[5]
        # A locale that writes the year first says nothing of day and month before it.
        if match[2].strip() == match[4].strip() and (style.order[-1:] == "y" or len(numbers[2]) == 2):
            fields = dict(zip(style.order, map(int, numbers), strict=False))
            if len(fields) == 3 and len(numbers[style.order.index("y")]) in (2, 4):
                yield fields
    else:
        yield from _by_words(text, style)


def _by_words(text: str, style: DateStyle) -> Iterator[Fields]:
    """Readings of a text with a month's name, a day and a year."""
    tokens = _TOKEN.findall(text)
    numbers = [token for token in tokens if token[0].isdecimal()]
    words = [token for token in tokens if not token[0].isdecimal()]
    if len(numbers) != 2 or not 1 <= len(words) <= 6:
        return
    years = [number for number in numbers if len(number) == 4]
    if len(years) > 1 or (not years and style.pivot is None) or any(len(number) not in (1, 2, 4) for number in numbers):
        return
    year = years[0] if years else numbers[0 if style.order.startswith("y") else 1]
    day = numbers[1 - numbers.index(year)] if numbers[0] != numbers[1] else year
    if not years and len(year) != 2:
        return
    meanings = [list(_meanings(_folded(word), style)) for word in words]
    for meaning in product(*meanings):
        said = [item for item in meaning if item is not None]
        if [field for field, _ in said].count("M") == 1 and len(said) == len(dict(said)):
            yield {"y": int(year), "d": int(day), **dict(said)}


def _meanings(word: str, style: DateStyle) -> Iterator[tuple[str, int] | None]:
    """What a word may be: a month, a day of the week, or (None) one that says nothing."""
    for field, names in (("M", style.months), ("E", style.days)):
        found = names.get(word) or (_begun(word, names) if len(word) >= 3 else frozenset())
        yield from ((field, value) for value in found)
    if word in style.words:
        yield None


def _begun(word: str, names: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """What a word is short for, if that is one thing."""
    found = frozenset(value for name, values in names.items() if name.startswith(word) for value in values)
    return found if len(found) == 1 else frozenset()


def _by_format(text: str, style: DateStyle) -> Iterator[Fields]:
    for pattern in style.formats:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        groups = {field: value for field, value in match.groupdict().items() if value is not None}
        fields = {field: int(value) for field, value in groups.items() if value.isdecimal()}
        named = [(field, value) for field, value in groups.items() if not value.isdecimal()]
        for meaning in product(*(list(_meanings(_folded(value), style)) for _, value in named)):
            said = [item for item in meaning if item is not None]
            if [field for field, _ in said] == [field for field, _ in named]:
                yield {**fields, **dict(said)}


def _expression(pattern: str, pivot: int | None) -> str:
    """A CLDR date pattern of the fields y, M, d and E as a regular expression.

    Raises:
        ValueError: it has other fields, lacks one, or a year of two digits without a pivot.
    """
    parts = []
    fields: list[str] = []
    for part in re.finditer(r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>[^A-Za-z'])", pattern):
        quoted, letters, other = part["quoted"], part["letters"] or "", part["other"] or ""
        fields += [letters[0].replace("L", "M")] if letters else []
        if letters in ("yy", "y", "yyyy", "d", "dd", "M", "L", "MM", "LL"):
            digits = {"y": "{4}", "yyyy": "{4}"}.get(letters, "{2}" if len(letters) == 2 else "{1,2}")
            parts.append(f"(?P<{fields[-1]}>[0-9]{digits})")
        elif re.fullmatch("MMMM?|LLLL?|E{1,4}", letters):
            parts.append(rf"(?P<{fields[-1]}>{_WORD})\.?")
        elif letters:
            raise ValueError(f"date format {pattern[:40]!r}: {letters} is none of d, M, y, E")
        else:
            parts.append(re.escape(quoted) if quoted else r"\s+" if other.isspace() else re.escape(other))
    if sorted(set(fields) - {"E"}) != ["M", "d", "y"] or len(set(fields)) != len(fields):
        raise ValueError(f"date format {pattern[:40]!r} needs d, M and y, each once")
    if "yy" in re.findall("y+", re.sub("'[^']*'", "", pattern)) and pivot is None:
        raise ValueError(f"date format {pattern[:40]!r} has years of two digits: declare a pivot, such as 1970")
    return "".join(parts)


def _names(table: Mapping[str, Mapping[str, Mapping[int, str]]]) -> dict[str, frozenset[int]]:
    """Values by folded names, wide and abbreviated; of a name with a hyphen (terça-feira) by its first part."""
    found: dict[str, frozenset[int]] = {}
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            for value, name in table[context][width].items():
                folded = _folded(name).partition("-")[0]
                if re.fullmatch(_WORD, folded):
                    found[folded] = found.get(folded, frozenset()) | {value}
    return found


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().rstrip(".")
