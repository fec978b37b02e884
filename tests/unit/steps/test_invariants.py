"""Invariant 2: every repair, salvage, truncation and dropped field is named in the outcome; and nothing ever raises.

Random schemas, records and damage. Each answer goes through `extract` as in a job.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from earned import LEAF_SCHEMA, no_better_than_earned
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Answers, attempt, completion, document, plan_of, schema_and_record
from support import extracted as run_document
from untold import untold

from pipeline.records import STATUSES, Outcome, Problem

REASONS = ("stop", "length", "abort", "error", "repetition")

NORMALISED = {
    **LEAF_SCHEMA,
    "properties": {
        **LEAF_SCHEMA["properties"],
        "name": {"type": "string", "x-normalise": ["trim", "upper"]},
        "date": {"type": "string", "format": "date", "x-normalise": ["trim", {"date": {"locale": "de"}}]},
    },
}
NAMES = st.text(max_size=12) | st.sampled_from([" Müller ", "a\u200bb", 'O\'Neil "x"', "ﬀ", "\u202eabc", "null", "00"])
RECORDS = st.fixed_dictionaries(
    {"name": NAMES, "total": st.none() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9)},
    optional={
        "tags": st.lists(NAMES, max_size=4),
        "rows": st.lists(st.fixed_dictionaries({"sku": NAMES}, optional={"n": st.integers(-9, 99)}), max_size=3),
        "date": st.sampled_from(["2024-02-29", "29.02.2024", "1.3.24", "soon", "2023-02-30"]),
        "ok": st.booleans(),
        "extra": st.integers(),
    },
)


DAMAGE = [*'{}[],:"\\ 0e-\n', "\ufeff", "“", "："]


@st.composite
def damaged(draw: Callable[..., Any]) -> str:
    """JSON text as models spoil it: cut, without a mark, wrapped, escaped twice, with other quotes, repeated."""
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, 1]))
    text = json.dumps(draw(RECORDS), ensure_ascii=ascii_only, indent=indent)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, max(0, len(text) - 1)))
        text = draw(
            st.sampled_from(
                [
                    text[:place],
                    text[:place] + text[place + 1 :],
                    text[:place] + draw(st.sampled_from(DAMAGE)) + text[place:],
                    f"```json\n{text}\n```",
                    f"Here you are:\n{text}\nAnything else?",
                    json.dumps(text),
                    text.replace('"', "'"),
                    text.replace('"', "“", 1),
                    text + text,
                    text.rstrip("}") + ', "name": "again"}',
                    text.replace("null", "NaN"),
                    text.replace("true", "True"),
                ]
            )
        )
    return text


# --- invariant 2: every repair, salvage, truncation and dropped field is named


@pytest.mark.parametrize(
    ("text", "record", "silent"),
    [
        ('{"a": 1}', {"a": 1}, False),
        ('{"a": 1}', {"a": 2}, True),
        ('{"a": 1}', {"a": True}, True),
        ('{"a": "1"}', {"a": 1}, True),
        ('{"a": 1, "b": 2}', {"a": 1}, True),
        ('{"a": 1}', {"a": 1, "b": None}, True),
        ('{"a": [1, 2]}', {"a": [1]}, True),
        ('{"a": 1, "b": "x', {"a": 1}, True),
        ('{"a": 1, "b": "x', {"a": 1, "b": "x"}, True),
        ('{"a": 1, "b": 12', {"a": 1, "b": 12}, True),
        ('{"a": 1, "b": [3, 4', {"a": 1, "b": [3]}, True),
        ('{"a": 1, "b": [3], "c', {"a": 1, "b": [3]}, False),
        ("{a: 1, b: 'x'}", {"a": 1, "b": "x"}, False),
        ("{a: 1, b: 'x'}", {"a": 1, "b": "y"}, True),
    ],
)
def test_the_comparison_sees_what_is_silent(text: str, record: Any, silent: bool) -> None:
    """The tests below rest on it. The root is named, as of any answer that was cut or repaired."""
    given_up = (Problem("truncated", attempt=1),)
    outcome = Outcome(
        "d",
        "s",
        "x@1",
        "degraded",
        3,
        record,
        given_up,
        (),
        (attempt(1, text, finish_reason="length"),),
        record_attempt=1,
    )
    assert bool(untold(outcome)) is silent


@given(damaged(), st.sampled_from(REASONS), st.booleans(), st.sampled_from([LEAF_SCHEMA, NORMALISED]))
@settings(max_examples=200)
def test_every_change_between_answer_and_record_is_named(text: str, reason: str, constrained: bool, body: Any) -> None:
    outcome = run_document(Answers(completion(text, reason, constrained=constrained)), plan_of(body), backoff_seconds=0)
    no_better_than_earned(outcome)
    assert untold(outcome) == []
    if outcome.status != "rejected" and (outcome.layer == 3 or reason != "stop"):
        assert outcome.status == "degraded"


@given(schema_and_record(), st.data())
@settings(max_examples=100)
def test_a_cut_record_of_any_schema_names_what_is_not_there(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, record = pair
    text = json.dumps(record)
    cut = data.draw(st.integers(0, len(text)))
    outcome = run_document(Answers(completion(text[:cut], "length")), plan_of(schema), backoff_seconds=0)
    no_better_than_earned(outcome)
    assert outcome.status != "valid"
    assert untold(outcome) == []
    if outcome.status == "degraded":
        named = {item.pointer for item in (*outcome.problems, *outcome.repairs)}
        lost = [key for key in schema["required"] if key not in outcome.record]
        assert all(any(pointer.split("/")[1:2] == [_escaped(key)] for pointer in named) for key in lost)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@given(RECORDS.filter(lambda record: "extra" not in record and "date" not in record))
@settings(max_examples=60)
def test_a_whole_answer_is_passed_as_it_is(record: Any) -> None:
    outcome = run_document(Answers(json.dumps(record)), plan_of(LEAF_SCHEMA))
    fits = isinstance(record["total"], float | type(None)) or abs(record["total"]) <= 2**53  # its column is of doubles
    if len(record["name"]) <= 40 and fits:
        assert (outcome.status, outcome.record, outcome.repairs) == ("valid", record, ())


# --- nothing raises

MARKS = list("{}[]\":,\\ue0-1.tfn\n`'“：\ufeff\u200b\ud800\x00")


@given(
    st.text() | st.text(alphabet=MARKS),
    st.sampled_from(REASONS),
    st.booleans(),
)
@settings(max_examples=200)
def test_arbitrary_text_never_raises(text: str, reason: str, constrained: bool) -> None:
    answer = completion(text, reason, constrained=constrained, reasoning=text[::-1])
    outcome = run_document(Answers(answer), plan_of(NORMALISED), document(text or "x"), backoff_seconds=0)
    no_better_than_earned(outcome)
    assert outcome.status in STATUSES


@given(st.binary(max_size=200))
@settings(max_examples=60)
def test_arbitrary_bytes_never_raise(data: bytes) -> None:
    for text in (data.decode("utf-8", "replace"), data.decode("latin-1"), data.decode("utf-8", "surrogateescape")):
        no_better_than_earned(run_document(Answers(text), plan_of(LEAF_SCHEMA), max_attempts=1))
