"""Which signs and words say which currency (ISO 4217): the signs of `schema.locales`, and names that documents use."""

from __future__ import annotations

from collections import defaultdict

from pipeline.schema.locales.currencies import AMBIGUOUS, SIGNS
from pipeline.steps.support.readings import DERIVED, WITHIN

_WORDS = {
    "EUR": "euro euros Euro Euros EURO",
    "USD": "美元 dollars dollar",
    "GBP": "pounds sterling",
    "CNY": "人民币 ￥",
    "JPY": "日元 yen ￥",
    "HKD": "港元 港币",
    "TWD": "新台币",
    "KRW": "원",
    "MYR": "ringgit Ringgit",
    "INR": "Rs. rupees Rupees",
    "PKR": "Rs. rupees Rupees",
    "CHF": "Fr. SFr. Franken francs",
    "RUB": "руб руб. рублей",
    "UAH": "грн грн.",
    "PLN": "zl złotych",
    "SEK": "kr. kronor",
    "NOK": "kr. kroner",
    "DKK": "kr. kroner",
    "THB": "บาท",
    "BRL": "reais",
}

_WAYS: dict[str, list[str]] = defaultdict(list)
"""Code → signs and words."""
_MEANT: dict[str, list[str]] = defaultdict(list)
"""Sign or word → codes."""
for _code, _sign in [
    *((code, sign) for sign, code in SIGNS.items() if sign != code),
    *((code, sign) for sign, codes in AMBIGUOUS.items() for code in sorted(codes)),
    *((code, word) for code, words in _WORDS.items() for word in words.split()),
]:
    _WAYS[_code].append(_sign)
    _MEANT[_sign].append(_code)

CODES = frozenset(_WAYS)
"""The codes that have another way of writing."""


def ways_to_write(value: str) -> list[tuple[str, float]]:
    """Other ways to write a currency that is given by code or by sign, with how surely each means it: a `$` is of many
    countries. Nothing for what is no currency."""
    codes = [value] if value in CODES else _MEANT.get(value, [])
    own = WITHIN if len(codes) > 1 else DERIVED
    ways: dict[str, float] = {}
    for code in codes:
        for way in (code, *_WAYS[code]):
            score = min(own, WITHIN if len(_MEANT.get(way, ())) > 1 else DERIVED)
            if way != value:
                ways[way] = max(score, ways.get(way, 0.0))
    return list(ways.items())
