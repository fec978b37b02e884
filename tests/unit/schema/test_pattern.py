"""Patterns as trees: what is read, which strings a tree holds, drawing from it."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.pattern.ast import ANY, NOTHING, Alt, Chars, Malformed, Node, Repeat, Seq, Unsupported, check_size
from pipeline.schema.pattern.draw import draw, minimal
from pipeline.schema.pattern.length import lengths
from pipeline.schema.pattern.parse import ANYTHING, parse
from pipeline.schema.validator import compile_pattern


def member(node: Node, text: str) -> bool:
    """Slow and plain: the places where a match of a part can end."""

    @cache
    def ends(part: Node, start: int) -> frozenset[int]:
        if isinstance(part, Chars):
            fits = start < len(text) and any(low <= ord(text[start]) <= high for low, high in part.ranges)
            return frozenset({start + 1} if fits else ())
        if isinstance(part, Alt):
            return frozenset(end for option in part.options for end in ends(option, start))
        if isinstance(part, Seq):
            places = frozenset({start})
            for item in part.items:
                places = frozenset(end for place in places for end in ends(item, place))
            return places
        found, places, count = set[int](), frozenset({start}), 0
        while places and (part.maximum is None or count <= part.maximum) and count <= part.minimum + len(text) + 1:
            if count >= part.minimum:
                found |= places
            places = frozenset(end for place in places for end in ends(part.item, place))
            count += 1
        return frozenset(found)

    return len(text) in ends(node, 0)


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"[\s\S]", "-", r"\n", "(?:)", "é"])


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda text: f"({text})")
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "*?", "{0}"])
    return (
        st.tuples(_ATOMS | group, counts).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("|".join)
        | group
    )


PLAIN = st.recursive(_ATOMS, _extended, max_leaves=8)
ANCHORED = st.recursive(_ATOMS | st.sampled_from(["^", "$"]), _extended, max_leaves=8)
TEXTS = st.text(alphabet="ab-\né", max_size=6)


@given(PLAIN | ANCHORED, TEXTS)
def test_tree_validator_and_python_agree_where_the_dialects_do(pattern: str, text: str) -> None:
    # Anchors are never quantified in ECMA's grammar; Python takes them, so only what both read is compared.
    try:
        node = parse(pattern)
    except (Malformed, Unsupported):
        return
    wanted = re.search(pattern.replace("$", r"\Z").replace(".", r"[^\n]"), text, re.ASCII) is not None
    assert compile_pattern(pattern).search(text) == wanted
    assert member(node, text) == wanted


@given(PLAIN | ANCHORED, st.integers(0, 2**32), st.integers(0, 5))
def test_what_is_drawn_from_a_tree_matches_its_pattern(pattern: str, seed: int, size: int) -> None:
    try:
        node = parse(pattern)
    except (Malformed, Unsupported):
        return
    if node == NOTHING:
        with pytest.raises(ValueError, match="no string"):
            minimal(node)
        return
    drawn = draw(node, random.Random(seed), size)
    assert compile_pattern(pattern).search(drawn)
    least = minimal(node)
    assert compile_pattern(pattern).search(least)
    low, high = lengths(node)
    assert len(least) == low <= len(drawn) <= (len(drawn) if high is None else high)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a|b$", ["a", "ax", "xb", "b"], ["ba", "xax", ""]),
        ("(^a$|^b$)", ["a", "b"], ["ab", "xa", ""]),
        ("^(foo|bar)$", ["foo", "bar"], ["foobar", "xfoo", "foo\n"]),
        ("(^|,)x(,|$)", ["x", "a,x", "x,b", ",x,"], ["ax", "xb", ""]),
        ("(^a)?b", ["ab", "b", "xab"], ["a"]),
        ("a^|b", ["b"], ["a"]),
        ("^$", [""], ["a", "\n"]),
        ("", ["", "a"], []),
        ("(?<year>[0-9]{4})-", ["2024-"], ["024-"]),
        ("^a{,3}$", ["a{,3}"], ["aaa"]),
        ("^{a}]$", ["{a}]"], []),
        (r"^\-\_\@\/\"\'\#\ $", ["-_@/\"'# "], []),
        (r"^[\w-.]$", ["-", ".", "a"], ["/"]),
        (r"^[a\]-]$", ["]", "-"], ["\\"]),
        ("^[]$|b", ["b"], ["", "]"]),
        ("^[^]$", ["\n", "😀"], ["", "ab"]),
        ("^.$", ["a", "\x85", "😀"], ["\n", "\r", "\u2028", "\u2029"]),
        (r"^\d$", ["7"], ["٣"]),
        (r"^\w$", ["_"], ["é", "-"]),
        (r"^[\S]$", ["é", "a"], ["\ufeff", "\u00a0", " "]),
        (r"^\s$", ["\ufeff", "\u3000", "\v"], ["\u200b", "\x1c", "\x85"]),
        (r"^[^\s]$", ["\x1c"], ["\u2003"]),
        (r"^\x41\u0042\u{1F600}\ud83d\ude00\cJ\0[\b]$", ["AB😀😀\n\0\b"], []),
        (r"^[\ud83d\ude00-\ud83d\ude4f]$", ["😀", "🙏"], ["a"]),
        (r"^\p{Lu}\p{Script=Greek}\P{L}$", ["Éα1"], ["éα1", "Eα", "Eaa"]),
        (r"^[\p{L}\d]+$", ["é1漢"], ["-"]),
        (r"^\p{gc=Letter}$", ["é"], ["1"]),
        (r"^\.\*\$\^$", [".*$^"], []),
    ],
)
def test_the_dialect_is_that_of_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    for text in [*yes, *no]:
        assert member(parse(pattern), text) == (text in yes), text
        assert compile_pattern(pattern).search(text) == (text in yes), text


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        (r"\bfoo", "word boundary"),
        (r"foo\B", "word boundary"),
        ("(^a)*", "anchor"),
        (r"\Afoo\Z", "escape"),
        (r"\p{Klingon}", "property"),
        ("a{9999999999}", "digits"),
        ("(" * 70 + ")" * 70, "nest"),
        ("a" * 100_001, "characters"),
        ("ab" * 15_000, "parts"),
        ("(^|a)" * 70, "anchors"),
        (r"[\p{L}\p{N}]" * 100, "ranges"),
    ],
)
def test_what_no_tree_holds_is_unsupported_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        parse(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["a**", "*a", "^*", "a|*", "(a", "a)", "[a", "[z-a]", "a{2,1}", "(?i)a", "(?P<n>a)", "\\", r"\u{110000}", r"\xg",
     r"\p", "a{2}{3}"],
)  # fmt: skip
def test_what_is_no_regular_expression_is_malformed(pattern: str) -> None:
    with pytest.raises(Malformed):
        parse(pattern)


@given(st.text(alphabet=r"ab^$()[]{}|*+?\\.-,:<=!0123nudwsSpk", max_size=12))
def test_any_text_is_read_or_refused(pattern: str) -> None:
    try:
        node = parse(pattern)
    except (Malformed, Unsupported):
        return
    assert check_size(node) > 0
    if node != NOTHING and lengths(node)[0] < 1000:
        assert compile_pattern(pattern).search(minimal(node))


def test_counts_are_kept_as_numbers_and_nested_ones_are_joined() -> None:
    letter = Chars(((97, 97),))
    assert parse("^a{3,5000000}$") == Repeat(letter, 3, 5_000_000)
    assert parse("^(a*)*$") == parse("^((a+)?)*$") == Repeat(letter, 0, None)
    assert parse("^(a{2}){3}$") == Repeat(letter, 6, 6)
    assert parse("^(a{2,3}){2}$") == Repeat(Repeat(letter, 2, 3), 2, 2)


def test_free_ends_are_any_text_and_take_over_what_stands_beside_them() -> None:
    assert parse("") == parse("a*") == parse("^a*") == parse("a*$") == ANYTHING
    assert parse("a+") == parse("a") == Seq((ANYTHING, Chars(((97, 97),)), ANYTHING))
    assert parse(r"[\s\S]") == Repeat(ANY, 1, None) or member(parse(r"[\s\S]"), "x")


def test_a_draw_shows_what_encoders_get_wrong_and_stays_readable() -> None:
    drawn = draw(parse(r"^[\s\S]{4000}$"), random.Random(1), 0)
    assert set('"\\\n') < set(drawn)
    assert any(ord(char) > 0xFFFF for char in drawn)
    assert sum(char.isascii() and char.isalnum() for char in drawn) > 2000


def test_a_member_that_is_too_long_is_refused_and_an_exploding_draw_stops() -> None:
    with pytest.raises(ValueError, match="shortest member"):
        minimal(parse("^a{900000000}$"))
    nested = "a"
    for _ in range(12):
        nested = f"(?:{nested}b?){{0,100000}}"
    assert len(draw(parse(f"^{nested}$"), random.Random(3), 50)) < 100_000
