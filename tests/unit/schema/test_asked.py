"""What the model is asked for: as printed where a normaliser converts, and never less than what becomes legal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import schema_and_record

from pipeline.compile.check import trial_job
from pipeline.compile.report_budget import budget_job
from pipeline.errors import SchemaError
from pipeline.schema.asked import as_asked, asked, printed
from pipeline.schema.drift.told import grammar_of, prompt_of
from pipeline.schema.normalised import Normaliser
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import DocumentSchema, Example, document_schema, load_schema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.transport import transport_of
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import descend
from pipeline.steps.prompt import system_prompt

ROOT = Path(__file__).parents[3]
COMMA: dict[str, Any] = {"x-normalise": ["decimal-comma"]}
DATE: dict[str, Any] = {"x-normalise": [{"date": {"locale": "de"}}]}
RECEIPT = {
    "type": "object",
    "properties": {
        "total": {"type": ["number", "null"], "minimum": 0, "description": "Amount payable", **COMMA},
        "date": {"type": "string", "format": "date", "title": "Day", "examples": ["2024-02-29"], **DATE},
        "currency": {"enum": ["EUR", "USD"], "x-normalise": ["currency"]},
        "vendor": {"type": "string", "pattern": "^[A-Z ]+$", "x-normalise": ["trim", "upper"], "x-language": "de"},
    },
    "required": ["total", "date"],
    "x-validations": [{"rule": "self.total >= 0.0", "message": "a total is not negative"}],
}


def schema_of(body: Any, *examples: Example) -> DocumentSchema:
    return document_schema(body, "asked@1", examples=examples)


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_a_converted_leaf_is_asked_as_printed_and_other_leaves_keep_what_they_say() -> None:
    properties = schema_of(RECEIPT).asked["properties"]
    text = {"minLength": 1, "maxLength": 80}
    assert properties == {
        "total": {"description": "Amount payable (as printed)", "type": ["string", "null"], **text},
        "date": {"title": "Day", "description": "As printed", "type": "string", **text},
        "currency": {"description": "As printed", "type": "string", **text},
        "vendor": {"type": "string", "pattern": "^[A-Z ]+$"},
    }
    assert printed(schema_of(RECEIPT).body) == ("/properties/total", "/properties/date", "/properties/currency")


def test_no_keyword_of_ours_reaches_prompt_grammar_trial_or_budget() -> None:
    schema = schema_of(RECEIPT)
    plan = build_plan(schema, system_prompt(schema), backend="guidance", compact_json=True)
    told = [plan.prefix, plan.transport, *prompt_of(schema), grammar_of(schema)]
    told += [json.dumps(job.payload) for job in (trial_job(schema, "xgrammar"), budget_job(schema, Policy(), []))]
    for text in told:
        assert "x-" not in text
        assert '"number"' not in text
    assert plan.acceptance is schema.body
    assert plan.asked is schema.asked


def test_a_property_may_be_called_like_a_keyword_of_ours() -> None:
    body = members(**{"x-normalise": {"type": "string"}, "y": {"type": "string", "x-ground": False}})
    assert list(schema_of(body).asked["properties"]) == ["x-normalise", "y"]
    assert schema_of(body).asked["properties"]["y"] == {"type": "string"}


@given(schema_and_record())
def test_without_keywords_of_ours_the_body_itself_is_asked(pair: Any) -> None:
    schema = schema_of(pair[0])
    assert schema.asked is schema.body
    assert asked(schema.body) is schema.body


@pytest.mark.parametrize("name", ["receipt@1", "advisory@1", "package@1"])
def test_the_schemas_of_this_repository_are_asked_as_they_are(name: str) -> None:
    schema = load_schema(ROOT / "schemas", name)
    assert schema.asked is schema.body


AMOUNT = {"type": "number", "minimum": 0, **COMMA}
PLACES: dict[str, tuple[Any, Any]] = {
    "reference": ({**members(x={"$ref": "#/$defs/a"}), "$defs": {"a": AMOUNT}}, {"x": "1,5"}),
    "reference with siblings": (
        {**members(x={"$ref": "#/$defs/a", "maximum": 9}), "$defs": {"a": AMOUNT}},
        {"x": "1,5"},
    ),
    "part of allOf": (members(x={"allOf": [AMOUNT, {"type": "number", "multipleOf": 0.5}]}), {"x": "1,5"}),
    "branch": (members(x={"anyOf": [AMOUNT, {"type": "null"}]}), {"x": "1,5"}),
    "branch under a type": (members(x={"type": ["number", "null"], "anyOf": [AMOUNT, {"type": "null"}]}), {"x": "1,5"}),
    "one of two": (members(x={"oneOf": [AMOUNT, {**DATE, "type": "string", "format": "date"}]}), {"x": "1.3.2024"}),
    "items": (members(x={"type": "array", "items": AMOUNT, "uniqueItems": True}), {"x": ["1,5", "2,5"]}),
    "tuple": (members(x={"type": "array", "prefixItems": [AMOUNT], "items": {"type": "string"}}), {"x": ["1,5", "a"]}),
    "contains": (
        members(x={"type": "array", "items": AMOUNT, "contains": {"minimum": 5}, "minContains": 1}),
        {"x": ["1,5", "7,5"]},
    ),
    "pattern": ({"type": "object", "patternProperties": {"^a": AMOUNT}, "additionalProperties": False}, {"ab": "1,5"}),
    "others": ({"type": "object", "additionalProperties": AMOUNT}, {"ab": "1,5"}),
    "said again": (
        {**members(x=AMOUNT), "allOf": [members(x={"type": "number", "maximum": 5})]},
        {"x": "1,5"},
    ),
    "said again behind a reference": (
        {"allOf": [{"$ref": "#/$defs/base"}, members(x={"enum": [1.5, 2]})], "$defs": {"base": members(x=AMOUNT)}},
        {"x": "1,5"},
    ),
    "decided by": (
        {
            **members(x=AMOUNT, y={"type": "integer"}),
            "if": {"properties": {"x": {"maximum": 5}}, "required": ["x"]},
            "then": {"properties": {"y": {"const": 1}}},
            "else": {"properties": {"y": {"const": 2}}},
        },
        {"x": "9,5", "y": 2},
    ),
    "excluded": ({**members(x=AMOUNT), "not": {"properties": {"x": {"type": "string"}}}}, {"x": "1,5"}),
    "told apart by": (
        members(
            p={
                "oneOf": [
                    members(c={"const": "EUR", "x-normalise": ["currency"]}, v={"type": "integer"}),
                    members(c={"const": "USD", "x-normalise": ["currency"]}, v={"type": "integer"}),
                ]
            }
        ),
        {"p": {"c": "€", "v": 1}},
    ),
    "listed whole": (members(p={**members(x=AMOUNT), "enum": [{"x": 1.5}]}), {"p": {"x": "1,5"}}),
    "recursive": (
        {"type": "object", "properties": {"x": AMOUNT, "sub": {"$ref": "#"}}, "required": ["x"]},
        {"x": "1,5", "sub": {"x": "2,5", "sub": {"x": "3"}}},
    ),
    "unevaluated": (
        {
            **members(x=AMOUNT),
            "if": {"properties": {"x": {"maximum": 5}}},
            "then": {"properties": {"y": {"type": "string"}}},
            "unevaluatedProperties": False,
        },
        {"x": "1,5", "y": "a"},
    ),
    "where nobody else speaks": (
        {**members(y={"type": "string"}), "allOf": [True], "unevaluatedProperties": AMOUNT},
        {"y": "a", "x": "1,5"},
    ),
    "if a key is there": (
        {
            **members(y={"type": "string"}),
            "dependentSchemas": {"y": members(x=AMOUNT)},
            "properties": {"x": {"type": "number"}, "y": {"type": "string"}},
        },
        {"y": "a", "x": "1,5"},
    ),
    "root": ({"type": "number", **COMMA}, "1,5"),
}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_stands_what_becomes_legal_is_asked_for_and_can_be_written(place: str) -> None:
    body, raw = PLACES[place]
    schema = schema_of(body)
    made = Normaliser(schema.body).of(raw)
    assert made.raw
    assert validator_of(schema.body).is_valid(made.value)
    assert validator_of(schema.asked).is_valid(raw)
    assert all("x-" not in json.dumps(list(node)) for _, node in descend(schema.asked) if isinstance(node, dict))
    for backend in ("xgrammar", "guidance"):
        transport = transport_of(schema.asked, backend)
        assert transport.satisfiable
        assert validator_of(json.loads(transport.text)).is_valid(raw)


@settings(max_examples=60)
@given(st.data())
def test_records_of_random_schemas_are_asked_for_as_they_are_printed(data: st.DataObject) -> None:
    body, record = data.draw(schema_and_record())
    body, raw = json.loads(json.dumps(body)), json.loads(json.dumps(record))
    for name, node in body.get("properties", {}).items():
        if node.get("type") in ("number", "integer") and data.draw(st.booleans()):
            node["x-normalise"] = ["decimal-comma"]
            if isinstance(raw.get(name), int | float):
                raw[name] = format(raw[name], "f").replace(".", ",")
    schema = schema_of(body)
    made = Normaliser(schema.body).of(raw)
    if validator_of(schema.body).is_valid(made.value):
        assert validator_of(schema.asked).is_valid(raw)


def test_examples_are_what_the_model_shall_write() -> None:
    good = {"total": "12,50", "date": "29. Februar 2024", "currency": "€"}
    assert schema_of(RECEIPT, Example("…", good)).examples[0].record == good
    for bad in (
        {"total": 12.5, "date": "29. Februar 2024"},
        {"total": "-12,50", "date": "29. Februar 2024"},
        {"total": "12,50", "date": "30. Februar 2024"},
        {"total": "12,50"},
    ):
        with pytest.raises(SchemaError, match="its own example") as caught:
            schema_of(RECEIPT, Example("…", bad))
        assert caught.value.code == "bad_example"


def test_samples_in_their_final_form_are_counted_as_they_would_be_asked() -> None:
    schema = schema_of(RECEIPT)
    record = {"total": 12.5, "date": "2024-02-29"}
    assert as_asked(schema.body, record) == {"total": "12.5", "date": "2024-02-29"}
    (sample,) = budget_job(schema, Policy(), [record]).payload["samples"]
    assert validator_of(schema.asked).is_valid(sample)


def test_another_normaliser_is_another_plan() -> None:
    other = json.loads(json.dumps(RECEIPT))
    other["properties"]["total"]["x-normalise"] = ["decimal-point"]
    plans = [build_plan(schema_of(one), "", backend="guidance", compact_json=True) for one in (RECEIPT, other)]
    assert plans[0].grammar_digest == plans[1].grammar_digest
    assert plans[0].digest != plans[1].digest
