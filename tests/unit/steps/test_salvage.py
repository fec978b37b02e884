"""Layer 3 keeps what is certain, names what is not, and invents nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import GOOD, RECEIPT, Answers, attempt, codes, completion, extracted, plan_of, schema_and_record

from pipeline.records import Draft, Field, Problem
from pipeline.steps.parse import parse
from pipeline.steps.repair import repair
from pipeline.steps.retry import Step
from pipeline.steps.route import status_of
from pipeline.steps.salvage import salvage
from pipeline.steps.salvaging.certain import certain
from pipeline.steps.validate import validate


def saved(text: str, body: Any = RECEIPT, reason: str = "length") -> Draft | None:
    return salvage(Step(attempt(text=text, finish_reason=reason), parse(completion(text, reason), 1)), plan_of(body))


def holds(whole: Any, part: Any) -> bool:
    """Whether a part is the whole but for members and the ends of lists."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and holds(whole[name], child) for name, child in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(map(holds, whole, part))
    return json.dumps(whole) == json.dumps(part)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.lists(schema_and_record(), min_size=45, max_size=45), st.booleans())
def test_whatever_is_kept_of_any_prefix_stands_in_the_whole_output(pairs: Any, ascii: bool) -> None:
    spent = []
    for body, record in pairs:
        text = json.dumps(record, ensure_ascii=ascii)
        plan = plan_of(body)
        for cut in range(0, len(text) + 1, max(1, len(text) // 12)):
            answer = completion(text[:cut], "length")
            started = time.perf_counter()
            draft = repair(parse(answer, 1), answer, 1, plan)
            kept = salvage(Step(attempt(text=text[:cut], finish_reason="length"), draft), plan)
            spent.append(time.perf_counter() - started)
            assert status_of(draft) == "rejected"
            assert kept is None or (status_of(kept) == "degraded" and holds(record, kept.value))
    assert sorted(spent)[len(spent) * 9 // 10] < 0.005  # the first of each schema builds its validator


def test_a_cut_member_is_dropped_and_named() -> None:
    draft = saved('{"vendor": "Ann & Co", "total": 5, "lines": ["tea"], "date": "2024-02')
    assert draft is not None
    assert draft.value == {"vendor": "Ann & Co", "total": 5, "lines": ["tea"]}
    assert [(repair.kind, repair.pointer) for repair in draft.repairs] == [("salvaged", "/date"), ("rest_left_out", "")]
    assert draft.salvaged


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": 12 ', {}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": ["x", "y"', {"a": ["x", "y"]}),
        ('{"a": ["x", 5', {"a": ["x"]}),
        ('{"a": ["x", tru', {"a": ["x"]}),
        ('{"a": ["x", "y"]', {"a": ["x", "y"]}),
        ('{"a": [[1], [2, 3', {"a": [[1]]}),
        ('{"a": [', {}),
        ('{"a": {"b": {"c": 1, "d"', {"a": {"b": {"c": 1}}}),
        ('{"a": {"b": 1', {}),
        ('{"z": 1, "a": "he said ", and left", "b": 1}', {"z": 1}),
        ('{"z": 1, "a": ["he said ", and left"]}', {"z": 1}),
        ('```json\n{"a": 1, "b', {"a": 1}),
        ('{"a": ["x", "y"]}', {"a": ["x", "y"]}),
        ('{"a": 1, "b": {"c": 1}, "d"', {"a": 1, "b": {"c": 1}}),
        ('{"a": 1, "a": 2, "b": 3', {}),
        ('{"a": 1, "b": {"c": 1, "c": 2}, "d": 1', {"a": 1}),
        ('{"a": 1, "b": NaN, "c": 1', {"a": 1}),
        ('{"a": 1, "b": 1e999, "c": 1', {"a": 1}),
        ('{"a": 1} {"a": 2', {}),
        ('{"a": 1} trailing', {}),
        ('Sure: {"a": 1, "b', {}),
        ('[{"a": 1}, {"b"', [{"a": 1}]),
        ("[1, 2", [1]),
        ('{"a": ' + "[" * 3000, {}),
        ('{a: 1, "b": 2', {}),
        ("", {}),
    ],
)
def test_only_members_that_the_text_shows_to_be_finished_count(text: str, members: Any) -> None:
    found = certain(text)
    assert (found.value if found else {}) == members


def test_what_is_missing_of_the_required_members_is_named() -> None:
    draft = saved('{"vendor": "Ann", "tot')
    assert draft is not None
    assert [(p.code, p.pointer) for p in draft.problems[1:]] == [("required_missing", "/total")]


def test_a_member_that_loses_all_it_held_goes_too() -> None:
    body = {**RECEIPT, "properties": {**RECEIPT["properties"], "place": {"properties": {"zip": {"type": "integer"}}}}}
    outcome = extracted(Answers({**GOOD, "place": {"zip": "x"}}), plan_of(body, "nested@1"), max_attempts=1)
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == GOOD
    assert ("field_dropped", "/place/zip") in [(p.code, p.pointer) for p in outcome.problems]


@pytest.mark.parametrize("closed", ["additionalProperties", "unevaluatedProperties"])
def test_an_undeclared_key_is_dropped_and_named_and_costs_nothing_else(closed: str) -> None:
    place = {"type": "object", "properties": {"zip": {"type": "string"}}, closed: False}
    schema = {**RECEIPT, "properties": {**RECEIPT["properties"], "place": place}, closed: False}
    answer = {**GOOD, "tip": 1, "place": {"zip": "9", "no/de": 2}}
    outcome = extracted(Answers(answer), plan_of(schema), max_attempts=1)
    assert (outcome.status, outcome.record) == ("degraded", {**GOOD, "place": {"zip": "9"}})
    assert {p.pointer for p in outcome.problems if p.code == "field_dropped"} == {"/tip", "/place/no~1de"}


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_root_that_is_a_list_keeps_its_complete_items(reason: str) -> None:
    draft = saved('["a", "b"', {"type": "array", "items": {"type": "string"}}, reason)
    assert draft is not None and draft.value == ["a", "b"]
    assert ("list_incomplete", "") in [(p.code, p.pointer) for p in draft.problems]


def test_a_root_that_is_a_scalar_gives_nothing() -> None:
    assert saved('"abc', {"type": "string"}) is None


ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "place": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                    "required": ["city", "zip"],
                },
                {"type": "null"},
            ]
        },
        "rows": {
            "type": "array",
            "minItems": 2,
            "items": {
                "type": "object",
                "properties": {"n": {"type": "string"}, "v": {"type": "number"}, "note": {"maxLength": 3}},
                "required": ["n", "v"],
            },
        },
    },
    "required": ["id", "place"],
}


