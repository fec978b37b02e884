"""Digests tell different things apart and do not tell equal ones apart."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.fingerprint import add_multisets, canonical, digest, multiset_digest

TEXTS = st.lists(st.text(st.characters(), max_size=4), max_size=8)


@given(TEXTS, st.randoms())
def test_a_multiset_has_one_digest_in_any_order(items: list[str], rng: random.Random) -> None:
    shuffled = list(items)
    rng.shuffle(shuffled)
    assert multiset_digest(shuffled) == multiset_digest(items)


@given(TEXTS, st.integers(0, 8))
def test_parts_add_up_to_the_whole(items: list[str], cut: int) -> None:
    parts = multiset_digest(items[:cut]), multiset_digest(items[cut:])
    assert add_multisets(parts) == multiset_digest(items)
    assert add_multisets([]) == multiset_digest([])


def test_multiplicity_counts() -> None:
    digests = [multiset_digest(items) for items in ([], ["a"], ["a", "a"], ["a", "b"], ["ab"], ["a", "a", "b", "b"])]
    assert len(set(digests)) == len(digests)


def test_a_sum_of_digests_wraps_and_keeps_its_length() -> None:
    top = "f" * 32
    assert add_multisets([top, top]) == f"{2**128 - 2:032x}"


def test_canonical_json_knows_no_key_order_and_holds_any_text() -> None:
    assert canonical({"b": 1, "a": [1.5, "é"]}) == '{"a":[1.5,"\\u00e9"],"b":1}'
    assert canonical("\ud800") == '"\\ud800"'
    assert json.loads(canonical({"k\udfff": "😀"})) == {"k\udfff": "😀"}


def test_text_with_a_lone_surrogate_has_its_own_digest() -> None:
    assert len({digest("\ud800"), digest("\ud801"), digest("?"), digest("\ufffd")}) == 4
    assert len({multiset_digest(["\ud800"]), multiset_digest(["\udfff"]), multiset_digest(["?"])}) == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold_has_no_digest(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest({"x": value})


def test_types_are_told_apart() -> None:
    values = [1, 1.0, "1", True, None, [1], {"1": 1}, "", [], {}]
    assert len({digest(value) for value in values}) == len(values)
