"""A parsed value against its schema and its columns: right pointers, formats on, no offending values in messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import codes, plan_of, schema_and_record

from pipeline.records import Draft, Problem
from pipeline.schema.shape.policy import Policy
from pipeline.schema.walk import resolve
from pipeline.steps.route import status_of
from pipeline.steps.validate import MAX_PROBLEMS, MAX_REASON, validate

GOOD_BODY = {
    "type": "object",
    "properties": {"vendor": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["vendor", "count"],
}


def problems(body: Any, value: Any) -> tuple[Problem, ...]:
    return validate(Draft(value=value, parsed=True), plan_of(body, f"test@{hash(str(body))}"), 1).problems


def field(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


@given(schema_and_record())
def test_a_record_of_its_schema_has_no_problem(pair: Any) -> None:
    assert problems(*pair) == ()


def test_pointers_escape_tilde_and_slash_and_lead_to_the_value() -> None:
    body = {
        "type": "object",
        "properties": {
            "a/b": {"type": "object", "properties": {"c~d": {"type": "array", "items": {"type": "integer"}}}}
        },
    }
    value = {"a/b": {"c~d": [1, "x"]}}
    (problem,) = problems(body, value)
    assert problem.pointer == "/a~1b/c~0d/1"
    assert resolve(value, "#" + problem.pointer) == "x"


def test_missing_members_point_at_the_parent_and_are_named_once() -> None:
    body = field({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
    assert [(p.pointer, p.message) for p in problems(body, {"x": {}})] == [("/x", "required: a, b missing")]


@pytest.mark.parametrize(
    ("schema", "bad", "good"),
    [
        ({"format": "date"}, "2024-02-30", "2024-02-29"),
        ({"format": "date"}, "20240229", "2024-02-29"),
        ({"format": "date-time"}, "yesterday", "2024-02-29T10:00:00Z"),
        ({"format": "date-time"}, "2024-02-29", "2024-02-29T10:00:00+01:00"),
        ({"format": "time"}, "25:00:00Z", "23:59:59Z"),
        ({"format": "email"}, "nobody", "a@b.example"),
        ({"format": "uri"}, "not a uri", "https://example.com/a"),
        ({"format": "uuid"}, "x", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"),
        ({"format": "ipv4"}, "300.1.1.1", "10.0.0.1"),
        ({"format": "hostname"}, "-a-", "example.com"),
        ({"format": "duration"}, "1 day", "P1D"),
        ({"type": "integer"}, 1.5, 1.0),
        ({"type": "integer"}, True, -3),
        ({"type": "integer"}, "1", 2**63 - 1),
        ({"multipleOf": 0.01}, 19.991, 19.99),
        ({"multipleOf": 0.1}, 0.35, 0.3),
        ({"multipleOf": 0.0001}, 0.00015, 4503599627370496.0),
        ({"multipleOf": 3}, 10**30 + 1, 10**30 - 1),
        ({"multipleOf": 0.5}, 0.75, 1e300),
        ({"pattern": r"^\d+$"}, "١٢٣", "123"),
        ({"pattern": "^[a-z]+$"}, "abc\n", "abc"),
        ({"pattern": r"^\w+$"}, "é", "e_1"),
        ({"pattern": r"^a\sb[$.]$"}, "a b_", "a\u00a0b$"),
        ({"pattern": "b"}, "ac", "abc"),
        ({"enum": ["a", 1]}, True, 1),
    ],
)
def test_a_bad_value_is_found_and_a_good_one_is_not(schema: Any, bad: Any, good: Any) -> None:
    assert codes(validate(Draft(value={"x": bad}, parsed=True), plan_of(field(schema), f"t@{schema}"), 1)) == [
        "schema_violation"
    ]
    assert good is None or problems(field(schema), {"x": good}) == ()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2**63),
        ({"type": "integer"}, -(2**63) - 1),
        ({"type": "integer"}, 1e300),
        ({"type": "number"}, 2**53 + 1),
        ({"type": "number"}, 10**400),
        ({"type": ["number", "null"]}, -(10**4000)),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2**64]),
    ],
)
def test_a_number_that_its_column_cannot_hold_is_a_problem(schema: Any, value: Any) -> None:
    (problem,) = problems(field(schema), {"x": value})
    assert problem.code == "value_not_storable"
    assert problem.pointer == ("/x/1" if schema["type"] == "array" else "/x")


@settings(max_examples=30)
@given(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=6), st.integers(10**6))
def test_messages_do_not_hold_the_offending_value(text: str, number: int) -> None:
    body = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x"]},
            "c": {"type": "string", "maxLength": 2, "pattern": "^q$", "format": "date"},
            "d": {"maximum": 5, "multipleOf": 0.5},
            "e": {"const": 1},
            "f": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
    }
    text = f"§{text}"
    value = {"a": text, "b": text, "c": text, "d": number + 0.25, "e": text, "f": text, text + "!": 1}
    found = problems(body, value)
    assert len(found) >= 8
    assert all(text not in p.message and str(number) not in p.message for p in found)
    assert all(p.message and len(p.message) <= MAX_REASON and "None" not in p.message for p in found)


def test_the_number_of_problems_is_bounded() -> None:
    body = field({"type": "array", "items": {"type": "integer"}})
    assert len(problems(body, {"x": ["no"] * 5000})) == MAX_PROBLEMS


def test_a_recursive_schema_judges_a_deep_value() -> None:
    body = {"type": "object", "properties": {"c": {"$ref": "#"}, "n": {"type": "integer"}}}
    value: dict[str, Any] = {"n": "deepest"}
    for _ in range(60):
        value = {"c": value}
    assert [p.pointer for p in problems(body, value)] == ["/c" * 60 + "/n"]


def test_a_validator_that_fails_costs_the_record_and_not_the_job() -> None:
    steps = {f"s{i}": {"allOf": [{"$ref": f"#/$defs/s{i + 1}"}]} for i in range(40)}
    last = {"type": "object", "properties": {"c": {"$ref": "#/$defs/s0"}}}
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"c": value}
    found = problems(
        {"$defs": {**steps, "s40": last}, "type": "object", "properties": {"c": {"$ref": "#/$defs/s0"}}}, value
    )
    assert [p.code for p in found] == ["not_judged"]


@pytest.mark.parametrize(
    ("value", "pointer"),
    [({"x": "a\ud800"}, "/x"), ({"x": {"\udfff": 1}}, "/x"), ({"x": [0, {"k": "\ud83d"}]}, "/x/1/k")],
)
def test_lone_surrogates_are_found_in_strings_and_keys(value: Any, pointer: str) -> None:
    assert [(p.code, p.pointer) for p in problems(field({}), value)] == [("lone_surrogate", pointer)]


def test_two_schemas_of_one_digest_keep_their_own_column_order() -> None:
    from pipeline.steps.judge import judge_of

    one = plan_of({"type": "object", "properties": {"a": {}, "b": {}}}, "order@1")
    two = plan_of({"type": "object", "properties": {"b": {}, "a": {}}}, "order@2")
    assert one.schema_digest == two.schema_digest
    names = [[name for name, _ in judge_of(plan).column.fields] for plan in (one, two)]
    assert names == [["a", "b"], ["b", "a"]]


def test_null_for_a_required_leaf_is_an_abstention_where_the_policy_allows_it() -> None:
    allowed = plan_of(GOOD_BODY, "abstain@1", Policy(abstain="nullable"))
    strict = plan_of(GOOD_BODY, "abstain@2")
    draft = Draft(value={"vendor": None, "count": 3}, parsed=True)
    (problem,) = validate(draft, allowed, 1).problems
    assert (problem.code, problem.pointer) == ("abstained", "/vendor")
    assert codes(validate(draft, strict, 1)) == ["schema_violation"]
    assert status_of(validate(draft, allowed, 1)) == "degraded"


def test_an_abstention_hides_neither_another_violation_nor_a_value_that_no_column_holds() -> None:
    plan = plan_of(GOOD_BODY, "abstain@3", Policy(abstain="nullable"))
    both = validate(Draft(value={"vendor": None, "count": "three"}, parsed=True), plan, 1)
    assert sorted(codes(both)) == ["abstained", "schema_violation"]
    large = validate(Draft(value={"vendor": None, "count": 2**64}, parsed=True), plan, 1)
    assert sorted(codes(large)) == ["abstained", "value_not_storable"]


def test_a_document_that_the_model_calls_not_applicable_is_rejected_as_such_and_only_where_that_was_offered() -> None:
    value = {"not_applicable": True}
    offered = plan_of(GOOD_BODY, "abstain@4", Policy(abstain="document"))
    assert codes(validate(Draft(value=value, parsed=True), offered, 1)) == ["not_applicable"]
    assert status_of(validate(Draft(value=value, parsed=True), offered, 1)) == "rejected"
    assert set(codes(validate(Draft(value=value, parsed=True), plan_of(GOOD_BODY, "abstain@5"), 1))) == {
        "schema_violation"
    }


TAGGED = {
    "type": "object",
    "properties": {
        "p": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"k": {"const": kind}, "v": {"type": value}},
                    "required": ["k", "v"],
                    "additionalProperties": False,
                }
                for kind, value in (("a", "string"), ("b", "integer"))
            ]
        }
    },
    "required": ["p"],
}


def test_an_abstention_inside_a_union_is_one_and_another_fault_there_is_none() -> None:
    plan = plan_of(TAGGED, "abstain@6", Policy(abstain="nullable"))
    inside = validate(Draft(value={"p": {"k": "a", "v": None}}, parsed=True), plan, 1)
    assert set(codes(inside)) == {"abstained"}
    assert status_of(inside) == "degraded"
    for value in ({"k": "a", "v": 1}, {"k": None, "v": 1}, {"k": "c", "v": None}):
        assert "schema_violation" in codes(validate(Draft(value={"p": value}, parsed=True), plan, 1)), value


def test_a_constant_is_not_offered_null_so_that_branches_stay_apart() -> None:
    transport = json.loads(plan_of(TAGGED, "abstain@7", Policy(abstain="nullable")).transport)
    assert '"k":{"enum":["a"]}' in json.dumps(transport, separators=(",", ":"))


def test_a_record_that_the_schema_knows_is_not_taken_for_not_applicable() -> None:
    body = {"type": "object", "properties": {"not_applicable": {"type": "boolean"}}, "required": ["not_applicable"]}
    plan = plan_of(body, "abstain@8", Policy(abstain="document"))
    assert codes(validate(Draft(value={"not_applicable": True}, parsed=True), plan, 1)) == []
    other = plan_of(GOOD_BODY, "abstain@9", Policy(abstain="document"))
    assert "not_applicable" not in codes(validate(Draft(value={"not_applicable": 1}, parsed=True), other, 1))


@pytest.mark.parametrize(("value", "kept"), [(1.0, True), (-0.0, True), (1e3, True), (1.5, False), (True, False)])
def test_an_integer_is_a_number_without_a_fraction_and_no_boolean(value: Any, kept: bool) -> None:
    assert (problems(field({"type": "integer"}), {"x": value}) == ()) == kept
