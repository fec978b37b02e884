"""What is emitted, run by the real matchers: they must take exactly the strings that the validator takes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import Grammar
from pipeline.engines.models import resolve, vocabulary_size
from pipeline.schema.pattern.ast import NOTHING, Alt, Node, Repeat, Unsupported, chars
from pipeline.schema.pattern.draw import draw
from pipeline.schema.pattern.emit import MAX_GUIDANCE_COUNT, MAX_WIDE_COUNT, guidance_widens, to_guidance, to_xgrammar
from pipeline.schema.pattern.length import any_string
from pipeline.schema.pattern.parse import parse
from pipeline.schema.validator import compile_pattern

EMIT = {"guidance": to_guidance, "xgrammar": to_xgrammar}
BOTH = pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
ODD = [
    "",
    "a",
    '"',
    "\\",
    "\n",
    "\r",
    "\t",
    "\b",
    "\f",
    "\0",
    "\x1f",
    "\v",
    "\x7f",
    "é",
    "中",
    "😀",
    "/",
    "\u2028",
    "^",
]
TEXTS = [
    *ODD,
    'say "hi"',
    "a\\b\nc",
    "😀é中",
    "foo",
    "xfoox",
    "ab",
    "aab",
    "AB-12",
    "1",
    "12",
    "a^b",
    "]-[",
    "aa",
    "aaa",
]
PATTERNS = [
    "", "^$", "foo", "^foo", "foo$", "^a|b$", "(^a$|^b$)", r"^[\s\S]*$", r"^[\s\S]$", r"^.{0,3}$", "^[^a]+$", r"^\s$",
    r"^\S+$", r"^[^\w]$", r"\W", r'^["\\]$', r'^"$', r"^\\$", r"^\n$", r"^[\n\t]$", r"^[\0-\x1f]$", r"^\0$", r"^\x1f$",
    r"^\x7f$", r"^[\^]$", r"^[\^a]$", r"^[\^-z]$", r"^[\^_a]+$", r"^[^\^]$", r"^[\]\[-]+$", r"^a\^b$", "^[😀-🙏]$",
    "^[à-ü]$",
    r"^\p{L}+$", r"^(?:a|b|)$", "^a{2}$", "^a{2,}$", "^(?:a{0,2}){1,2}$", "^(?:a|aa){2}$", "^(a*)*$", "^(?:a?b?){3}$",
    r"^(?:[\s\S]{2}){1,3}$", r"^[A-Z]{2}-\d{2}$", r"^(?:a|\n|\\)+$", "^[^a-z]*$", r"^\/$", r"^[ -\/]$", r"^[^]{2,}$",
    r"a[\s\S]b", "^(?:|a)(?:|a)$", "^(?:(?:a|b){2}|c)*$", "^[!-~]$", r"^\n?$", r'^"{2}$', r"^\\*$", r"^(?:\n){0,3}a$",
    r'^"+a$', r'^a\x1f?$', r'^(?:\\|")+$', r'^"{0,2}\\{2,}$',
    '^[^"]*$', r"^[^\\]+$", r'x[^"\\]*"$', r'^[^"\n]*$', r'^[^\\/]+$',
]  # fmt: skip


@pytest.fixture(scope="module")
def chat() -> ChatTokenizer:
    return ChatTokenizer(resolve("embedded"))


@pytest.fixture(scope="module")
def accepts(chat: ChatTokenizer) -> Any:
    size = vocabulary_size(resolve("embedded"))
    grammars: dict[Any, Grammar] = {b: Grammar(chat.tokenizer, b, True, size) for b in ("xgrammar", "guidance")}

    def check(backend: Any, expression: str, body: str) -> bool:
        """Whether the back end takes the JSON text of a string: canonical, or with the quotes as given."""
        matcher = grammars[backend].matcher(json.dumps({"type": "string", "pattern": expression}))
        tokens = chat.text_ids(body)
        assert chat.decode(tokens) == body, "the tokenizer lacks a byte of this text"
        return all(matcher.accept(token) for token in tokens) and matcher.finished()

    return check


def canonical(text: str) -> str:
    """The shortest JSON text, but U+007F escaped: llguidance, whatever the schema, takes it in no other way."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f")


