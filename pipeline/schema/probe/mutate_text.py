"""Strings near the border of a keyword: lengths, patterns, formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from pipeline.schema.formats import text_of_format
from pipeline.schema.pattern.ast import Node, Unsupported
from pipeline.schema.pattern.length import bounded
from pipeline.schema.pattern.parse import parse
from pipeline.schema.probe.texts import LONGEST, some_of

KEYWORDS = frozenset({"minLength", "maxLength", "pattern", "format"})

_WRONG = {
    "date": ("2023-02-30", "2024-13-01", "2024-00-10", "2024-1-1", "20240101"),
    "time": ("25:00:00Z", "12:60:00Z", "12:00", "12:00:00", "12:00:00+25:00"),
    "date-time": ("2023-02-30T10:00:00Z", "2024-02-29 10:00:00Z", "2024-02-29T25:00:00Z", "2024-02-29"),
    "duration": ("P", "1D", "PT", "P1D2Y"),
    "email": ("nobody", "@", "a b", "a@@b"),
    "idn-email": ("nobody", "@"),
    "hostname": ("-a.example", "a_b.example", "a..b", f"{'a' * 64}.example"),
    "ipv4": ("256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"),
    "ipv6": ("1::2::3", "12345::", ":::", "g::1"),
    "uuid": (
        "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
        "zeb8aa08-aa98-11ea-b4aa-73b441d16380",
        "2eb8aa08aa9811eab4aa73b441d16380",
    ),
    "uri": ("no scheme", "//host/path", ":", "http://exa mple.org"),
    "uri-reference": ("\\\\back", "a b", "%zz"),
    "iri": ("no scheme", ":"),
    "json-pointer": ("a", "/~2"),
    "relative-json-pointer": ("-1", "01", "/a"),
    "regex": ("(", "[", "*", "a{2,1}"),
    "uri-template": ("{", "a{b"),
}
_ANY_WRONG = ("", "text", "!", "\n", '"', "中", "0" * 40)


def aimed(keyword: str, schema: Mapping[str, Any], part: str) -> Iterator[str]:
    """Strings for the place of `part` near the border of one of KEYWORDS."""
    value = schema[keyword]
    if keyword == "minLength":
        yield from _of_length(schema, part, value - 1)
        yield from ('"' * int(value), *_of_length(schema, part, value)) if value <= LONGEST else ()
    elif keyword == "maxLength":
        yield from _of_length(schema, part, value + 1)
        yield from ('"' * int(value), *_of_length(schema, part, value)) if value <= LONGEST else ()
    elif keyword == "pattern":
        yield from islice(altered(part), 14)
        yield from islice(members(value, 4), 4)
        yield from _ANY_WRONG
        for length in (schema.get("minLength", 0), schema.get("maxLength")):
            if length is not None and length <= LONGEST:
                yield from ("!" * int(length), "a" * int(length), "0" * int(length))
    else:
        yield from _WRONG.get(value, ())
        yield from _ANY_WRONG
        yield from altered(part)


def altered(text: str) -> Iterator[str]:
    """A string with one character more, less or other, in front, inside and at the end."""
    middle = len(text) // 2
    for char in ("!", " ", "\n", "é", '"', "0", "x", "A"):
        yield from (text + char, char + text)
        if text:
            yield from (text[:-1] + char, char + text[1:], text[:middle] + char + text[middle + 1 :])
    yield from (text[1:], text[:-1], text * 2, text.swapcase(), "")


@lru_cache(maxsize=512)
def _tree(pattern: str) -> Node | None:
    try:
        return parse(pattern)
    except (Unsupported, ValueError):
        return None


def members(pattern: str, most: int) -> Iterator[str]:
    """Some strings that match a pattern; none if it cannot be drawn from."""
    node = _tree(pattern)
    if node is not None:
        yield from some_of(node)[:most]


def _of_length(schema: Mapping[str, Any], part: str, length: float) -> Iterator[str]:
    """Strings of one length, which match the pattern and the format beside it where those can be drawn from."""
    count = int(length)
    if count < 0 or count > LONGEST:
        return
    for node in _trees(schema):
        narrowed = bounded(node, count, count)
        if narrowed is not None:
            yield from some_of(narrowed)[:3]
    if len(part) >= count:
        yield from (part[:count], part[len(part) - count :])
    elif part:
        yield from (part + part[-1] * (count - len(part)), part[0] * (count - len(part)) + part)
    yield from ("a" * count, "😀" * count, '"' * count)


def _trees(schema: Mapping[str, Any]) -> Iterator[Node]:
    if "pattern" in schema:
        node = _tree(schema["pattern"])
        if node is not None:
            yield node
    known = text_of_format(schema["format"]) if "format" in schema else None
    if known is not None:
        yield known.node
