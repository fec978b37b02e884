"""Formats as patterns: one definition for the validator and for the grammar, so that the two agree.

A back end's own idea of a format is not used: both refuse some values that the validator accepts, each others. Exact
formats are judged by their pattern alone (`jsonschema` refuses the relative-json-pointer 10, for one); of the others
the pattern is only the outline, which the grammar holds, and `jsonschema`'s check comes on top. Formats that stand in
neither table are annotations: nobody checks them.

Sources: RFC 3339 (date, time, date-time, duration; no leap seconds, as jsonschema has it), RFC 4122 (uuid), RFC 2673
(ipv4), RFC 4291 (ipv6), RFC 6901 (json-pointer), RFC 5321 without its length limits (email), RFC 3986 (uri).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from jsonschema import Draft202012Validator, FormatChecker

from pipeline.schema.pattern.ast import Node
from pipeline.schema.pattern.parse import parse
from pipeline.schema.pattern.search import Finder, compile_finder

_DAYS = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_BY_FOUR = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP = f"(?:00{_BY_FOUR}|(?:0[1-9]|[1-9][0-9]){_BY_FOUR}|{_BY_FOUR}00)"
_DATE = f"(?:{_YEAR}-{_DAYS}|{_LEAP}-02-29)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H = "[0-9A-Fa-f]{1,4}"
_LAST = f"(?:{_H}:{_H}|{_IPV4})"
_IPV6 = "|".join(
    [
        f"(?:{_H}:){{6}}{_LAST}",
        f"::(?:{_H}:){{5}}{_LAST}",
        f"(?:{_H})?::(?:{_H}:){{4}}{_LAST}",
        *(f"(?:(?:{_H}:){{0,{n}}}{_H})?::(?:{_H}:){{{4 - n}}}{_LAST}" for n in (1, 2, 3)),
        f"(?:(?:{_H}:){{0,4}}{_H})?::{_LAST}",
        f"(?:(?:{_H}:){{0,5}}{_H})?::{_H}",
        f"(?:(?:{_H}:){{0,6}}{_H})?::",
    ]
)
_ATOM = r'[^\x00-\x20\x7f@"(),:;<>\[\]\\]+'
_POINTER = "(?:/(?:[^~/]|~[01])*)*"
_DURATION = (
    "P(?:[0-9]+W"
    "|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
    "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))"
)

EXACT = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "email": rf'(?:{_ATOM}|"[^"\\\x00-\x1f]+")@(?:{_ATOM}|\[[^\[\]\x00-\x20]+\])',
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
}
EXACT["idn-email"] = EXACT["email"]

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?"
_URI_CHARACTER = r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_IRI_CHARACTER = r'[^\x00-\x20\x7f<>"{}|\\^`]'
OUTLINES = {
    "hostname": rf"{_LABEL}(?:\.{_LABEL})*\.?",
    "uri": rf"[A-Za-z][A-Za-z0-9+\-.]*:{_URI_CHARACTER}*",
    "uri-reference": rf"{_URI_CHARACTER}*",
    "iri": rf"[A-Za-z][A-Za-z0-9+\-.]*:{_IRI_CHARACTER}*",
    "iri-reference": rf"{_IRI_CHARACTER}*",
}


Check = Callable[[object], object]
FORMAT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class FormatText:
    """The whole strings of a format; not `exact`: and some more."""

    node: Node
    exact: bool


@lru_cache
def text_of_format(name: str) -> FormatText | None:
    """What is known of a format's strings; None if nothing is."""
    pattern = EXACT.get(name) or OUTLINES.get(name)
    return None if pattern is None else FormatText(parse(f"^(?:{pattern})$"), name in EXACT)


def is_checked(name: str) -> bool:
    """Whether the validator refuses anything because of a format."""
    return name in EXACT or name in OUTLINES or name in Draft202012Validator.FORMAT_CHECKER.checkers


@lru_cache
def format_checker() -> FormatChecker:
    """Our patterns, and on top of the outlines jsonschema's checks, which alone let a line feed end a uri."""
    checker = FormatChecker(formats=())
    checker.checkers = dict(Draft202012Validator.FORMAT_CHECKER.checkers)
    for name, pattern in {**EXACT, **OUTLINES}.items():
        finder = compile_finder(f"^(?:{pattern})$")
        library, raises = (_anything, ()) if name in EXACT else checker.checkers.get(name, (_anything, ()))

        def conforms(value: object, finder: Finder = finder, library: Check = library) -> bool:
            return not isinstance(value, str) or (finder.finds(value, FORMAT_SECONDS) and bool(library(value)))

        checker.checkers[name] = (conforms, raises)
    return checker


def _anything(_value: object) -> bool:
    return True
