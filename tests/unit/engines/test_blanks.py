"""Tokens that write the same JSON with blanks in it, one by one and counted."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.blanks import Blanks, bare

TOKENS = [
    b'{"',
    b"a",
    b'":',
    b'"',
    b" b",
    b'",',
    b'"c',
    b"1",
    b"}",
    b"",
    b" ",
    b"\n\t",
    b' "',
    b'": ',
    b'": "',
    b'", "',
]
TOKENS += [b"{\n", b" 1", b" null", b"a b", b' a"', b', "', b"\\", b'\\"', b" }"]
ANSWER = [TOKENS.index(text) for text in (b'{"', b"a", b'":', b'"', b"a", b" b", b'",', b'"c', b'":', b"1", b"}", b"")]


def test_blanks_between_tokens_are_the_same_and_within_strings_are_not() -> None:
    blanks = Blanks(TOKENS)
    uniform = dict.fromkeys(range(len(TOKENS)), 0.0)
    same = []
    for place in range(len(ANSWER)):
        rows = [{} for _ in ANSWER]
        told = [
            text
            for id_, text in enumerate(TOKENS)
            if blanks.shares(ANSWER, [*rows[:place], {id_: 0.0}, *rows[place + 1 :]])[place]
        ]
        same.append(told)
    assert same[0] == [b" ", b"\n\t", b"{\n"]
    assert same[1] == []  # within a key
    assert same[2] == [b'": ', b'": "']
    assert same[3] == [b" ", b"\n\t", b' "']
    assert same[4] == same[5] == []  # within a value
    assert same[6] == [b'", "']
    assert same[7] == [b" ", b"\n\t", b' "']
    assert same[8] == [b'": ']  # a number follows, no string
    assert same[9] == [b" ", b"\n\t", b" 1"]
    assert same[10] == [b" ", b"\n\t", b" }"]
    assert same[11] == [b" ", b"\n\t"]
    assert blanks.counts(ANSWER) == [len(each) for each in same]
    assert blanks.shares(ANSWER, [uniform] * len(ANSWER)) == [float(len(each)) for each in same]


def test_shares_are_probabilities() -> None:
    rows = [{TOKENS.index(b" "): math.log(0.25), TOKENS.index(b"1"): math.log(0.5)}] * len(ANSWER)
    assert Blanks(TOKENS).shares(ANSWER, rows)[9] == pytest.approx(0.25)


def test_tokens_beyond_the_vocabulary_write_nothing() -> None:
    assert Blanks(TOKENS).counts([999, 0]) == [3, 3]
    assert Blanks(TOKENS).shares([999], [{998: 0.0}]) == [0.0]


@given(
    st.recursive(st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_what_is_left_of_spaced_json_is_the_compact_one(value: object) -> None:
    spaced = json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace")
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    said, blank, where = bare(spaced, "outside")
    assert (said, blank, where) == (compact, spaced != compact, "outside")
