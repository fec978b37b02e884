"""Which of several places supports a value, what is told of those without, and bounded work."""

from __future__ import annotations

import time
from typing import Any

import pytest
from grounding import NUMBER, STRING, grounded, schema
from hypothesis import given
from hypothesis import strategies as st
from support import codes, schema_and_record

from pipeline.steps.ground import MAX_LEAVES


def test_of_several_places_the_one_by_its_siblings_is_taken() -> None:
    text = "fee 5.00\nshipping 5.00\ntea 5.00\nsalt 5.00"
    body = schema(lines={"type": "array", "items": schema(name=STRING, price=NUMBER)})
    names = ["salt", "tea", "shipping", "fee"]
    draft = grounded(body, {"lines": [{"name": name, "price": 5.0} for name in names]}, text)
    places = {field.pointer: field.start for field in draft.fields}
    for index, name in enumerate(names):
        assert places[f"/lines/{index}/price"] == text.index(f"{name} 5.00") + len(name) + 1


def test_a_value_that_a_list_holds_again_takes_the_next_place() -> None:
    text = "Readings: 0 0 0"
    draft = grounded(schema(values={"type": "array", "items": {"type": "integer"}}), {"values": [0, 0, 0]}, text)
    assert [field.start for field in draft.fields] == [10, 12, 14]


def test_the_message_quotes_little_and_asks_for_null_only_where_null_is_allowed() -> None:
    record = {"a": "nowhere " * 50, "b": "nothing"}
    draft = grounded(schema(a=STRING, b={"type": ["string", "null"]}), record)
    first, second = [problem.message for problem in draft.problems]
    assert "null" not in first and len(first) < 160
    assert "null" in second
    abstaining = grounded(schema(a=STRING), {"a": "nowhere"}, abstain="nullable")
    assert "null" in abstaining.problems[0].message


def test_support_that_is_not_literal_enough_is_told_with_what_stands_there() -> None:
    draft = grounded(schema(a={**STRING, "x-ground": "exact"}), {"a": "ann & co"})
    assert '"Ann & Co"' in draft.problems[0].message


def test_values_beyond_the_bound_are_named_and_no_problem() -> None:
    body = schema(values={"type": "array", "items": STRING})
    draft = grounded(body, {"values": ["nowhere"] * (MAX_LEAVES + 3)})
    assert len(draft.fields) == MAX_LEAVES
    last = draft.problems[-1]
    assert (last.pointer, last.severity) == ("", "observe")
    assert "3 of" in last.message


@given(schema_and_record(), st.text(max_size=60))
def test_any_record_of_any_schema_is_grounded(pair: tuple[dict[str, Any], Any], text: str) -> None:
    draft = grounded(*pair, text=text)
    assert draft.value == pair[1]
    for field in draft.fields:
        if field.match == "none":
            assert (field.start, field.end) == (None, None)
        else:
            assert field.start is not None and field.end is not None and 0 <= field.start < field.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "1" * 300_000,
        "1,1." * 75_000,
        "[L1] " * 60_000,
        "e\u0301" * 100_000,
        "一" * 200_000,
        "- " * 150_000,
        "123 " * 75_000 + "1234",
        "1 December " * 30_000,
        "\ud800 " * 100_000,
    ],
    ids=["word", "digits", "marks", "ids", "combining", "chinese", "dashes", "spaced", "months", "surrogates"],
)
def test_a_hostile_document_takes_bounded_time(text: str) -> None:
    body = schema(a=STRING, b=NUMBER, c=STRING, d=STRING, e=STRING)
    record = {"a": "a", "b": 1, "c": "a b 1 e\u0301 " * 100, "d": "2018-12-01", "e": "一一"}
    started = time.process_time()
    grounded(body, record, text)
    assert time.process_time() - started < 3


def test_a_number_that_nobody_writes_out_is_told_without_being_written_out() -> None:
    draft = grounded(schema(a={"type": "integer"}), {"a": 10**5000})
    assert codes(draft) == ["ungrounded"]
    assert len(draft.problems[0].message) < 160
