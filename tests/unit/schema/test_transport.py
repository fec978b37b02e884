"""The engine gets what decides acceptance, in its own order, and nothing else.

The limits of each back end are tried on the real matchers: what is written must hold, what is not must be left.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from support import RECEIPT, plan_of, schema_and_record
from transport_trip import BACKENDS, Trip, takes

from pipeline.schema.registry import document_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.dialect import GUIDANCE, XGRAMMAR
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import Transport, transport_of
from pipeline.schema.validator import validator_of

BOTH = pytest.mark.parametrize("backend", BACKENDS)
ANNOTATED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/t",
    "title": "gone",
    "type": "object",
    "x-validations": [{"rule": "self.title != 'gone'", "message": "gone"}],
    "properties": {
        "title": {"type": "string", "title": "gone", "default": "gone", "examples": ["gone"]},
        "description": {"type": "string", "description": "gone", "x-hint": "gone"},
        "x-foo": {"$ref": "#/$defs/examples", "$comment": "gone"},
        "default": {"enum": [{"title": "kept", "x-a": 1}]},
        "const": {"const": {"description": "kept"}},
    },
    "required": ["title", "x-foo"],
    "$defs": {"examples": {"type": "integer", "deprecated": True}},
}


def body_of(schema: Any) -> Any:
    return document_schema(schema, "transport@1").body


def left_of(transport: Transport) -> set[tuple[str, str]]:
    return {(left.pointer, left.keyword) for left in transport.left}


@BOTH
def test_annotations_and_extensions_do_not_reach_the_engine(backend: str) -> None:
    transport = transport_of(body_of(ANNOTATED), backend)
    assert "gone" not in transport.text
    assert left_of(transport) == set()
    schema = json.loads(transport.text)
    assert list(schema["properties"]) == ["title", "description", "x-foo", "default", "const"]
    record = {
        "title": "t",
        "description": "d",
        "x-foo": 1,
        "default": {"title": "kept", "x-a": 1},
        "const": {"description": "kept"},
    }
    assert takes(transport.text, json.dumps(record, separators=(",", ":")), backend)
    assert not takes(transport.text, '{"title":"t","x-foo":"no"}', backend)


@BOTH
def test_annotations_are_found_below_every_applicator(backend: str) -> None:
    inner = {"type": "string", "title": "gone", "x-a": "gone"}
    lists = {key: [inner, True] for key in ("allOf", "anyOf", "oneOf", "prefixItems")}
    maps = {key: {"a": inner} for key in ("properties", "patternProperties", "$defs", "dependentSchemas")}
    single = ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")
    for keyword, value in [*lists.items(), *maps.items(), *((key, inner) for key in single)]:
        assert "gone" not in transport_of(body_of({keyword: value}), backend).text


def test_the_order_of_keys_is_part_of_the_grammar() -> None:
    names = ["zeta", "alpha", "mid"]
    plan = plan_of({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    assert list(json.loads(plan.transport)["properties"]) == names
    turned = plan_of({"type": "object", "properties": {name: {"type": "string"} for name in names[::-1]}})
    assert turned.grammar_digest != plan.grammar_digest


def test_prose_changes_no_grammar_but_the_plan() -> None:
    plain, wordy = plan_of(), plan_of({**RECEIPT, "description": "A receipt."})
    assert plain.transport == wordy.transport
    assert plain.grammar_digest == wordy.grammar_digest
    assert plain.digest != wordy.digest


@settings(max_examples=60)
@given(schema_and_record())
def test_the_transport_schema_is_a_schema_that_accepts_the_records(one: Any) -> None:
    schema = {**one[0], "title": "t", "x-y": 1}
    for backend in BACKENDS:
        assert validator_of(json.loads(transport_of(body_of(schema), backend).text)).is_valid(one[1])


# --- what one back end cannot hold: (schema, sites left by xgrammar, by guidance, values that must stay in reach)

ENUM_10 = {"enum": [f"code-{n:06d}" for n in range(XGRAMMAR.largest_enum + 1)]}
LIMITS: dict[str, tuple[Any, set[str], set[str], list[Any]]] = {
    "numbers with bounds": (
        {"type": "number", "minimum": 0.5, "exclusiveMaximum": 9},
        {"minimum", "exclusiveMaximum"},
        set(),
        [0.5, 8.9999999],
    ),
    "bounds of two decimals": (
        {"type": "number", "minimum": -43.53, "maximum": 12.345},
        {"minimum", "maximum"},
        {"minimum", "maximum"},
        [12.345, 12.34, 12.3, -43.53, -43.5, -43.529999],
    ),
    "an excluded bound of a small range": (
        {"type": "number", "exclusiveMinimum": 1, "maximum": 1.5},
        {"exclusiveMinimum", "maximum"},
        {"exclusiveMinimum"},
        [1.0001, 1.5],
    ),
    "bounds beyond floating point": (
        {"type": "integer", "minimum": -(2**53) - 1, "maximum": 2**53 + 1},
        set(),
        {"minimum", "maximum"},
        [2**53 + 1, -(2**53) - 1, 0],
    ),
    "steps": ({"type": "integer", "multipleOf": 3, "minimum": 0}, {"multipleOf"}, set(), [0, 3, 9007199254740993]),
    "decimal steps": (
        {"type": "number", "multipleOf": 0.01, "minimum": 0},
        {"multipleOf", "minimum"},
        set(),
        [0, 19.99, 1000000],
    ),
    "steps below zero": ({"type": "integer", "multipleOf": 3}, {"multipleOf"}, {"multipleOf"}, [-3, 6]),
    "constants beyond 64 bit": (
        {"enum": [2**64, -(2**63), 2**53 + 1, 1]},
        {"enum"},
        {"enum"},
        [2**64, -(2**63), 2**53 + 1, 1],
    ),
    "small constants": ({"enum": [1e-7, 1.5]}, {"enum"}, {"enum"}, [1e-7, 1.5]),
    "constants within constants": ({"const": {"a": [1e22, 0.1]}}, {"const"}, {"const"}, [{"a": [1e22, 0.1]}]),
    "two patterns": (
        {"type": "string", "pattern": "^[a-z]+$", "allOf": [{"pattern": "b"}]},
        {"pattern"},
        set(),
        ["abc"],
    ),
    "a huge enum": (ENUM_10, {"enum"}, set(), ["code-000000", "code-010000"]),
    "a huge minItems": (
        {"type": "array", "items": {"type": "null"}, "minItems": 5001},
        {"minItems"},
        {"minItems"},
        [[None] * 5001],
    ),
    "a forbidden key of an open object": (
        {"type": "object", "properties": {"a": False}, "additionalProperties": True},
        {"*"},
        set(),
        [{}, {"b": 1}],
    ),
    "an odd key of an open object": (
        {"type": "object", "properties": {"é": {"type": "null"}}, "additionalProperties": True},
        {"*"},
        set(),
        [{}, {"é": None}, {"é": None, "b": 1}],
    ),
    "names by a pattern": (
        {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
        set(),
        {"propertyNames"},
        [{}, {"ab": 1}],
    ),
    "names by a pattern beside properties": (
        {"type": "object", "properties": {"a": True}, "additionalProperties": True, "propertyNames": {"pattern": "^a"}},
        {"propertyNames"},
        {"propertyNames"},
        [{"a": 1, "ab": 2}],
    ),
    "a map by one pattern": (
        {"type": "object", "patternProperties": {"^x-": {"type": "null"}}, "additionalProperties": False},
        set(),
        {"patternProperties", "additionalProperties"},
        [{}, {"x-a": None, "x-b": None}],
    ),
    "numbers of optional keys": (
        {"type": "object", "properties": {"a": True, "b": True}, "additionalProperties": False, "minProperties": 1},
        set(),
        {"minProperties"},
        [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}],
    ),
    "a bound below a not": (
        {"type": "number", "not": {"minimum": 5}},
        {"not"},
        set(),
        [4.9, -1],
    ),
    "an if that is not held": (
        {"if": {"type": "string", "pattern": r"^(a)\1$"}, "else": {"type": "array"}},
        {"pattern", "else"},
        {"pattern", "else"},
        ["aa", []],
    ),
}


@BOTH
@pytest.mark.parametrize("name", LIMITS)
def test_what_a_back_end_cannot_hold_is_left_and_no_value_is_lost(name: str, backend: str) -> None:
    schema, by_xgrammar, by_guidance, values = LIMITS[name]
    body = body_of(schema)
    transport, source = transport_of(body, backend), Source(body)
    expected = by_xgrammar if backend == "xgrammar" else by_guidance
    assert {keyword for _, keyword in left_of(transport)} == expected
    for value in values:
        assert source.validator.is_valid(value)
        assert takes(transport.text, canonical_text(source, value), backend), value


def test_the_limits_are_those_of_the_table() -> None:
    assert (XGRAMMAR.largest_enum, GUIDANCE.largest_enum) == (10_000, 100_000)
    assert GUIDANCE.largest_bound == 2**53


@BOTH
@pytest.mark.parametrize("pattern", [r"^(?=.*[0-9])[a-z0-9]+$", '^[^"]*$', r"^[^\\]+$", r"\W", "^x(?!y)"])
def test_a_pattern_is_held_or_left_and_never_loses(pattern: str, backend: str) -> None:
    trip = Trip(body_of({"type": "string", "pattern": pattern}), (backend,))
    for value in ["a1", "abc", 'q"t', "back\\s", "\n", "é", "xy", "x", "", "😀"]:
        assert list(trip.faults(value)) == []
