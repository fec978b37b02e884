"""What the schema declares beyond JSON Schema, on drafts: codes, pointers, severities, bounds."""

from __future__ import annotations

import time
from typing import Any

import pytest
from declaring import MONEY, RIGHT, found, judged, rules
from hypothesis import given, settings
from support import Answers, codes, completion, document, extracted, plan_of, schema_and_record

from pipeline.job import ExtractConfig
from pipeline.records import Document, Draft, Problem, Repair
from pipeline.steps.codes import cap_of
from pipeline.steps.rules import check
from pipeline.steps.validate import MAX_PROBLEMS, validate


def test_a_rule_on_money_holds_where_binary_doubles_say_no() -> None:
    assert RIGHT["subtotal"] + RIGHT["tax"] != RIGHT["total"]  # type: ignore[operator]
    assert found(MONEY, RIGHT) == []
    assert found(MONEY, {**RIGHT, "total": 10.31}) == [Problem("rule_broken", "/total", "adds up", 1, "block")]


@pytest.mark.parametrize(("severity", "cap"), [("block", "rejected"), ("degrade", "degraded"), ("observe", "valid")])
def test_severity_decides_what_becomes_of_the_record(severity: Any, cap: str) -> None:
    (problem,) = found({"type": "object", **rules("false", severity=severity)}, {})
    assert problem.code == "rule_broken" and cap_of(problem) == cap


@pytest.mark.parametrize(("severity", "cap"), [("block", "degraded"), ("degrade", "degraded"), ("observe", "valid")])
@pytest.mark.parametrize("value", [{"total": 1, "subtotal": 1}, {"total": 1, "subtotal": 1, "tax": None}])
def test_a_rule_without_a_value_is_told_and_degrades_at_most(value: Any, severity: Any, cap: str) -> None:
    body = {**MONEY, **rules("self.total == self.subtotal + self.tax", severity=severity)}
    (problem,) = found(body, value)
    assert problem.code == "rule_not_judged" and cap_of(problem) == cap
    assert "guard" in problem.message  # says what to do


def test_rules_of_items_and_leaves_point_at_them() -> None:
    body = {**MONEY, "x-validations": []}
    lines = [{"name": "a", "amount": 1}, {"name": "b", "amount": -1}, {"name": "a", "amount": 2}]
    assert [(one.code, one.pointer) for one in found(body, {"lines": lines})] == [
        ("rule_broken", "/lines/1/amount"),
        ("repeated_item", "/lines/2"),
    ]
    leaf = {"type": "object", "properties": {"a/b": {"type": "number", **rules("self > 0")}}}
    assert [one.pointer for one in found(leaf, {"a/b": 0})] == ["/a~1b"]


def test_order() -> None:
    body = {**MONEY, "x-validations": []}
    assert found(body, {"issued": "2024-02-01", "due": "2024-03-01"}) == []
    (late,) = found(body, {"issued": "2024-03-01", "due": "2024-02-01"})
    assert (late.code, late.pointer, late.severity) == ("out_of_order", "/due", "degrade")
    (odd,) = found(body, {"issued": "on receipt", "due": "2024-02-01"})
    assert (odd.code, odd.pointer) == ("rule_not_judged", "/due")


def test_input_and_params() -> None:
    body = {"type": "object", **rules("input.order == 7 && params.limit > 1 && input.text.contains('Total')")}
    doc = Document("d", "Total 3", "s", "receipt@1", columns={"order": 7, "text": "a column of that name is hidden"})
    assert found(body, {}, doc, ExtractConfig(params={"limit": 2})) == []
    assert codes(Draft(problems=tuple(found(body, {}, doc, ExtractConfig(params={"limit": 0}))))) == ["rule_broken"]
    assert [one.code for one in found(body, {}, document("Total"))] == ["rule_not_judged"]  # no such column


def test_a_broken_rule_is_told_to_the_model_and_another_answer_can_mend_it() -> None:
    engine = Answers({**RIGHT, "total": 11}, RIGHT)
    outcome = extracted(engine, plan_of(MONEY), max_attempts=2)
    assert (outcome.status, outcome.layer) == ("valid", 2)
    assert "/total" in engine.prompts[1].user and "adds up" in engine.prompts[1].user


def test_rules_of_a_branch_count_where_the_record_is_of_that_branch() -> None:
    branches = [
        {"type": "object", "properties": {"kind": {"const": k}, "n": {"type": "number"}}, "required": ["kind", "n"],
         **rules(f"self.n > {limit}")}
        for k, limit in (("a", 0), ("b", 10))
    ]  # fmt: skip
    body = {"oneOf": branches}
    assert found(body, {"kind": "a", "n": 5}) == []
    assert [one.message for one in found(body, {"kind": "b", "n": 5})] == ["self.n > 10"]
    lacking = found(body, {"kind": "b"}, salvaged=True)  # no branch accepts it, and it is of the second still
    assert [(one.code, "self.n > 10" in one.message) for one in lacking] == [("rule_not_judged", True)]
    abstained = Problem("abstained", "/n", "", 1)
    assert [one.code for one in found(body, {"kind": "b", "n": None}, problems=(abstained,))] == ["rule_not_judged"]


