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
from jsonschema import Draft202012Validator

from pipeline.schema.formats import EXACT, OUTLINES, format_checker, is_checked, text_of_format
from pipeline.schema.validator import compile_pattern, validator_of

GOOD: dict[str, list[str]] = {
    "date": ["2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01", "9999-12-31", "1600-02-29"],
    "time": ["00:00:00Z", "23:59:59.999+23:59", "12:00:00z", "12:00:00-00:00", "08:30:06.283185Z"],
    "date-time": ["1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00", "2024-02-29t00:00:00z"],
    "duration": ["P1Y2M3DT4H5M6S", "PT0S", "P1W", "PT1H", "P4DT12H30M5S", "P1M", "PT1M"],
    "uuid": [
        "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
        "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
        "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
    ],
    "ipv4": ["0.0.0.0", "255.255.255.255", "192.168.0.1"],
    "ipv6": [
        "::",
        "::1",
        "1::",
        "2001:db8::8:800:200c:417a",
        "::ffff:192.0.2.1",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:1.2.3.4",
        "1::8",
    ],
    "email": ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', "a@[127.0.0.1]", "a@b"],
    "json-pointer": ["", "/", "/foo/0", "/a~1b", "/m~0n", "/ ", "//", '/k"l'],
    "relative-json-pointer": ["0", "1", "10", "0/foo", "2/0/baz", "0#", "120#", "10/a"],
    "hostname": ["example.com", "a", "xn--4gbwdl.xn--wgbh1c", "a-b.c1"],
    "uri": ["http://foo.bar/?baz=qux#quux", "urn:isbn:0-395-36341-1", "mailto:a@b.c", "ldap://[2001:db8::7]/c=GB?one"],
    "uri-reference": ["/abc", "", "#frag", "http://a/b?c#d", "//foo.bar/?baz=qux"],
    "iri": ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a/b"],
    "iri-reference": ["/âππ", "#ƒrägmênt", "http://a/b"],
}
BAD: dict[str, list[str]] = {
    "date": [
        "2023-02-29",
        "1900-02-29",
        "2024-13-01",
        "2024-00-10",
        "2024-04-31",
        "24-01-01",
        "0000-01-01",
        "2024-1-1",
        "2024-01-01\n",
        " 2024-01-01",
        "٢٠٢٤-01-01",
        "20240101",
    ],
    "time": ["24:00:00Z", "12:60:00Z", "12:00Z", "12:00:00", "12:00:00+24:00", "12:00:00.Z", "12:00:00Z\n", "1:00:00Z"],
    "date-time": [
        "yesterday",
        "2024-02-30T00:00:00Z",
        "2024-02-29 00:00:00Z",
        "2024-02-29T00:00:00",
        "2024-02-29T25:00:00Z",
    ],
    "duration": ["", "P", "PT", "P1YT", "1Y", "P1D2H", "PT1D", "P2D1Y", "P1W1D", "PT1H1S", "P-1D", "P1Y1D", "p1d"],
    "uuid": [
        "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
        "2eb8aa08aa9811eab4aa73b441d16380",
        "g" * 8 + "-0000" * 3 + "-" + "0" * 12,
        "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
    ],
    "ipv4": ["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "0x1.2.3.4", "1.2.3.٤", ""],
    "ipv6": [
        ":",
        ":::",
        "1::2::3",
        "12345::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1%eth0",
        "1::2:3:4:5:6:7:8:9",
        "::g",
        "1.2.3.4",
        "::1/64",
        ":1",
        "1:",
        "1:2:3:4:5:6:7:1.2.3.4",
    ],
    "email": ["", "a", "@b", "a@", "a b@c", "a@b c", "a@@b", "a@b\n"],
    "json-pointer": ["a", "/~", "/~2", "#", "#/a", "/a/~"],
    "relative-json-pointer": ["", "/a", "01", "-1", "0##", "1#/a", "+1", "0/~"],
    "hostname": ["", "-a.com", "a-.com", "a..b", "a_b.c", "a" * 64 + ".com", "a b", "é.com\n"],
    "uri": ["", "//foo", "/abc", "a b", "http://a/b\n", "http:// a", "http://a/<b>", "\\\\x", "1http://a"],
    "uri-reference": ["a b", "\\\\W", "#fra\\gment", "/a\n"],
    "iri": ["", "/abc", "a b", "http://a/b\n"],
    "iri-reference": ["\\\\W", "a b"],
}


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
    for _ in range(3000):
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
    for _ in range(3000):
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
        for value in (None, True, 1, 1.5, [], {}):
            assert validator_of({"format": name}).is_valid(value)
