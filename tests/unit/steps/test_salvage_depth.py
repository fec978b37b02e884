"""What layer 3 keeps inside lists and nested objects, and what that costs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from saving import ORDER, salvaged, saved, told
from support import Answers, attempt, codes, completion, extracted, plan_of

from pipeline.records import Draft, Field, Problem
from pipeline.steps.retry import Step
from pipeline.steps.salvage import salvage
from pipeline.steps.validate import validate


def test_a_cut_inside_a_nested_object_keeps_its_certain_members() -> None:
    draft = saved('{"id": "x", "place": {"city": "Bonn", "zip": 12', ORDER)
    assert draft is not None and draft.value == {"id": "x", "place": {"city": "Bonn"}}
    assert told(draft) >= {("field_dropped", "/place/zip"), ("required_missing", "/place/zip")}


def test_a_cut_item_is_left_out_of_its_list_which_says_so() -> None:
    draft = saved('{"id": "x", "rows": [{"n": "a", "v": 1}, {"n": "b", "v": 2', ORDER)
    assert draft is not None and draft.value == {"id": "x", "rows": [{"n": "a", "v": 1}]}
    assert told(draft) >= {("list_incomplete", "/rows"), ("required_missing", "/place")}
    assert ("/rows", True) in {(change.pointer, change.detail.startswith("item 1 of")) for change in draft.repairs}


def test_what_breaks_the_schema_is_dropped_where_it_stands_and_an_item_that_needs_it_goes_whole() -> None:
    rows = [{"n": "a", "v": "1"}, {"n": "b", "v": 2, "note": "long"}, {"n": "c", "v": 3}]
    draft = salvaged({"id": "x", "place": {"city": "Bonn", "zip": "q"}, "rows": rows}, ORDER)
    assert draft is not None
    assert draft.value == {"id": "x", "place": {"city": "Bonn"}, "rows": [{"n": "b", "v": 2}, {"n": "c", "v": 3}]}
    assert told(draft) >= {
        ("field_dropped", "/place/zip"),
        ("required_missing", "/place/zip"),
        ("list_incomplete", "/rows"),
    }
    # Places are those of the record: what was the second row is the first one now, and the first one is its list's.
    assert told(draft) >= {("field_dropped", "/rows/0/note"), ("field_dropped", "/rows")}
    assert [p.message[:20] for p in draft.problems if (p.code, p.pointer) == ("field_dropped", "/rows")] == [
        "item 0 of the answer"
    ]


@pytest.mark.parametrize("severity", ["block", "degrade", "observe"])
@pytest.mark.parametrize("kept_price", [-1, 1])
def test_rules_are_judged_on_what_is_kept_and_not_on_what_went(severity: str, kept_price: int) -> None:
    rule = {"rule": "self.price >= 0", "message": "a price is not negative", "severity": severity}
    item = {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "price": {"type": "number"}},
        "required": ["sku", "price"],
        "x-validations": [rule],
    }
    body = {"type": "object", "properties": {"lines": {"type": "array", "items": item}}}
    lines = [{"sku": 7, "price": -5}, {"sku": "c", "price": kept_price}]
    outcome = extracted(Answers({"lines": lines}), plan_of(body), max_attempts=1)
    if severity == "block" and kept_price < 0:
        assert outcome.status == "rejected" and "rule_broken" in codes(outcome)
    else:
        assert (outcome.status, outcome.record) == ("degraded", {"lines": lines[1:]})
        assert ("rule_broken", "/lines/0") in {(p.code, p.pointer) for p in outcome.problems} or kept_price > 0


@pytest.mark.parametrize("reason", ["stop", "length", "repetition"])
@pytest.mark.parametrize("value", [{"k" * 300_000: [1] * 1500}, {"k" * 60_000: {"j" * 60_000: [*range(30_000)]}}])
def test_long_keys_around_many_values_cost_neither_time_nor_memory(value: Any, reason: str) -> None:
    body = {"type": "object", "additionalProperties": {"type": ["array", "object"]}}
    before = time.process_time()
    outcome = extracted(Answers(completion(value, reason)), plan_of(body), max_attempts=1)
    assert time.process_time() - before < 1
    assert outcome.status == "rejected"
    assert sum(len(problem.pointer) for problem in outcome.problems) < 1 << 20


def test_marks_of_values_move_with_the_items_of_a_list() -> None:
    plan = plan_of(ORDER)
    value = {"id": "x", "place": None, "rows": [{"n": 5, "v": 1}, {"n": "b", "v": 2}, {"n": "c", "v": 3}]}
    fields = (Field("/rows/0/v", raw="1"), Field("/rows/2/v", raw="3"))
    draft = validate(Draft(value=value, parsed=True, fields=fields), plan, 1)
    kept = salvage(Step(attempt(text="{}"), draft), plan)
    assert kept is not None and kept.fields == (Field("/rows/1/v", raw="3"),)


def test_a_list_whose_places_have_meaning_is_not_shortened() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    body = {"type": "object", "properties": {"id": {"type": "string"}, "pair": pair}}
    draft = salvaged({"id": "x", "pair": [1, 2]}, body)
    assert draft is not None and draft.value == {"id": "x"}
    assert ("field_dropped", "/pair") in told(draft)


@pytest.mark.parametrize(("start", "kept"), [("", ["Ann"]), ('"Tim", ', ["Tim", "Ann"])])
def test_of_a_loop_the_first_round_is_kept(start: str, kept: list[str]) -> None:
    body = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}
    draft = saved('{"names": [' + start + '"Ann", ' * 900, body)
    assert draft is not None and draft.value == {"names": kept}
    assert codes(draft) == ["repetition", "list_incomplete"]


@pytest.mark.parametrize("text", ['{"lines": [', '{"lines": ["te', "", "{", '{"vendor": 5, "x'])
def test_nothing_certain_gives_nothing(text: str) -> None:
    assert saved(text) is None


def test_a_loop_that_was_stopped_keeps_what_stood_before_it() -> None:
    draft = saved('{"vendor": "Ann", "total": 1, "lines": ["a", "a", "a", "a", "a', reason="repetition")
    assert draft is not None
    assert draft.value == {"vendor": "Ann", "total": 1, "lines": ["a"]}


def test_problems_that_layer_3_cannot_lift_leave_nothing() -> None:
    problems = (Problem("truncated", attempt=1), Problem("duplicate_key", attempt=1))
    assert salvage(Step(attempt(text='{"vendor": "A", "total": 1, "l'), Draft(problems=problems)), plan_of()) is None
    assert codes(extracted(Answers('{"vendor": "A", "vendor": "B", "total": 1}'), max_attempts=1)) == ["duplicate_key"]