def told(draft: Draft | None) -> set[tuple[str, str]]:
    return {(problem.code, problem.pointer) for problem in draft.problems} if draft else set()


def test_a_cut_inside_a_nested_object_keeps_its_certain_members() -> None:
    draft = saved('{"id": "x", "place": {"city": "Bonn", "zip": 12', ORDER)
    assert draft is not None and draft.value == {"id": "x", "place": {"city": "Bonn"}}
    assert told(draft) >= {("field_dropped", "/place/zip"), ("required_missing", "/place/zip")}


def test_a_cut_item_is_left_out_of_its_list_which_says_so() -> None:
    draft = saved('{"id": "x", "rows": [{"n": "a", "v": 1}, {"n": "b", "v": 2', ORDER)
    assert draft is not None and draft.value == {"id": "x", "rows": [{"n": "a", "v": 1}]}
    assert told(draft) >= {("list_incomplete", "/rows"), ("required_missing", "/place")}
    assert ("/rows", True) in {(change.pointer, change.detail.startswith("item 1 of")) for change in draft.repairs}


def salvaged(value: Any, body: Any) -> Draft | None:
    plan = plan_of(body)
    draft = validate(parse(completion(value), 1), plan, 1)
    return salvage(Step(attempt(text=json.dumps(value)), draft), plan)


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