@BOTH
def test_the_matchers_take_what_the_validator_takes(accepts: Any, backend: str) -> None:
    rng = random.Random(7)
    for pattern in PATTERNS:
        node = parse(pattern)
        expression = EMIT[backend](node)
        drawn = [draw(node, rng, size) for size in (0, 1, 3)]
        for text in [*TEXTS, *drawn]:
            wanted = compile_pattern(pattern).search(text)
            found = accepts(backend, expression, canonical(text))
            announced = backend == "guidance" and guidance_widens(node) and not wanted and set('"\\') & set(text)
            assert found == wanted or announced, (pattern, text)


@BOTH
def test_every_character_of_ascii_can_bound_a_class(accepts: Any, backend: str) -> None:
    for low in range(128):
        for node in (chars([(low, low)]), chars([(low, low + 1)]), chars([(low, low), (low + 2, low + 90)])):
            expression = EMIT[backend](node)
            for point in (low - 1, low, low + 1, low + 2, low + 91):
                if point >= 0:
                    wanted = any(first <= point <= last for first, last in node.ranges)
                    assert accepts(backend, expression, canonical(chr(point))) == wanted, (node, point)


@BOTH
def test_strings_of_bounded_length_hold_every_character(accepts: Any, backend: str) -> None:
    for low, high in ((0, 2), (1, 1), (2, None), (0, MAX_WIDE_COUNT)):
        expression = EMIT[backend](any_string(low, high))
        for text in ("", *ODD, '""', "\\\\", "😀\n", "é中", "a\0b", '"""', "x" * (MAX_WIDE_COUNT + 1)):
            wanted = low <= len(text) <= (len(text) if high is None else high)
            assert accepts(backend, expression, canonical(text)) == wanted, (low, high, text)


def test_xgrammar_takes_both_cases_of_hexadecimal_digits_and_no_other_spelling(accepts: Any) -> None:
    expression = to_xgrammar(any_string(1, 1))
    for body, wanted in (
        (r"\u001f", True),
        (r"\u001F", True),
        (r"\u000b", True),
        (r"\u000B", True),
        (r"\u0041", False),
        (r"\u0009", False),
        (r"\/", False),
        (r"\x", False),
    ):
        assert accepts("xgrammar", expression, f'"{body}"') == wanted, body


@BOTH
def test_large_counts_are_exact(accepts: Any, backend: str) -> None:
    expression = EMIT[backend](parse("^[a-z]{3,3000}$"))
    for count in (2, 3, 3000, 3001):
        assert accepts(backend, expression, canonical("a" * count)) == (3 <= count <= 3000)


def test_what_a_library_takes_too_long_for_is_unsupported() -> None:
    for pattern in (f"^[^a]{{0,{MAX_WIDE_COUNT + 1}}}$", "^(?:(?:a{0,50}b?){0,50}c?){0,50}$"):
        with pytest.raises(Unsupported, match="repetitions"):
            to_xgrammar(parse(pattern))
        assert to_guidance(parse(pattern))
    with pytest.raises(Unsupported, match="count"):
        to_guidance(parse(f"^a{{{MAX_GUIDANCE_COUNT + 1}}}$"))
    assert to_xgrammar(parse(f"^a{{{MAX_GUIDANCE_COUNT + 1}}}$"))


@BOTH
def test_nothing_and_endless_expressions_are_unsupported(backend: str) -> None:
    wide: Node = parse(r"^\p{L}$")
    for node, reason in ((NOTHING, "no string"), (Alt(tuple(Repeat(wide, 2, n) for n in range(3, 99))), "characters")):
        with pytest.raises(Unsupported, match=reason):
            EMIT[backend](node)


@pytest.mark.parametrize(
    ("pattern", "widens"),
    [
        ('^[^"]*$', False),
        (r"^[^\\]+$", False),
        ('^[^"]$', True),
        (r"^[^\\\n]{2}$", True),
        (r"^(?:[\0-\x1f],)*$", True),
        (r"^[\0-\x1e]$", False),
        (r"^.*[^a]$", False),
        ("", False),
    ],
)
def test_where_llguidance_takes_too_much_is_announced(accepts: Any, pattern: str, widens: bool) -> None:
    node = parse(pattern)
    assert guidance_widens(node) == widens
    bodies = ("", *(f'"{a}{b}"' for a in (r"\"", r"\\", "") for b in (r"\"", r"\\", ",", "b")))
    takes = [body for body in bodies if body and accepts("guidance", to_guidance(node), body)]
    assert any(not compile_pattern(pattern).search(json.loads(body)) for body in takes) == widens
