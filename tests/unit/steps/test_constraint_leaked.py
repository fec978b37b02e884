"""On a constrained path, what the grammar was to hold alarms; what it was not to hold is a finding like any other."""

from __future__ import annotations

from typing import Any

import pytest
from support import plan_of

from pipeline.records import Draft, Field, Repair
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.policy import Policy
from pipeline.steps.normalise import normalise
from pipeline.steps.validate import validate

LINES = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "maxLength": 40},
        "total": {"type": "number", "minimum": 0},
        "day": {"type": "string", "format": "date"},
        "kind": {"enum": ["a", "b"]},
        "lines": {"type": "array", "items": {"type": "integer", "multipleOf": 3}, "uniqueItems": True},
    },
    "required": ["total", "kind"],
}
FINE = {"code": "x", "total": 1, "day": "2024-02-29", "kind": "a", "lines": [3]}


def constrained(body: Any, value: Any, policy: Policy | None = None, **draft: Any) -> list[tuple[str, str]]:
    plan = plan_of(body, f"leak@{hash((str(body), str(policy)))}", policy)
    made = validate(Draft(value=value, parsed=True, **draft), plan, 1, constrained=True)
    return [(problem.code, problem.pointer) for problem in made.problems]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"total": "1"}, "/total"),
        ({"kind": "c"}, "/kind"),
        ({"day": 5}, "/day"),
        ({"more": 1}, ""),
        ({"lines": ["x"]}, "/lines/0"),
    ],
)
def test_what_the_grammar_was_to_hold_alarms_on_a_constrained_path_only(change: Any, pointer: str) -> None:
    assert constrained(LINES, FINE | change) == [("constraint_leaked", pointer)]
    free = validate(Draft(value=FINE | change, parsed=True), plan_of(LINES, "leak@free"), 1)
    assert [(p.code, p.pointer) for p in free.problems] == [("schema_violation", pointer)]


def test_what_the_plan_leaves_is_a_violation_and_stands_beside_a_leak() -> None:
    plan = plan_of(LINES, "leak@left")
    left = {(item.pointer, item.keyword) for item in plan.left}
    assert ("/properties/lines", "uniqueItems") in left
    assert constrained(LINES, FINE | {"lines": [3, 3]}) == [("schema_violation", "/lines")]
    both = constrained(LINES, FINE | {"lines": [3, 3], "kind": "c"})
    assert sorted(both) == [("constraint_leaked", "/kind"), ("schema_violation", "/lines")]


def test_abstentions_repairs_and_touched_values_do_not_alarm() -> None:
    nullable = Policy(abstain="nullable")
    assert constrained(LINES, FINE | {"total": None}, nullable) == [("abstained", "/total")]
    assert constrained(LINES, FINE | {"kind": "c"}, repairs=(Repair("json_repair"),)) == [("schema_violation", "/kind")]
    assert constrained(LINES, FINE | {"kind": "c"}, fields=(Field("/kind", touched=True),)) == [
        ("schema_violation", "/kind")
    ]


def test_as_printed_leaves_alarm_only_for_what_was_asked() -> None:
    body = {
        "type": "object",
        "properties": {
            "total": {"type": "number", "minimum": 10, "x-normalise": ["decimal-comma"]},
            "name": {"type": "string", "pattern": "^[a-z]+$", "x-normalise": ["upper"]},
        },
        "required": ["total"],
    }
    plan = build_plan(document_schema(body, "leak@printed"), "", backend="guidance", compact_json=True)

    def judged(value: Any) -> list[tuple[str, str]]:
        draft = normalise(Draft(value=value, parsed=True), plan, 1)
        return [(p.code, p.pointer) for p in validate(draft, plan, 1, constrained=True).problems]

    assert judged({"total": "12,5"}) == []
    assert judged({"total": "9,5"}) == [("schema_violation", "/total")]
    assert judged({"total": "x"}) == [("not_normalised", "/total"), ("schema_violation", "/total")]
    assert judged({"total": "12,5", "name": "ab"}) == [("schema_violation", "/name")]
    assert judged({"total": 9}) == [("constraint_leaked", "/total")]
