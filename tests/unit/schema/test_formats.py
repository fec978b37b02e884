"""Formats against independent references: Python's own parsers, jsonschema's checks, and the examples of the RFCs."""

from __future__ import annotations

import datetime
import ipaddress
import random
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from format_cases import BAD, GOOD
from jsonschema import Draft202012Validator

from pipeline.schema.formats import EXACT, OUTLINES, format_checker, is_checked, text_of_format
from pipeline.schema.validator import compile_pattern, validator_of


def judged(name: str, text: str) -> bool:
    return bool(validator_of({"format": name}).is_valid(text))


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(GOOD))
def test_good_ones_are_accepted_and_in_the_grammar(name: str, text: str) -> None:
    assert judged(name, text)
    pattern = (EXACT | OUTLINES)[name]
    assert compile_pattern(f"^(?:{pattern})$").search(text)


@pytest.mark.parametrize(("name", "text"), cases(BAD))
def test_bad_ones_are_refused(name: str, text: str) -> None:
    assert not judged(name, text)
    if name in EXACT:
        assert not compile_pattern(f"^(?:{EXACT[name]})$").search(text)


def _date(text: str) -> bool:
    try:
        return bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _time(text: str) -> bool:
    found = re.fullmatch(
        r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([Zz]|[+-]([0-9]{2}):([0-9]{2}))", text, flags=re.ASCII
    )
    if found is None:
        return False
    hour, minute, second, zone_hour, zone_minute = (int(found[index] or 0) for index in (1, 2, 3, 6, 7))
    return hour < 24 and minute < 60 and second < 60 and zone_hour < 24 and zone_minute < 60


def _address(kind: Callable[[str], Any]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        try:
            return "%" not in text and "/" not in text and text.isascii() and bool(kind(text).compressed)
        except ValueError:
            return False

    return parses


def _uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower() and text.isascii()
    except ValueError:
        return False


def _pointer(text: str) -> bool:
    return text == "" or (text.startswith("/") and "~" not in text.replace("~0", "").replace("~1", ""))


def _relative(text: str) -> bool:
    digits = re.match("0|[1-9][0-9]*", text)
    return digits is not None and (text[digits.end() :] == "#" or _pointer(text[digits.end() :]))


REFERENCES: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda text: _date(text[:10]) and text[10:11] in ("T", "t") and _time(text[11:]),
    "uuid": _uuid,
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": _address(ipaddress.IPv6Address),
    "json-pointer": _pointer,
    "relative-json-pointer": _relative,
}
ALPHABET = '0123456789abfFgzZTtPYMDHSW:.-+/~#@%[] é٤\n"\\'


def mutated(rng: random.Random, text: str) -> str:
    """A text with a few characters changed, put in, taken out or swapped."""
    letters = list(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(letters) + 1)
        what = rng.random()
        if what < 0.4:
            letters[at : at + 1] = [rng.choice(ALPHABET)]
        elif what < 0.65:
            letters.insert(at, rng.choice(ALPHABET))
        elif what < 0.85:
            del letters[at : at + 1]
        else:
            part = letters[at : at + rng.choice([1, 2, 5])]
            letters[at:at] = part
    return "".join(letters)


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_exact_formats_agree_with_an_independent_parser(name: str) -> None:
    rng = random.Random(name)
    conforms = format_checker().conforms
    accepted = 0
    for _ in range(4000):
        text = mutated(rng, rng.choice(GOOD[name] + BAD[name]))
        assert conforms(text, name) == REFERENCES[name](text), text
        accepted += REFERENCES[name](text)
    assert accepted > 50  # so that both sides were tried


SLOW = {"iri", "iri-reference"}
"""jsonschema takes up to 20 ms for one of them."""
STRICTER = {
    "email": "jsonschema only looks for an @",
    "idn-email": "jsonschema only looks for an @",
    "relative-json-pointer": "jsonschema refuses 10",
    "date": "jsonschema takes the basic form and other digits in some versions of Python",
    "ipv6": "jsonschema takes a zone",
    "uuid": "jsonschema takes what uuid.UUID takes",
    "time": "jsonschema takes a leap second",
    "date-time": "jsonschema takes a leap second",
    "json-pointer": "",
    "duration": "isoduration takes fractions and combinations that RFC 3339 does not know",
}


@pytest.mark.parametrize("name", sorted({*EXACT, *OUTLINES} - {"idn-email"}))
def test_where_jsonschema_refuses_so_do_we(name: str) -> None:
    rng = random.Random(name)
    library = Draft202012Validator.FORMAT_CHECKER
    different = 0
    for _ in range(100 if name in SLOW else 2000):
        text = mutated(rng, rng.choice(GOOD[name] + BAD[name]))
        ours, theirs = format_checker().conforms(text, name), library.conforms(text, name)
        if ours and not theirs:
            assert name == "relative-json-pointer", text
        different += ours != theirs
    assert different == 0 or name in STRICTER or name in OUTLINES


@pytest.mark.parametrize("name", sorted(OUTLINES))
def test_the_outline_holds_all_that_the_validator_accepts(name: str) -> None:
    rng = random.Random(name)
    outline = compile_pattern(f"^(?:{OUTLINES[name]})$")
    for _ in range(100 if name in SLOW else 2000):
        text = mutated(rng, rng.choice(GOOD[name] + BAD[name]))
        assert outline.search(text) or not judged(name, text), text


def test_formats_that_nobody_knows_are_annotations() -> None:
    assert judged("made-up", "anything")
    assert not is_checked("made-up")
    assert text_of_format("made-up") is None
    for name in {*EXACT, *OUTLINES}:
        assert is_checked(name)
        known = text_of_format(name)
        assert known is not None
        assert known.exact == (name in EXACT)


def test_only_strings_have_a_format() -> None:
    for name in {*EXACT, *OUTLINES, "made-up"}:
        values: list[Any] = [None, True, 1, 1.5, [], {}]
        for value in values:
            assert validator_of({"format": name}).is_valid(value)
