"""The numbers that a text holds, by every convention in which it may have written them."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from pipeline.steps.support.currencies import CODES
from pipeline.steps.support.fold import is_bounded
from pipeline.steps.support.readings import AMBIGUOUS, COUNTED, DERIVED, MAX_READINGS, PLAIN, WITHIN, Reading

MAX_DIGITS = 40
"""Longer runs of digits and separators are no amounts. Also bounds the cost of a reading."""
_ZEROS = (
    "\u0660\u06f0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20\u1040\u17e0\u1810\uff10"
    "\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6"
)
"""Arabic-Indic, Persian, ten of India, Thai, Lao, Tibetan, Burmese, Khmer, Mongolian, full-width, mathematical."""
_TO_ASCII = str.maketrans("．，％＋－−（）\u00a0\u202f\u2009’\u066b\u066c", ".,%+--()   '.,") | {
    ord(zero) + digit: ord("0") + digit for zero in _ZEROS for digit in range(10)
}
MAX_CHUNKS = 512
"""Places looked at for one number."""
_MARKS = re.compile("[.,']")
_NO_MARKS = str.maketrans("", "", "., '")
_CHUNK = re.compile(r"\d+(?:[.,']\d+)*", re.ASCII)
_SPACED = re.compile(r"(?<![\d.,'])\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)", re.ASCII)
_GROUPED = re.compile(r"\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:\.\d{3})+|(?:'\d{3})+)(?:[.,]\d+)?|\d+(?:[.,]\d+)?", re.ASCII)
_BEFORE = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,4}$")
_TIMES = re.compile(
    r" ?(?:(?P<e12>万亿|兆|trillion)|(?P<e9>十亿|billion|bn\b|mrd\b)|(?P<e8>亿|億)|(?P<e7>千万)|"
    r"(?P<e6>百万|million|mio\b|mn\b)|(?P<e4>万|萬)|(?P<e3>千|thousand|[kK]\b)|(?P<p2>%|percent|per cent|个百分点))",
    re.IGNORECASE,
)
_CHINESE = re.compile("[零〇一二两三四五六七八九十百千万亿]{1,12}")
_CHINESE_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_FRACTIONS = dict(
    zip(
        "¼½¾⅕⅖⅗⅘⅛⅜⅝⅞⅒",
        map(Decimal, ["0.25", "0.5", "0.75", "0.2", "0.4", "0.6", "0.8", "0.125", "0.375", "0.625", "0.875", "0.1"]),
        strict=True,
    )
)
_MIXED = re.compile(rf"(?:(?<![\d.,/])(\d{{1,4}})\s?)?([{''.join(_FRACTIONS)}])", re.ASCII)
_STARS = re.compile("★+|⭐+")
_BEFORE_DIGITS = frozenset((*CODES, "RM", "US", "HK", "RS", "KR", "RP", "R", "X", "NO", "QTY"))


def plain_digits(text: str) -> str:
    """The text with full-width and other decimal digits, signs and blanks as ASCII has them; no offset moves."""
    return text if text.isascii() else text.translate(_TO_ASCII)


class Numbers:
    """The numbers of a text, given with plain digits. Read is only what has the digits of a number that is asked for:
    whatever separators, zeros, percent signs and multipliers do, the other digits stay."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._chunks: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for match in _CHUNK.finditer(plain):
            chunk, place = match.group(), match.span()
            digits = chunk.translate(_NO_MARKS)
            self._chunks[digits.strip("0")].append(place)
            if len(digits) + 1 < len(chunk) <= MAX_DIGITS:
                for part in {part.strip("0") for part in _MARKS.split(chunk)}:
                    self._chunks[part].append(place)
        for match in _SPACED.finditer(plain):
            self._chunks[match.group().translate(_NO_MARKS).strip("0")].append(match.span())
        for places in self._chunks.values():
            places.sort()
        self._counted: dict[Decimal, list[Reading]] = defaultdict(list)
        for value, reading in () if plain.isascii() else _counted(plain):
            self._counted[value].append(reading)

    def places(self, number: Decimal, low: int, high: int) -> list[Reading]:
        """Where the text says a number between two offsets, the first MAX_READINGS places."""
        digits = "".join(map(str, number.as_tuple().digits)).strip("0")
        chunks = self._chunks.get(digits, ())
        begin = bisect_left(chunks, (low, 0))
        read: list[Reading] = []
        for start, end in chunks[begin : begin + MAX_CHUNKS]:
            if end > high or len(read) >= MAX_READINGS:
                break
            read += [seen for value, seen in _read(self._plain, start, end) if value == number]
        read += self._counted.get(number, [])
        return [seen for seen in read if low <= seen.start and seen.end <= high][:MAX_READINGS]


def number_of(value: int | float | Decimal) -> Decimal | None:
    """A JSON number as the decimal that it shows; None for what no document writes out."""
    if isinstance(value, int):
        return Decimal(value) if value.bit_length() <= MAX_DIGITS * 4 else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    number = Decimal(str(value))
    return number if number.is_finite() else None