def test_what_is_false_only_for_want_of_what_was_cut_is_not_called_broken() -> None:
    body = {
        "type": "object",
        "properties": {"total": {"type": "number"}, "lines": {"type": "array", "items": {"type": "number"}}},
        **rules("self.lines.sum() == self.total", "self.total > 0"),
    }
    cut = Problem("list_incomplete", "/lines", "", 1)
    whole = found(body, {"total": -3, "lines": [1]})
    saved = found(body, {"total": -3, "lines": [1]}, salvaged=True, problems=(cut,))
    assert [one.code for one in whole] == ["rule_broken", "rule_broken"]
    assert [(one.code, one.message[:14]) for one in saved] == [
        ("rule_broken", "self.total > 0"),
        ("rule_not_judged", "self.lines.sum"),
    ]
    gone = Repair("salvaged", "/lines", "", 1)
    assert [one.code for one in found(body, {"total": 3}, salvaged=True, repairs=(gone,))] == ["rule_not_judged"]


def test_nothing_is_said_of_a_record_that_is_none() -> None:
    assert judged(plan_of(MONEY), Draft()) == []
    no = Problem("not_applicable", "", "", 1)
    assert judged(plan_of(MONEY), Draft({"not_applicable": True}, True, problems=(no,))) == []


def test_a_record_that_breaks_its_schema_is_not_blamed_twice() -> None:
    plan = plan_of(MONEY)
    draft = validate(Draft({**RIGHT, "tax": "0.2"}, True), plan, 1)
    assert [one.code for one in draft.problems] == ["schema_violation"]
    assert judged(plan, draft) == []  # "number + string is not defined" would tell nobody anything


def test_problems_are_bounded_and_the_gravest_come_first() -> None:
    body = {
        "type": "array",
        "items": {"type": "number", **rules("self < 0", severity="observe")},
        "x-unique-by": [""],
        **rules("size(self) < 5"),
    }
    problems = found(body, [1] * 200)
    assert len(problems) == MAX_PROBLEMS
    assert [one.severity for one in problems] == sorted([one.severity for one in problems])  # b < d < o
    assert problems[0].code == "rule_broken" and problems[0].severity == "block"
    last = {"type": "array", "items": {"type": "number", **rules("self < 0", severity="observe")}}
    last["prefixItems"] = [{"type": "number"}] * 199 + [{"type": "number", **rules("self < 0")}]
    assert found(last, [1] * 205)[0].severity == "block"


def test_work_on_one_record_is_bounded_and_running_out_is_told() -> None:
    slow = rules("self.all(x, self.all(y, x + y >= 0))")
    body = {"type": "array", "items": {"type": "array", "items": {"type": "number"}, **slow}}
    started = time.process_time()
    problems = found(body, [[1.5] * 1000] * 30)
    assert time.process_time() - started < 6
    assert {one.code for one in problems} == {"rule_not_judged"} and len(problems) == MAX_PROBLEMS


def test_a_check_that_found_something_before_does_not_say_it_twice() -> None:
    plan = plan_of(MONEY)
    once = check(Draft({**RIGHT, "total": 1}, True), document(), plan, ExtractConfig(), {}, 1)
    assert check(once, document(), plan, ExtractConfig(), {}, 1) == once


def test_a_schema_without_annotations_costs_next_to_nothing() -> None:
    plan, draft, config = plan_of(), Draft({"vendor": "x", "total": 1}, True), ExtractConfig()
    assert judged(plan, draft) == []
    started = time.process_time()
    for _ in range(1000):
        assert check(draft, document(), plan, config, {}, 1) is draft
    assert time.process_time() - started < 0.5


@settings(max_examples=60)
@given(schema_and_record())
def test_no_record_makes_a_check_fail(pair: tuple[dict[str, Any], Any]) -> None:
    body, record = pair
    keys = [f"/{key.replace('~', '~0').replace('/', '~1')}" for key in body["properties"]]
    texts = ["self == self", "self.all(key, key in self)", "self.exists(key, self[key] == null || self[key] + 1 > 2)"]
    extra = {**rules(*texts, severity="observe"), **({"x-order": keys[:20]} if len(keys) > 1 else {})}
    for pointer in keys:
        extra["x-validations"].append({"rule": "true", "message": "never seen", "pointer": pointer})
    problems = found({**body, **extra}, record)
    assert {one.code for one in problems} <= {"rule_broken", "rule_not_judged", "out_of_order"}
    assert not {texts[0], texts[1], "never seen"} & {one.message for one in problems}


@pytest.mark.parametrize("cut", ['{"sku":"c","pri', '{"sku":"c"', "", '{"sku":"c","price":4},{"sku":"d"'])
@pytest.mark.parametrize(("price", "kept"), [(-5, False), (5, True)])
def test_a_whole_item_of_a_cut_list_is_judged_as_in_the_uncut_record(cut: str, price: int, kept: bool) -> None:
    item = {"type": "object", "properties": {"sku": {"type": "string"}, "price": {"type": "number"}}}
    rule = {"rule": "!has(self.price) || self.price >= 0", "message": "a price is not negative"}
    body = {"type": "object", "properties": {"lines": {"type": "array", "items": {**item, "x-validations": [rule]}}}}
    answer = completion(f'{{"lines":[{{"sku":"b","price":{price}}},{cut}', "length")
    outcome = extracted(Answers(answer), plan_of(body), max_attempts=1)
    assert (outcome.status == "degraded") is kept
    assert ("rule_broken" in codes(outcome)) is not kept
    assert "rule_not_judged" not in codes(outcome)
