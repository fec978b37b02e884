"""Same: whether a value that was found is the one that was expected, exactly or in another notation.

Exact is equality of JSON values (1 and 1.0 are equal, 1 and true are not) and of texts by code point. Normalised adds
what changes no meaning: case, width, blanks and punctuation of texts; notations of numbers, amounts of money and dates.
"""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from pipeline.records import JsonValue
from pipeline.steps.support.currencies import ways_to_write
from pipeline.steps.support.dates import dates_of, is_swapped
from pipeline.steps.support.fold import fold, foldable, same_digits
from pipeline.steps.support.fuzzy import likeness
from pipeline.steps.support.numbers import number_of, plain_digits, values_of
from pipeline.steps.support.readings import PLAIN, Reading

Equality = Literal["exact", "normalised", "no"]

MAX_TEXT = 10_000
"""Characters of a text that are compared in another way than for equality."""
ALMOST = 0.99
"""The most that two different texts are alike: their digits may be grouped differently."""
RELATIVE = 1e-9
"""Numbers that differ by less than this share are the same after rounding."""

_SIGN = r"([^\d\s.,+()-]{1,4})?\s?"
_AMOUNT = re.compile(rf"{_SIGN}([-+(]?)\s?{_SIGN}(\d[\d.,']*)\s?(\)?)\s?(%|[^\d\s.,+()-]{{1,4}})?")
_DECIMALS = re.compile(r"[.,](\d+)$")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}")


def has_value(value: JsonValue) -> bool:
    """Whether a leaf says anything: null and text of blanks do not."""
    return value is not None and not (isinstance(value, str) and not value.strip())


def equality(expected: JsonValue, found: JsonValue) -> Equality:
    """How two leaves are equal."""
    if _is_exact(expected, found):
        return "exact"
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None or found is None:
        return "no"
    return "normalised" if _is_same(expected, found) else "no"


def alike(expected: JsonValue, found: JsonValue) -> float:
    """How similar two leaves are, from 0 to 1: the normalised Indel similarity of their folded texts, 1 − edits / both
    lengths, where an edit puts in or takes out one character. Other values are 1 if they are the same, else 0."""
    if equality(expected, found) != "no":
        return 1.0
    if not isinstance(expected, str) or not isinstance(found, str):
        return 0.0
    one, other = text_key(expected[:MAX_TEXT]), text_key(found[:MAX_TEXT])
    return min(likeness(one, other), ALMOST) if one and other else 0.0


@lru_cache(maxsize=2048)
def text_key(text: str) -> str:
    """What texts have in common that differ in case, width, blanks or punctuation only; of one or two letters and of
    signed numbers every mark counts."""
    cut = text[:MAX_TEXT].strip()
    folded = fold(cut).text if foldable(cut) else ""
    return folded or " ".join(unicodedata.normalize("NFKC", cut).casefold().split())


def _is_exact(expected: JsonValue, found: JsonValue) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, str) or isinstance(found, str):
        return type(expected) is type(found) and bool(expected == found)
    return bool(expected == found)


def _is_same(expected: JsonValue, found: JsonValue) -> bool:
    if isinstance(expected, str) and isinstance(found, str):
        return max(len(expected), len(found)) <= MAX_TEXT and _same_text(expected.strip(), found.strip())
    if isinstance(expected, str) or isinstance(found, str):
        text, number = (expected, found) if isinstance(expected, str) else (found, expected)
        return _says(str(text).strip(), number)
    return math.isclose(expected, found, rel_tol=RELATIVE) if _are_finite(expected, found) else False


def _are_finite(*values: JsonValue) -> bool:
    """Whether all are numbers that doubles hold."""
    try:
        return all(isinstance(value, int | float | Decimal) and math.isfinite(value) for value in values)
    except OverflowError:
        return False


def _same_text(expected: str, found: str) -> bool:
    if _MOMENT.match(expected) or _MOMENT.match(found):
        return _moment(expected) is not None and _moment(expected) == _moment(found)
    if text_key(expected) == text_key(found) and same_digits(expected, found):
        return True
    return _same_day(expected, found) or _same_amount(expected, found)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _same_day(expected: str, found: str) -> bool:
    """Whether both are one date. One that can be read in two ways counts as either, unless the other is written by the
    other order of day and month."""
    ours, theirs = dates_of(expected), dates_of(found)
    if not ours.keys() & theirs.keys():
        return False
    plain = plain_digits(found)
    return not is_swapped(expected, plain, Reading(0, len(plain), PLAIN))


def _same_amount(expected: str, found: str) -> bool:
    """Whether both are one amount. A currency that only one of them names is no difference, two currencies are; without
    any, 9.00 is 9 but 1.10 is not 1.1, which may be a version or a chapter."""
    one, other = _amount(expected), _amount(found)
    if one is None or other is None or not one[0] & other[0]:
        return False
    if "%" in (one[1], other[1]) and one[1] != other[1]:
        return False
    if one[1] and other[1]:
        return one[1] == other[1] or bool(_currencies(one[1]) & _currencies(other[1]))
    whole = not (one[2] and other[2]) and not (one[2] + other[2]).strip("0")
    return bool(one[1] or other[1]) or one[2] == other[2] or whole


def _amount(text: str) -> tuple[set[Decimal], str, str] | None:
    """What a text can mean as an amount, its currency or percent sign, and the digits behind its decimal mark."""
    match = _AMOUNT.fullmatch(plain_digits(text))
    if match is None or (match[2] == "(") != bool(match[5]):
        return None
    signs = [sign for sign in (match[1], match[3], match[6]) if sign]
    if len(signs) > 1 or any(sign != "%" and not ways_to_write(sign) for sign in signs):
        return None
    factor = -1 if match[2] in ("-", "(") else 1
    values = {factor * value for value, score in values_of(match[4]) if score >= PLAIN}
    decimals = _DECIMALS.search(match[4])
    return (values, signs[0] if signs else "", decimals[1] if decimals else "") if values else None


def _currencies(sign: str) -> set[str]:
    return {sign, *(way for way, _ in ways_to_write(sign))}


def _says(text: str, number: JsonValue) -> bool:
    """Whether a text is a number in some notation."""
    amount, value = _amount(text), number_of(number) if not isinstance(number, bool) else None
    return amount is not None and amount[1] != "%" and value in amount[0]