def values_of(chunk: str) -> list[tuple[Decimal, float]]:
    """What digits with separators can mean; nothing if they are no number by any convention."""
    if len(chunk) > MAX_DIGITS:
        return []
    if chunk.isdigit():
        padded = len(chunk) > 1 and chunk[0] == "0"
        return [(Decimal(chunk), WITHIN if padded else PLAIN)]
    if not _GROUPED.fullmatch(chunk):
        return []
    marks = [character for character in chunk if not character.isdigit()]
    last = marks[-1]
    if (len(marks) > 1 and len(set(marks)) == 1) or last == "'":
        return [(Decimal(re.sub(r"[.,']", "", chunk)), PLAIN)]
    head, _, tail = chunk.rpartition(last)
    point = Decimal(f"{re.sub(r'[.,]', '', head)}.{tail}".replace("'", ""))
    if len(marks) == 1 and len(tail) == 3 and len(head) <= 3 and head[0] != "0":
        return [
            (point, PLAIN if last == "." else AMBIGUOUS),
            (Decimal(head + tail), PLAIN if last == "," else AMBIGUOUS),
        ]
    return [(point, PLAIN)]


def _read(text: str, start: int, end: int) -> Iterator[tuple[Decimal, Reading]]:
    if not stands_free(text, start, end):
        return
    chunk = text[start:end]
    values = values_of(chunk.replace(" ", ""))
    if not values:
        yield from _parts(text, start, end)
        return
    if start and text[start - 1] == "." and chunk.isdigit() and not text[start - 2 : start - 1].isalnum():
        start, values = start - 1, [(Decimal(f"0.{chunk}"), DERIVED)]
    if _compound(text, start, end):
        values = [(value, min(score, WITHIN)) for value, score in values]
    yield from _signed(text, start, end, values)


def stands_free(text: str, start: int, end: int) -> bool:
    """Whether digits are no part of a word: B12 and 3f2 are, 12 kg, 12kg, 12x30, RM12 and 12元 are not."""
    if start and is_bounded(text[start - 1]) and not text[start - 1].isdigit():
        word = _BEFORE.search(text, max(0, start - 4), start)
        if not word or word.group().upper() not in _BEFORE_DIGITS:
            return False
    if end < len(text) and text[end] in _FRACTIONS:
        return False
    if end < len(text) and is_bounded(text[end]):
        tail = text[end : end + 12]
        letters = len(tail) - len(tail.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        return not tail[letters : letters + 1].isdigit() or tail[:letters] in ("x", "X")
    return True


def _parts(text: str, start: int, end: int) -> Iterator[tuple[Decimal, Reading]]:
    """A list without blanks (18,20,22) or a date (1.12.2018): each part counts. A version (1.2.3) has none."""
    chunk = text[start:end]
    dotted = "." in chunk
    parts = list(re.finditer(r"\d+", chunk))
    if len(chunk) > MAX_DIGITS or (dotted and not re.fullmatch(r"\d{1,2}\.\d{1,2}\.(\d{2}|\d{4})", chunk)):
        return
    for part in parts:
        yield Decimal(part.group()), Reading(start + part.start(), start + part.end(), WITHIN)


def _compound(text: str, start: int, end: int) -> bool:
    """Whether digits go on beyond a slash, colon or hyphen: a date, a time, a fraction, a range, a telephone number."""
    before = start > 1 and text[start - 1] in "/:-" and text[start - 2].isdigit()
    return before or (end + 1 < len(text) and text[end] in "/:-" and text[end + 1].isdigit())


def _signed(text: str, start: int, end: int, values: list[tuple[Decimal, float]]) -> Iterator[tuple[Decimal, Reading]]:
    before, after = text[start - 1] if start else "", text[end : end + 1]
    currency = before in ("$", "€", "£", "¥", "￥")
    sign = text[start - 2 : start - 1] if currency and start > 1 else before
    lead = start - 1 - currency
    leading = sign == "-" and not (lead > 0 and text[lead - 1].isalnum())
    trailing = after == "-" and not text[end + 1 : end + 2].isalnum()
    bracketed = before == "(" and after == ")"
    times = _TIMES.match(text, end)
    for value, score in values:
        if leading or trailing:
            first, last = (lead, end) if leading else (start, end + 1)
            yield -value, Reading(first, last, score)
            yield value, Reading(start, end, min(score, COUNTED))
        else:
            yield value, Reading(start, end, score)
        if bracketed:
            yield -value, Reading(start - 1, end + 1, min(score, DERIVED))
        if times:
            power = -2 if times.lastgroup == "p2" else int((times.lastgroup or "e0")[1:])
            signed = -value if leading else value
            yield signed.scaleb(power), Reading(lead if leading else start, times.end(), min(score, DERIVED))


def _counted(text: str) -> Iterator[tuple[Decimal, Reading]]:
    """Numerals of Chinese, fractions of one character (2½), stars that are counted. A single 一 is mostly a part of
    another word."""
    for match in _CHINESE.finditer(text):
        value = chinese_number(match.group())
        if value is not None and match.group() not in ("一", "万", "千", "百", "亿"):
            yield Decimal(value), Reading(match.start(), match.end(), COUNTED)
    for match in _MIXED.finditer(text):
        yield int(match[1] or 0) + _FRACTIONS[match[2]], Reading(match.start(), match.end(), DERIVED)
    for match in _STARS.finditer(text):
        yield Decimal(len(match.group())), Reading(match.start(), match.end(), COUNTED)


def chinese_number(numeral: str) -> int | None:
    """The value of a Chinese numeral: 三百二十万 is 3,200,000, 二〇一八 is 2018; None if it is none."""
    if not set(numeral) - set(_CHINESE_DIGITS):
        return int("".join(str(_CHINESE_DIGITS[digit]) for digit in numeral))
    total = section = digit = 0
    for character in numeral:
        if character in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[character]
        elif character in _CHINESE_UNITS:
            section += (digit or 1) * _CHINESE_UNITS[character]
            digit = 0
        else:
            total = (total + section + digit) * (10**4 if character == "万" else 10**8)
            section = digit = 0
    return total + section + digit
