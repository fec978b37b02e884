"""Currencies as people print them: signs, codes and names become ISO 4217 codes, or stay as they are.

Signs and names are those of CLDR (babel). A sign that stands for several currencies of today somewhere in the world is
nobody's without a declared default, whatever CLDR has for one locale: `$` on a bill is not US-American for being read
by one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pipeline.schema.locales.letters import visible
from pipeline.schema.locales.numbers import MAX_PRINTED, locale_of

_DOLLARS = (
    "ARS AUD BBD BMD BND BSD BZD CAD CLP COP CUP FJD GYD HKD JMD KYD LRD MXN NAD NZD SBD SGD SRD TTD TWD USD UYU XCD"
)
AMBIGUOUS: Mapping[str, frozenset[str]] = {
    sign: frozenset(codes.split())
    for sign, codes in {
        "$": _DOLLARS,
        "£": "EGP FKP GBP GIP LBP SDG SHP SSP SYP",
        "¥": "CNY JPY",
        "元": "CNY HKD JPY MOP TWD",
        "kr": "DKK ISK NOK SEK",
        "Rs": "INR LKR MUR NPR PKR SCR",
        "Br": "BYN ETB",
        "C$": "CAD NIO",
        "K": "MMK PGK ZMW",
        "L": "HNL MDL",
        "S": "PEN SOS",
        "F": "BIF CDF DJF GNF KMF RWF XAF XOF XPF",
        "Fr": "CHF DJF",
        "FCFA": "XAF XOF",
        "CFA": "XAF XOF",
        "SR": "SAR SCR",
        "LS": "LBP SYP",
        "din": "DZD RSD",
        "дин": "RSD MKD",
        "сом": "KGS TJS UZS",
        "ر": "IRR OMR PKR SAR",
    }.items()
}
"""Signs of several currencies of today; a test holds it against all locales of CLDR."""

_SIGNS = (
    "€ EUR,₹ INR,₩ KRW,₪ ILS,₫ VND,₱ PHP,₽ RUB,₺ TRY,₸ KZT,₴ UAH,₦ NGN,₾ GEL,₲ PYG,₮ MNT,₼ AZN,₡ CRC,₭ LAK,฿ THB,"
    "৳ BDT,៛ KHR,֏ AMD,؋ AFN,円 JPY,zł PLN,Kč CZK,Ft HUF,RM MYR,Rp IDR,R$ BRL,US$ USD,CA$ CAD,A$ AUD,AU$ AUD,HK$ HKD,"
    "NZ$ NZD,NT$ TWD,MX$ MXN,CN¥ CNY,JP¥ JPY,SFr CHF,CHF CHF,RMB CNY"
)
SIGNS: Mapping[str, str] = dict(pair.split() for pair in _SIGNS.split(","))
"""Signs that are known whatever the locale, each of one currency. RMB, not of ISO 4217, is one."""


@dataclass(frozen=True, slots=True)
class CurrencyStyle:
    """`locale` knows signs and names of its own; `default` says in order what an ambiguous sign stands for."""

    locale: str = ""
    default: tuple[str, ...] = ()


def read_currency(text: str, style: CurrencyStyle) -> str | None:
    """The ISO 4217 code of a printed currency, None if it has no reading, or several."""
    if len(text) > MAX_PRINTED:
        return None
    sign = _sign(text)
    if sign.upper() in _codes() and sign.isascii():
        return sign.upper()
    meant = AMBIGUOUS.get(sign)
    if meant is not None:
        return next((code for code in style.default if code in meant), None)
    if sign in SIGNS:
        return SIGNS[sign]
    signs, names = _known(style.locale) if style.locale else ({}, {})
    found = signs.get(sign) or names.get(_name(text)) or frozenset()
    return next(iter(found)) if len(found) == 1 else None


def is_code(code: object) -> bool:
    """Whether ISO 4217 knows or knew a code."""
    return isinstance(code, str) and code in _codes()


def _sign(text: str) -> str:
    """One form for the spellings of a sign: compatibility characters, blanks and a closing dot away."""
    return "".join(unicodedata.normalize("NFKC", visible(text)).split()).removesuffix(".")


def _name(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split())


@lru_cache(maxsize=1)
def _codes() -> frozenset[str]:
    from babel.numbers import list_currencies

    return frozenset(list_currencies())


@lru_cache(maxsize=1)
def current() -> frozenset[str]:
    """The codes that are legal tender somewhere today, as CLDR has it."""
    from babel.core import get_global

    spans = [span for spans in get_global("territory_currencies").values() for span in spans]
    return frozenset(code for code, _since, until, tender in spans if until is None and tender)


@lru_cache(maxsize=256)
def _known(locale: str) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Signs and names of a locale, of currencies of today."""
    from babel.numbers import get_currency_name

    known = locale_of(locale)
    signs: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    for code in sorted(current()):
        if code in known.currency_symbols:
            signs.setdefault(_sign(known.currency_symbols[code]), set()).add(code)
        for count in (None, 1, 2, 5):
            names.setdefault(_name(get_currency_name(code, count, known)), set()).add(code)
    frozen = [{text: frozenset(codes) for text, codes in table.items() if text} for table in (signs, names)]
    return frozen[0], frozen[1]
