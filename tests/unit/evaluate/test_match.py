"""Records beside each other: verdicts, alignment of lists, and that no value is lost or counted twice."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import schema_and_record

from pipeline.evaluate.align import MAX_PAIRS, align, assign
from pipeline.evaluate.match import RIGHT, Matched, match, match_nothing
from pipeline.evaluate.same import has_value

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "place": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"city": {"type": "string"}}}]},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]},
    },
    "$defs": {
        "line": {"type": "object", "properties": {"what": {"type": "string"}, "n": {"type": ["number", "null"]}}}
    },
}


def said(made: Matched) -> Counter[tuple[str, str]]:
    return Counter((one.pointer, one.verdict) for one in made.fields)


def test_each_way_to_be_right_or_wrong() -> None:
    nothing = {"name": None, "tags": [], "lines": [], "place": None, "pair": []}
    for expected, found, verdict in [
        ("Ann", "Ann", "exact"),
        ("Ann", "ANN", "normalised"),
        ("Ann", "Bob", "wrong"),
        ("Ann", None, "missing"),
        ("Ann", " ", "missing"),
        (None, "Bob", "invented"),
        (None, None, "abstained"),
        ("", None, "abstained"),
    ]:
        made = match({**nothing, "name": expected}, {**nothing, "name": found}, SCHEMA)
        assert said(made)["/name", verdict] == 1
        assert said(made).total() == 5  # the others are abstentions, told once each
    assert said(match(nothing, {}, SCHEMA)) == said(match({}, nothing, SCHEMA)) == said(match({}, {}, SCHEMA))


def test_a_document_without_a_record_abstains_from_nothing() -> None:
    made = said(match_nothing({"name": None, "tags": ["a", "b"]}, SCHEMA))
    assert made["/name", "unanswered"] == 1
    assert made["/tags/*", "missing"] == 2
    assert not [verdict for _, verdict in made if verdict == "abstained"]


def test_lists_are_aligned_whatever_their_order() -> None:
    expected = {"lines": [{"what": "tea", "n": 1}, {"what": "salt", "n": None}, {"what": "oil", "n": 3}]}
    found = {"lines": [{"what": "Oil", "n": 4}, {"what": "salt", "n": None}, {"what": "rice", "n": None}]}
    made = match(expected, found, SCHEMA)
    by_what = {one.expected: one for one in made.fields if one.pointer == "/lines/*/what"}
    assert by_what["oil"].verdict == "normalised" and by_what["oil"].place == "/lines/0/what"
    assert by_what["salt"].verdict == "exact" and by_what["salt"].place == "/lines/1/what"
    assert by_what["tea"].verdict == "wrong" and by_what["tea"].found == "rice"
    assert Counter(one.verdict for one in made.fields if one.pointer == "/lines/*/n") == Counter(
        {"wrong": 1, "missing": 1, "abstained": 1}
    )


def test_positions_of_tuples_count() -> None:
    assert said(match({"pair": ["a", "b"]}, {"pair": ["b", "a"]}, SCHEMA))["/pair/*", "wrong"] == 2
    assert said(match({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, SCHEMA))["/tags/*", "exact"] == 2


def test_null_inside_an_item_that_the_other_list_lacks_is_no_abstention() -> None:
    made = said(match({"lines": []}, {"lines": [{"what": "tea", "n": None}]}, SCHEMA))
    assert made["/lines/*/what", "invented"] == 1
    assert not [pointer for pointer, _ in made if pointer == "/lines/*/n"]


def test_alternatives_are_as_right_and_may_be_null() -> None:
    others = {"/name": ["Anna", None], "/tags/*": ["x"]}
    for found, verdict in [("Anna", "exact"), ("ANNA", "normalised"), (None, "abstained"), ("Bob", "wrong")]:
        assert said(match({"name": "Ann"}, {"name": found}, SCHEMA, others))["/name", verdict] == 1
    assert said(match({"tags": ["a"]}, {"tags": ["x"]}, SCHEMA, others))["/tags/*", "exact"] == 1


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"name": "x"}, {"name": {"y": 1}}),
        ({"tags": ["a"]}, {"tags": "a"}),
        ({"place": {"city": "x"}}, {"place": ["x"]}),
        ({"place": {"city": "x"}}, {"place": "x"}),
        ({"a": 1}, [1]),
        ("x", {"a": 1}),
    ],
)
def test_values_of_another_shape_are_judged_and_not_dropped(expected: Any, found: Any) -> None:
    assert_conserved(expected, found, match(expected, found, SCHEMA))


def leaves(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(leaves, value.values() if isinstance(value, dict) else value))
    return int(has_value(value))


def assert_conserved(expected: Any, found: Any, made: Matched) -> None:
    counts = Counter(one.verdict for one in made.fields)
    both = counts["exact"] + counts["normalised"] + counts["wrong"]
    assert both + counts["missing"] == leaves(expected)
    assert both + counts["invented"] == leaves(found)


@settings(max_examples=40)
@given(schema_and_record(), st.data())
def test_every_value_is_judged_once_and_a_record_is_itself(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, record = pair
    made = match(record, record, schema)
    assert_conserved(record, record, made)
    assert {one.verdict for one in made.fields} <= {*RIGHT, "abstained"}
    assert not [one for one in made.fields if one.verdict == "normalised"]
    other = data.draw(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x, max_size=3)))
    changed = {**record, **dict.fromkeys(list(record)[:1], other)}
    assert_conserved(record, changed, match(record, changed, schema))
    assert_conserved(record, None, match_nothing(record, schema))


@given(st.lists(st.text("abAB 1", max_size=4), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_a_list_changes_nothing(items: list[str], chance: random.Random) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    made = match({"tags": items}, {"tags": shuffled}, SCHEMA)
    assert {one.verdict for one in made.fields if one.pointer == "/tags/*"} <= {"exact", "abstained"}


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_assignments_are_the_best_that_there_are(rows: int, columns: int, seed: int) -> None:
    similar = np.random.default_rng(seed).random((rows, columns)).round(1)
    made = assign(similar)
    assert len({i for i, _ in made}) == len({j for _, j in made}) == min(rows, columns)
    small = similar if rows <= columns else similar.T
    every = itertools.permutations(range(small.shape[1]), small.shape[0])
    best = max(sum(small[i, j] for i, j in enumerate(chosen)) for chosen in every)
    assert sum(similar[i, j] for i, j in made) == pytest.approx(best)


def test_lists_of_a_runaway_model_are_bounded_and_told() -> None:
    one, other = ([f"{letter}{n} {n * 7}" for n in range(3000)] for letter in "ab")
    made = align(one, [*other, one[5]])
    assert made.in_order and len(made.pairs) == 3001
    assert (5, 3000) in made.pairs  # equal ones are found all the same
    assert not align(one[:60], other[:60]).in_order and MAX_PAIRS > 60 * 60
