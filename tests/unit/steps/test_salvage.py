"""Layer 3 keeps what is certain, names what is not, and invents nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GOOD, RECEIPT, Answers, attempt, codes, completion, extracted, plan_of, schema_and_record

from pipeline.records import Draft, Problem
from pipeline.steps.parse import parse
from pipeline.steps.retry import Step
from pipeline.steps.salvage import finished_members, salvage


def saved(text: str, body: Any = RECEIPT, reason: str = "length") -> Draft | None:
    return salvage(Step(attempt(text=text, finish_reason=reason), parse(completion(text, reason), 1)), plan_of(body))


@given(st.data(), schema_and_record(), st.booleans())
def test_every_kept_member_is_that_of_the_whole_record_wherever_the_cut(data: Any, pair: Any, ascii: bool) -> None:
    body, record = pair
    text = json.dumps(record, ensure_ascii=ascii, indent=data.draw(st.sampled_from([None, 1])))
    cut = data.draw(st.integers(0, len(text) - 1))
    draft = saved(text[:cut], {**body, "required": []})
    for name, value in (draft.value if draft else {}).items():
        assert json.dumps(record[name]) == json.dumps(value)
    kept = set(draft.value) if draft else set()
    named = {repair.detail and repair.pointer for repair in (draft.repairs if draft else ())}
    assert not draft or len(named) == len(body["properties"]) - len(kept)


def test_a_cut_member_is_dropped_and_named() -> None:
    draft = saved('{"vendor": "Ann & Co", "total": 5, "lines": ["tea"], "date": "2024-02')
    assert draft is not None
    assert draft.value == {"vendor": "Ann & Co", "total": 5, "lines": ["tea"]}
    assert [repair.pointer for repair in draft.repairs] == ["/date"]
    assert draft.salvaged


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": 12 ', {}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": ["x", "y"', {}),
        ('{"a": ["x", "y"]', {}),
        ('{"a": ["x", "y"]}', {"a": ["x", "y"]}),
        ('{"a": 1, "b": {"c": 1}, "d"', {"a": 1, "b": {"c": 1}}),
        ('{"a": 1, "a": 2, "b": 3', {}),
        ('{"a": 1, "b": {"c": 1, "c": 2}, "d": 1', {"a": 1}),
        ('{"a": 1, "b": NaN, "c": 1', {"a": 1}),
        ('{"a": 1, "b": 1e999, "c": 1', {"a": 1}),
        ('{"a": 1} {"a": 2', {}),
        ('{"a": 1} trailing', {}),
        ('Sure: {"a": 1, "b', {}),
        ('[{"a": 1}, {"b"', {}),
        ('{"a": ' + "[" * 3000, {}),
        ('{a: 1, "b": 2', {}),
        ("", {}),
    ],
)
def test_only_members_that_the_text_shows_to_be_finished_count(text: str, members: Any) -> None:
    assert finished_members(text) == members


def test_what_is_missing_of_the_required_members_is_named() -> None:
    draft = saved('{"vendor": "Ann", "tot')
    assert draft is not None
    assert [(p.code, p.pointer) for p in draft.problems[1:]] == [("required_missing", "/total")]


def test_an_invalid_value_inside_takes_its_top_level_member_with_it() -> None:
    body = {**RECEIPT, "properties": {**RECEIPT["properties"], "place": {"properties": {"zip": {"type": "integer"}}}}}
    outcome = extracted(Answers({**GOOD, "place": {"zip": "x"}}), plan_of(body, "nested@1"), max_attempts=1)
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == GOOD
    assert ("field_dropped", "/place") in [(p.code, p.pointer) for p in outcome.problems]


def test_an_undeclared_key_cannot_be_told_from_a_misplaced_one_so_nothing_is_kept() -> None:
    outcome = extracted(Answers({**GOOD, "tip": 1}), max_attempts=1)
    assert (outcome.status, outcome.record) == ("rejected", None)


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_root_that_is_no_record_gives_nothing(reason: str) -> None:
    body = {"type": "array", "items": {"type": "string"}}
    assert saved('["a", "b"', body, reason) is None


@pytest.mark.parametrize("text", ['{"lines": ["tea", "sa', "", "{", '{"vendor": 5, "x'])
def test_nothing_certain_gives_nothing(text: str) -> None:
    assert saved(text) is None


def test_a_loop_that_was_stopped_keeps_what_stood_before_it() -> None:
    draft = saved('{"vendor": "Ann", "total": 1, "lines": ["a", "a", "a", "a", "a', reason="repetition")
    assert draft is not None
    assert draft.value == {"vendor": "Ann", "total": 1}


def test_problems_that_layer_3_cannot_lift_leave_nothing() -> None:
    problems = (Problem("truncated", attempt=1), Problem("duplicate_key", attempt=1))
    assert salvage(Step(attempt(text='{"vendor": "A", "total": 1, "l'), Draft(problems=problems)), plan_of()) is None
    assert codes(extracted(Answers('{"vendor": "A", "vendor": "B", "total": 1}'), max_attempts=1)) == ["duplicate_key"]
