"""Support: where a document says a value, and how literally.

Three kinds, tried in this order: `exact`, it stands there; `normalised`, the same by a rule that changes no meaning
(case, width, blanks, punctuation; notations of numbers and dates; signs of currencies); `fuzzy`, a similar text with
the same digits. Offsets are code points. A span begins and ends where words, numbers and characters do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from pipeline.records import Match
from pipeline.steps.support.bounds import MAX_TRIES, NO, WHOLE, apart, occurrences, standing, to_end, to_words
from pipeline.steps.support.currencies import ways_to_write
from pipeline.steps.support.dates import Dates, dates_in, dates_of, is_swapped
from pipeline.steps.support.fold import Folded, fold, foldable, same_digits
from pipeline.steps.support.fuzzy import MAX_WORK, align, is_identifier, least_of, likeness
from pipeline.steps.support.numbers import Numbers, number_of, plain_digits, values_of
from pipeline.steps.support.readings import DERIVED, PLAIN, WITHIN, Reading

MAX_HITS = 64
"""Occurrences kept of one value."""
_APART_WORK = 16
"""What a character costs that is searched for a value that mostly stands inside of words, in units of `work`."""

_AMOUNT = re.compile(r"([^\d\s.,+-]{1,4})?\s?([-+]?)\s?(\d[\d.,']*)\s?(%|[^\d\s.,+-]{1,4})?")
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTED = re.compile(r"([0-9]|1[0-2]) ([A-Za-z]{3,20})")


@dataclass(frozen=True, slots=True)
class Hit:
    """One place that supports a value: [`start`, `end`) code points; `score` from 0 to 1 says how surely."""

    match: Match
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Region:
    """The part of a text that counts."""

    start: int
    end: int


class Source:
    """One document in which values are looked for. What takes time is made once, when it is first needed.

    `least` replaces the likeness that fuzzy support needs (`support.fuzzy.least_of`), for measurements.
    """

    def __init__(self, text: str, least: float | None = None) -> None:
        self.text = text
        self.least = least
        self.whole = Region(0, len(text))
        self.work = 0
        self.known: dict[tuple[type, Any, Region], list[Hit]] = {}

    @property
    def spent(self) -> bool:
        """Whether fuzzy searches have cost all that they may; none is made then."""
        return self.work > MAX_WORK

    @cached_property
    def folded(self) -> Folded:
        return fold(self.text)

    @cached_property
    def plain(self) -> str:
        return plain_digits(self.text)

    @cached_property
    def numbers(self) -> Numbers:
        return Numbers(self.plain)

    @cached_property
    def dates(self) -> Dates:
        return dates_in(self.plain)


def hits_of(source: Source, value: str | int | float | Decimal, region: Region | None = None) -> list[Hit]:
    """The places that support a value, all of the most literal kind that there is; the surest and then the first come
    first."""
    region = region or source.whole
    key = (type(value), value, region)
    if key not in source.known:
        found = _best_of_each(_hits(source, value, region))
        source.known[key] = sorted(found, key=lambda hit: (-hit.score, hit.start))[:MAX_HITS]
    return source.known[key]


def _hits(source: Source, value: str | int | float | Decimal, region: Region) -> list[Hit]:
    if isinstance(value, str):
        return _text_hits(source, value.strip(), region)
    return _number_hits(source, value, region)


def _text_hits(source: Source, value: str, region: Region) -> list[Hit]:
    if not value:
        return []
    exact = list(_standing_hits(source, value, region))
    whole = [hit for hit in exact if hit.score == 1]
    if whole:
        return whole
    found = [*exact, *_read_hits(source, value, region)]
    if foldable(value):
        found += _folded_hits(source, value, region)
    if exact:
        return exact
    return found or _fuzzy_hits(source, value, region)


def _standing_hits(source: Source, value: str, region: Region) -> Iterator[Hit]:
    """Where the value itself stands, at the ends of words (score 1) or between a digit and a letter (12kg)."""
    tried, whole, start = 0, 0, region.start
    for start, end in occurrences(source.text, value, region.start, region.end):
        tried += 1
        if hit := _standing(source.text, start, end):
            yield hit
            whole += hit.score == 1
        if whole == MAX_HITS:
            return
    if tried < MAX_TRIES or source.spent:
        return
    source.work += (region.end - start) * _APART_WORK
    hits = (_standing(source.text, *span) for span in apart(source.text, value, start + 1, region.end))
    yield from (hit for hit in hits if hit)


def _standing(text: str, start: int, end: int) -> Hit | None:
    keeps = standing(text, start, end)
    return None if keeps == NO else Hit("exact", start, to_end(text, end), 1.0 if keeps == WHOLE else DERIVED)


def _folded_hits(source: Source, value: str, region: Region) -> list[Hit]:
    needle, folded, found = fold(value).text, source.folded, []
    if not needle:
        return []
    low, high = folded.index(region.start), folded.index(region.end)
    for _ in range(MAX_TRIES):
        low = folded.text.find(needle, low, high) + 1
        if not low:
            break
        span = folded.span(low - 1, low - 1 + len(needle))
        if span and _is_same(source.text, span, value):
            found.append(Hit("normalised", span[0], to_end(source.text, span[1]), PLAIN))
        if len(found) == MAX_HITS:
            break
    return found


def _is_same(text: str, span: tuple[int, int], value: str) -> bool:
    start, end = span
    near = end - start <= 3 * len(value) + 20  # not with a line of dots, or a column, between its words
    return near and standing(text, start, end) != NO and same_digits(value, text[start:end])


def _read_hits(source: Source, value: str, region: Region) -> list[Hit]:
    """A text that is a date, a currency or an amount, where the document writes it in another way."""
    found: list[Hit] = []
    for day, score in dates_of(value).items():
        places = [place for place in source.dates.get(day, []) if not is_swapped(value, source.plain, place)]
        found += _readings(places, region, score)
    for sign, score in ways_to_write(value):
        hits = list(_standing_hits(source, sign, region))
        found += [Hit("normalised", hit.start, hit.end, score) for hit in hits]
    for number, score in _amounts_of(source, value, region):
        places = [place for place in source.numbers.places(number, region.start, region.end) if place.score > WITHIN]
        found += _readings(places, region, score)
    counted = _COUNTED.fullmatch(value)
    if counted:  # 2 years, two years
        found += _folded_hits(source, f"{_COUNTS[int(counted[1])]} {counted[2]}", region)
    return found


def _amounts_of(source: Source, value: str, region: Region) -> list[tuple[Decimal, float]]:
    """The amounts that a text can mean. A currency in it has to be in the document as well; with another unit it is no
    amount."""
    match = _AMOUNT.fullmatch(plain_digits(value))
    if not match or not (match[1] or match[2] or match[4] or set(match[3]) & set(".,'")):
        return []
    letters = match[1] or ""
    if letters.isalpha() and (f"{letters}{match[2]}{match[3]}" == value and (match[2] or not ways_to_write(letters))):
        return []  # a code such as F-0 or A12, not an amount
    for sign in (match[1], match[4]):
        if sign and sign != "%" and not _has_currency(source, sign, region):
            return []
    factor = Decimal(-1 if match[2] == "-" else 1).scaleb(-2 if match[4] == "%" else 0)
    return [(factor * number, min(score, DERIVED)) for number, score in values_of(match[3])]


def _has_currency(source: Source, sign: str, region: Region) -> bool:
    """Whether a text is a sign or code of a currency, and the document holds it in any way of writing it."""
    others = [way for way, _ in ways_to_write(sign)]
    ways = [sign, *others] if others else []
    return any(next(_standing_hits(source, way, region), None) for way in ways)


def _number_hits(source: Source, value: int | float | Decimal, region: Region) -> list[Hit]:
    number = number_of(value)
    if number is None:
        return []
    literals = {str(value), str(number)} | ({str(int(number))} if number == number.to_integral_value() else set())
    found = []
    for hit in _readings(source.numbers.places(number, region.start, region.end), region, 1.0):
        literal = source.text[hit.start : hit.end] in literals and hit.score >= PLAIN
        found.append(Hit("exact", hit.start, hit.end, 1.0) if literal else hit)
    exact = [hit for hit in found if hit.match == "exact"]
    return exact or found


def _readings(places: list[Reading], region: Region, score: float) -> list[Hit]:
    return [
        Hit("normalised", place.start, place.end, min(score, place.score))
        for place in places
        if region.start <= place.start and place.end <= region.end
    ]


def _best_of_each(hits: list[Hit]) -> list[Hit]:
    best: dict[int, Hit] = {}
    for hit in hits:
        if hit.start not in best or hit.score > best[hit.start].score:
            best[hit.start] = hit
    return list(best.values())


def _fuzzy_hits(source: Source, value: str, region: Region) -> list[Hit]:
    if source.spent or is_identifier(value):
        return []
    folded, needle = source.folded, fold(value).text
    least = least_of(len(needle)) if source.least is None else source.least
    found = align(needle, folded, folded.index(region.start), folded.index(region.end), least)
    source.work += found.work
    span = folded.span(found.start, found.end, whole=True) if found.end > 0 else None
    if span is None:
        return []
    start, end = to_words(source.text, *span)
    score = likeness(needle, fold(source.text[start:end]).text)
    if score < least or not same_digits(value, source.text[start:end]):
        return []
    return [Hit("fuzzy", start, end, round(score, 3))]
