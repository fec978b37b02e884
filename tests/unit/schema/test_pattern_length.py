"""Lengths of members, and trees cut to a length."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.pattern.ast import NOTHING
from pipeline.schema.pattern.length import any_string, bounded, lengths
from pipeline.schema.pattern.parse import parse
from tests.unit.schema.test_pattern import PLAIN, member

ALL = ["".join(letters) for size in range(6) for letters in product("ab-", repeat=size)]


@given(PLAIN, st.integers(0, 4), st.none() | st.integers(0, 4))
def test_a_cut_tree_holds_exactly_the_members_within_the_bounds(pattern: str, low: int, high: int | None) -> None:
    node = parse(f"^(?:{pattern})$")
    cut = bounded(node, low, high)
    if cut is None:
        return
    for text in ALL:
        inside = low <= len(text) and (high is None or len(text) <= high)
        assert member(cut, text) == (inside and member(node, text)), text
    if cut != NOTHING:
        least, most = lengths(cut)
        assert least >= low
        assert high is None or (most is not None and most <= high)


@given(PLAIN)
def test_lengths_hold_for_every_member(pattern: str) -> None:
    node = parse(f"^(?:{pattern})$")
    low, high = lengths(node)
    sizes = [len(text) for text in ALL if member(node, text)]
    assert all(low <= size and (high is None or size <= high) for size in sizes)


@pytest.mark.parametrize(
    ("pattern", "low", "high", "wanted"),
    [
        ("^[a-z]+$", 0, 3, "^[a-z]{1,3}$"),
        ("^[a-z]+$", 2, None, "^[a-z]{2,}$"),
        ("^ab[0-9]*-$", 0, 10, "^ab[0-9]{0,7}-$"),
        ("^ab[0-9]*-$", 5, 500_000, "^ab[0-9]{2,499997}-$"),
        ("^(?:ab)*$", 3, 7, "^(?:ab){2,3}$"),
        ("^(?:ab){2,}$", 0, 9, "^(?:ab){2,4}$"),
        ("^a{2,5}$", 1, 9, "^a{2,5}$"),
        ("^(?:a+|bb+)$", 0, 3, "^(?:a{1,3}|bb{1,2})$"),
        ("^[a-z]*$", 0, 0, "^$"),
        ("^(?:a|bcd)$", 2, 2, "^[]$"),
        ("^(?:a|bcd)$", 2, 5, "^bcd$"),
        ("^[a-z]+$", 5, 3, "^[]$"),
        (r"^\d{4}-\d{2}$", 0, 7, r"^\d{4}-\d{2}$"),
    ],
)
def test_the_common_cases_stay_small(pattern: str, low: int, high: int | None, wanted: str) -> None:
    assert bounded(parse(pattern), low, high) == parse(wanted)


def test_what_takes_too_many_ways_to_share_out_is_given_up() -> None:
    assert bounded(parse("^[a-z]+@[a-z]+$"), 0, 64) is not None
    assert bounded(parse("^[a-z]+@[a-z]+$"), 0, 2000) is None
    assert bounded(parse("^(?:a|bb)*$"), 0, 100) is None
    assert bounded(parse("^(?:(?:a|bb)*c?)*$"), 90, None) is None


def test_any_string_is_every_string_of_that_length() -> None:
    assert any_string(0, None) == parse("")
    assert any_string(2, 5) == parse(r"^[\s\S]{2,5}$")
    assert any_string(3, 2) == NOTHING
    assert member(any_string(0, 0), "") and not member(any_string(0, 0), "a")
    assert member(any_string(1, 1), "😀") and not member(any_string(1, 1), "ab")
