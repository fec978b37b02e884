"""What records hold of what is required, and which sites that a plan left were violated."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import Answers, completion, extracted, plan_of

from pipeline.observe.left import MAX_SITES, OTHER, left_violations
from pipeline.observe.required import required_states
from pipeline.observe.tally import Tally, tally
from pipeline.records import Outcome, Problem
from pipeline.schema.shape.shapes import Left

LINE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array"}, "next": {"$ref": "#/$defs/line"}},
    "required": ["name", "tags"],
}
ORDER = {
    "type": "object",
    "$defs": {"line": LINE},
    "properties": {
        "id": {"type": ["string", "null"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "to": {"allOf": [{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}]},
    },
    "required": ["id", "lines"],
}


@pytest.mark.parametrize(
    ("record", "states"),
    [
        ({"id": "7", "lines": [{"name": "a", "tags": [1]}]}, {"filled": 4}),
        ({"id": None, "lines": []}, {"null": 1, "empty": 1}),
        ({"id": " \n", "lines": [{"name": "", "tags": []}, {"tags": [0]}]}, {"empty": 3, "filled": 2, "absent": 1}),
        ({"id": "7", "lines": [], "to": {}}, {"filled": 1, "empty": 1}),
        ({"id": "7", "lines": [], "to": {"town": "x"}}, {"filled": 1, "empty": 1, "absent": 1}),
        (
            {"id": 0, "lines": [{"name": "a", "tags": [1], "next": {"name": "b", "tags": []}}]},
            {"filled": 5, "empty": 1},
        ),
        ({"made": {"up": 1}}, {"absent": 2}),
    ],
)
def test_required_values_are_filled_null_empty_or_absent(record: Any, states: dict[str, int]) -> None:
    assert dict(required_states(record, plan_of(ORDER))) == states


def test_only_records_count_and_only_with_their_plan() -> None:
    good = extracted(Answers({"vendor": "Ann", "total": None}))
    assert dict(tally([good], {"receipt@1": plan_of()}).required) == {"filled": 1, "null": 1}
    assert not tally([good]).required
    rejected = extracted(Answers("no"))
    assert rejected.status == "rejected"
    assert not tally([rejected], {"receipt@1": plan_of()}).required


def test_a_record_as_deep_as_can_be_is_walked() -> None:
    record: Any = {"name": "x", "tags": [1]}
    for _ in range(5000):
        record = {"name": "x", "tags": [1], "next": record}
    assert required_states({"id": "7", "lines": [record]}, plan_of(ORDER)) == {"filled": 2 + 2 * 5001}


BODY = {
    "type": "object",
    "$defs": {"name": {"type": "string", "maxLength": 3}},
    "properties": {
        "who": {"$ref": "#/$defs/name"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "by": {"type": "object", "additionalProperties": {"type": "integer", "multipleOf": 2}},
        "one": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^a"}]},
    },
}
LEFT = (
    Left("/$defs/name", "maxLength", ""),
    Left("/properties/rows/items/properties/n", "multipleOf", ""),
    Left("/properties/by/additionalProperties", "multipleOf", ""),
    Left("/properties/one", "*", ""),
)


def violated(*problems: Problem, constrained: bool = True, left: tuple[Left, ...] = LEFT) -> set[str]:
    plan = dataclasses.replace(plan_of(BODY), left=left, digest=f"{len(left)}")
    outcome = extracted(Answers(completion({}, constrained=constrained)), plan, max_attempts=1)
    return left_violations(dataclasses.replace(outcome, problems=problems), plan)


def problem(pointer: str, message: str) -> Problem:
    return Problem("schema_violation", pointer, message, 1)


@pytest.mark.parametrize(
    ("pointer", "message", "site"),
    [
        ("/who", "maxLength: must be 3", "/who maxLength"),
        ("/rows/17/n", "multipleOf: must be 2", "/rows/*/n multipleOf"),
        ("/by/what a model wrote", "multipleOf: must be 2", "/by/* multipleOf"),
        ("/one", "anyOf: not satisfied", "/one *"),
        ("/one/deep/er", "type: must be string", "/one *"),
        ("/elsewhere", "type: must be string", OTHER),
        ("/who", "the model's words", "/who maxLength"),
    ],
)
def test_a_violation_is_counted_at_the_site_that_the_plan_left(pointer: str, message: str, site: str) -> None:
    assert violated(problem(pointer, message)) == {site}
    assert violated(problem(pointer, message), constrained=False) == set()


def test_few_sites_of_a_schema_have_a_name() -> None:
    names = [f"p{number}" for number in range(3 * MAX_SITES)]
    body = {"type": "object", "properties": {name: {"type": "string", "maxLength": 300} for name in names}}
    plan = plan_of(body)
    assert len(plan.left) == 3 * MAX_SITES
    outcome = extracted(Answers(completion(dict.fromkeys(names, "a"), constrained=True)), plan, max_attempts=1)
    more = tuple(problem(f"/{name}", "maxLength: must be 1") for name in names)
    found = left_violations(dataclasses.replace(outcome, problems=more), plan)
    assert len(found) == MAX_SITES + 1
    assert OTHER in found


def test_sites_that_no_name_was_kept_for_do_not_grow_a_tally() -> None:
    total = Tally()
    for number in range(2000):
        one = Tally()
        one.left.update({f"/p{number} maxLength": 1})
        total.merge(one)
    assert len(total.left) <= 401
    assert total.left.total() == 2000


def test_a_real_violation_of_a_left_site_is_found() -> None:
    plan = plan_of(
        {"type": "object", "properties": {"code": {"type": "string", "maxLength": 300}}, "required": ["code"]}
    )
    outcome: Outcome = extracted(Answers(completion({"code": "a" * 301}, constrained=True)), plan, max_attempts=1)
    assert dict(tally([outcome], {"receipt@1": plan}).left) == {"/code maxLength": 1}
