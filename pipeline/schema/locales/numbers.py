"""Numbers as people print them, read exactly or not at all.

babel knows the signs of a locale; its `parse_decimal` is not used: it takes `1.23` for 123 in German and drops group
signs wherever they stand. Here groups have to be whole, of one sign, and nothing may be left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pipeline.schema.locales.letters import BLANKS, ascii_digits, visible

MAX_PRINTED = 80
"""Characters of a printed number, date or currency; longer texts are none."""

_BLANK = re.compile(f"[{BLANKS}]".replace("\t", ""))
"""What may group digits: a tab parts columns."""
_WIDE = str.maketrans("．，－−﹣’＇", ".,---''")
_DASHES = re.compile("[-–—]{1,2}")


@dataclass(frozen=True, slots=True)
class Signs:
    """One way to print numbers: decimal sign, group signs (a blank stands for all), sizes of the last group and of the
    others."""

    decimal: str
    groups: frozenset[str]
    last: int = 3
    others: int = 3


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """All ways that are allowed. `fraction`: so many digits after the decimal sign at most. `around`: texts that may
    stand before or after the number."""

    signs: tuple[Signs, ...]
    fraction: int | None = None
    around: tuple[str, ...] = ()


COMMA = (Signs(",", frozenset(".' ")),)
POINT = (Signs(".", frozenset(",' ")),)


@lru_cache(maxsize=256)
def signs_of(locale: str) -> tuple[Signs, ...]:
    """The ways of a locale: with ASCII digits, and with its own where they come with signs of their own.

    Raises:
        ValueError: nobody knows the locale.
    """
    from babel.numbers import get_decimal_symbol, get_group_symbol

    known = locale_of(locale)
    last, others = known.decimal_formats[None].grouping
    found: dict[Signs, None] = {}
    for system in ("latn", "default"):
        group = _plain(get_group_symbol(known, numbering_system=system))
        decimal = _plain(get_decimal_symbol(known, numbering_system=system))
        found[Signs(decimal, frozenset({group, " "}) - {decimal}, last, others)] = None
    return tuple(found)


def locale_of(name: str) -> Any:
    """A locale of babel by its name, such as de, en_GB or zh_Hant_TW; a hyphen does for an underscore.

    Raises:
        ValueError: nobody knows it.
    """
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(name.replace("-", "_"))
    except (ValueError, TypeError, AttributeError, UnknownLocaleError) as error:
        raise ValueError(f"unknown locale {str(name)[:40]!r}. Write it like de, en_GB or zh_Hant_TW") from error


def read_number(text: str, style: NumberStyle) -> Decimal | None:
    """The number that a text prints, None if it has no reading, or two.

    A sign may stand before the number, or a minus after one with decimals. `12,-` and `12,—` are 12. A whole part that
    begins with 0 is no number but 0 itself: codes begin so.
    """
    if len(text) > MAX_PRINTED:
        return None
    plain = _plain(ascii_digits(visible(text))).strip()
    found = {value for body, negative in _bare(plain, style.around) for value in _values(body, negative, style)}
    return found.pop() if len(found) == 1 else None


def _plain(text: str) -> str:
    return _BLANK.sub(" ", visible(text).translate(_WIDE))


def _bare(text: str, around: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """(what is left without sign and the texts around it, whether the sign is a minus)."""
    signs = ""
    for _ in range(2):
        for mark in sorted(map(_plain, around), key=len, reverse=True):
            if mark and text.startswith(mark):
                text = text[len(mark) :].strip()
            if mark and text.endswith(mark):
                text = text[: -len(mark)].strip()
        if not signs and text.startswith(("+", "-")):
            signs, text = text[0], text[1:].strip()
    if not signs and re.search("[.,\u066b][0-9]+-$", text):
        signs, text = "-", text[:-1]
    yield text, signs == "-"


def _values(text: str, negative: bool, style: NumberStyle) -> Iterator[Decimal]:
    for signs in style.signs:
        whole, point, fraction = text.partition(signs.decimal)
        digits = _ungrouped(whole, signs) if whole else "0"
        if point and _DASHES.fullmatch(fraction) and whole:
            point = fraction = ""
        if digits is None or (point and not re.fullmatch("[0-9]+", fraction)) or not (whole or point):
            continue
        if style.fraction is not None and len(fraction) > style.fraction:
            continue
        value = Decimal(digits + ("." + fraction if point else ""))
        yield -value if negative and value else value


def _ungrouped(whole: str, signs: Signs) -> str | None:
    """The digits of a whole part; None if it is not well grouped."""
    if not re.fullmatch("[0-9]+", whole):
        used = {character for character in whole if not character.isdecimal()}
        if len(used) != 1 or not used <= signs.groups or not whole.replace(next(iter(used)), "").isdecimal():
            return None
        first, *middle, last = whole.split(used.pop())
        sizes = 1 <= len(first) <= signs.others and all(len(group) == signs.others for group in middle)
        if not sizes or len(last) != signs.last:
            return None
        whole = "".join([first, *middle, last])
    return whole if whole == "0" or not whole.startswith("0") else None
