"""The engine gets what decides acceptance, in its own order, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from support import RECEIPT, plan_of, schema_and_record

from pipeline.schema.transport import transport_schema
from pipeline.schema.validator import validator_of

ANNOTATED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/t",
    "title": "T",
    "type": "object",
    "x-validations": [{"rule": "self.a > 0"}],
    "properties": {
        "title": {"type": "string", "title": "Title", "default": "x", "examples": ["y"]},
        "description": {"type": "string", "description": "d", "x-hint": 1},
        "x-foo": {"$ref": "#/$defs/examples", "$comment": "c"},
        "default": {"enum": [{"title": "kept", "x-a": 1}]},
        "const": {"const": {"description": "kept"}},
    },
    "required": ["title", "x-foo"],
    "dependentRequired": {"title": ["description"]},
    "$defs": {"examples": {"type": "integer", "deprecated": True}},
}


def test_properties_named_like_keywords_survive_and_annotations_do_not() -> None:
    assert transport_schema(ANNOTATED) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "description": {"type": "string"},
            "x-foo": {"$ref": "#/$defs/examples"},
            "default": {"enum": [{"title": "kept", "x-a": 1}]},
            "const": {"const": {"description": "kept"}},
        },
        "required": ["title", "x-foo"],
        "dependentRequired": {"title": ["description"]},
        "$defs": {"examples": {"type": "integer"}},
    }


def test_annotations_are_found_below_every_applicator() -> None:
    inner = {"type": "string", "title": "gone"}
    lists = {key: [inner, True] for key in ("allOf", "anyOf", "oneOf", "prefixItems")}
    maps = {key: {"title": inner} for key in ("properties", "patternProperties", "$defs", "dependentSchemas")}
    one = (
        "items",
        "additionalProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
    )
    stripped = transport_schema({**lists, **maps, **dict.fromkeys(one, inner)})
    assert "gone" not in json.dumps(stripped)
    assert json.dumps(stripped).count('{"type": "string"}') == 17
    assert [stripped[key][1] for key in lists] == [True] * 4


def test_the_order_of_keys_is_kept() -> None:
    names = ["zeta", "alpha", "mid"]
    plan = plan_of({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    assert list(json.loads(plan.transport)["properties"]) == names
    turned = plan_of({"type": "object", "properties": {name: {"type": "string"} for name in names[::-1]}})
    assert turned.transport != plan.transport
    assert turned.grammar_digest != plan.grammar_digest


def test_prose_changes_no_grammar_but_the_plan() -> None:
    plain, wordy = plan_of(), plan_of({**RECEIPT, "description": "A receipt."})
    assert plain.transport == wordy.transport
    assert plain.grammar_digest == wordy.grammar_digest
    assert plain.digest != wordy.digest


@given(schema_and_record(), schema_and_record())
def test_the_transport_schema_accepts_the_same_values(one: Any, other: Any) -> None:
    schema = {**one[0], "title": "t", "x-y": 1}
    for value in (one[1], other[1]):
        assert validator_of(transport_schema(schema)).is_valid(value) == validator_of(schema).is_valid(value)
