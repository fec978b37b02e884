"""Every rewrite of a schema, by table and with the real matchers: what has to get through, what must not, what is left."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from transport_trip import BACKENDS, takes

from pipeline.schema.registry import document_schema
from pipeline.schema.shape import choices, read as reading
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import Transport, transport_of

BOTH = pytest.mark.parametrize("backend", BACKENDS)


def body_of(schema: Any) -> Any:
    return document_schema(schema, "shapes@1").body


def left_of(transport: Transport) -> set[str]:
    return {f"{left.pointer}:{left.keyword}" for left in transport.left}


def obj(properties: Any, *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


INT, STR, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
TAGGED = [obj({"kind": {"const": tag}, "v": schema}, "kind", "v") for tag, schema in (("x", INT), ("y", STR))]
LINKED = {"$defs": {"n": obj({"v": INT, "next": {"anyOf": [{"$ref": "#/$defs/n"}, NULL]}}, "v", "next")}}

# name: (schema, values that must get through, values that must not)
EXACT: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "unanchored pattern": ({"type": "string", "pattern": "b"}, ["b", "abc", 'a"b\\'], ["", "ac"]),
    "pattern open at the end": ({"type": "string", "pattern": "^a"}, ["a", "ab\n"], ["ba", ""]),
    "pattern with a length": ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ["abc"], ["abcd", "", "A"]),
    "free text that looks like a pattern": ({"type": "string", "pattern": "^.*$"}, ['5" \\ 😀', ""], []),
    "a length counts characters": (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"\n', "😀é中"],
        ["a", "😀😀😀😀"],
    ),
    "allOf of objects": (
        {"allOf": [obj({"a": INT}, "a"), obj({"b": STR}, "b")]},
        [{"a": 1, "b": ""}, {"a": 1, "b": "", "c": 1}],
        [{"a": 1}, {"b": ""}, {"a": "x", "b": ""}],
    ),
    "allOf of bounds": (
        {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"exclusiveMaximum": 5}]},
        [3, 4],
        [2, 5, 6, "a"],
    ),
    "allOf of arrays": (
        {
            "allOf": [
                {"type": "array", "items": {"type": ["integer", "null"]}},
                {"items": {"type": ["integer", "string"]}},
            ]
        },
        [[], [1, 2]],
        [[None], ["a"]],
    ),
    "one key in two places": (
        {
            "type": "object",
            "properties": {"a": INT},
            "required": ["a"],
            "allOf": [{"properties": {"a": {"enum": [1, "1"]}}}],
        },
        [{"a": 1}],
        [{"a": "1"}, {"a": 2}],
    ),
    "a reference with siblings": (
        {"$defs": {"s": {"type": "string", "maxLength": 3}}, "$ref": "#/$defs/s", "minLength": 2},
        ["ab", "abc"],
        ["a", "abcd"],
    ),
    "oneOf with a discriminator": (
        {"oneOf": TAGGED},
        [{"kind": "x", "v": 1}, {"kind": "y", "v": "s"}],
        [{"kind": "x", "v": "s"}, {"kind": "z", "v": 1}],
    ),
    "oneOf by types": ({"oneOf": [INT, STR, NULL]}, [1, "a", None], [1.5, True, []]),
    "oneOf by constants": ({"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}]}, ["a", "b", "c"], ["d", 1]),
    "oneOf by a forbidden key": (
        {
            "type": "object",
            "oneOf": [
                obj({"a": INT}, "a", additionalProperties=False),
                obj({"b": INT}, "b", additionalProperties=False),
            ],
        },
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
    "if, then and else": (
        {
            "type": "object",
            "properties": {"k": {"enum": ["x", "y"]}, "v": {"type": ["integer", "string"]}},
            "required": ["k", "v"],
            "additionalProperties": False,
            "if": {"properties": {"k": {"const": "x"}}},
            "then": {"properties": {"v": INT}},
            "else": {"properties": {"v": STR}},
        },
        [{"k": "x", "v": 1}, {"k": "y", "v": "s"}],
        [{"k": "x", "v": "s"}, {"k": "y", "v": 1}],
    ),
    "if without else": (
        {"type": ["integer", "string"], "if": {"type": "number"}, "then": {"minimum": 5}},
        [5, "a"],
        [4],
    ),
    "dependentRequired": (
        obj({"a": INT, "b": INT}, dependentRequired={"a": ["b"]}, additionalProperties=False),
        [{}, {"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}],
    ),
    "dependentSchemas": (
        obj(
            {"a": INT, "b": INT},
            dependentSchemas={"a": {"properties": {"b": {"const": 1}}, "required": ["b"]}},
            additionalProperties=False,
        ),
        [{}, {"b": 2}, {"a": 1, "b": 1}],
        [{"a": 1}, {"a": 1, "b": 2}],
    ),
    "const implies its type": ({"const": {"a": [1, True]}}, [{"a": [1, True]}], [{"a": [1]}, {}]),
    "enum judged by its siblings": (
        {"enum": ["a", "bb", 1, None], "type": "string", "minLength": 2},
        ["bb"],
        ["a", 1, None],
    ),
    "const and enum meet": ({"enum": [1, 2, 3], "allOf": [{"enum": [2, 3, 4]}, {"not": {"const": 3}}]}, [2], [1, 3, 4]),
    "whole floats are integers": ({"const": 1.0}, [1, 1.0], [1.5, 2]),
    "not a type": ({"not": {"type": ["object", "array", "boolean"]}}, [1, "a", None], [{}, [], True]),
    "not a required key": (
        {
            "type": "object",
            "properties": {"a": INT, "b": INT},
            "additionalProperties": False,
            "not": {"required": ["a"]},
        },
        [{}, {"b": 1}],
        [{"a": 1}],
    ),
    "recursion": (
        {**LINKED, "$ref": "#/$defs/n"},
        [{"v": 1, "next": None}, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}],
        [{"v": 1}, {"v": 1, "next": 5}],
    ),
    "an optional child that needs itself": (
        {"$defs": {"n": obj({"v": INT, "n": {"$ref": "#/$defs/n"}}, "v")}, "$ref": "#/$defs/n"},
        [{"v": 1}, {"v": 1, "n": {"v": 2}}],
        [{"n": {"v": 1}}],
    ),
    "a branch without end is taken out": (
        {"$defs": {"n": obj({"n": {"$ref": "#/$defs/n"}}, "n")}, "anyOf": [INT, {"$ref": "#/$defs/n"}]},
        [1],
        [{}, {"n": 1}],
    ),
    "anyOf beside properties": (
        {
            "type": "object",
            "properties": {"a": INT},
            "required": ["a"],
            "additionalProperties": False,
            "anyOf": [{"required": ["a"]}],
        },
        [{"a": 1}],
        [{}, "anything", {"a": "x"}],
    ),
    "keywords of another type": ({"type": "integer", "minLength": 3, "properties": {"a": STR}}, [1], ["abc", {}]),
    "no type": ({"maxLength": 2, "minItems": 1}, ["ab", 1, None, {"x": [1]}, [1]], ["abc", []]),
    "tuples": (
        {"type": "array", "prefixItems": [INT, STR], "items": False, "minItems": 1},
        [[1], [1, "a"]],
        [[], ["a"], [1, "a", 2]],
    ),
    "few multiples": (
        {"type": "integer", "multipleOf": 5, "minimum": -5, "maximum": 12},
        [-5, 0, 10],
        [12, -10, 3, 15],
    ),
    "crossing bounds in one branch": ({"anyOf": [{"type": "integer", "minimum": 3, "maximum": 2}, STR]}, ["a"], [2, 3]),
    "a map": ({"type": "object", "additionalProperties": INT}, [{}, {'a"b': 1, "": 2}], [{"a": "x"}]),
    "an empty object": (obj({}, additionalProperties=False), [{}], [{"a": 1}]),
    "booleans": ({"type": "array", "items": True, "maxItems": 2}, [[], [None, {"a": []}]], [[1, 2, 3]]),
    "an exact format": (
        {"type": "string", "format": "date"},
        ["2024-02-29", "0001-01-01"],
        ["2023-02-29", "24-1-1", ""],
    ),
}


@BOTH
@pytest.mark.parametrize("name", EXACT)
def test_what_a_grammar_can_hold_it_holds_exactly(name: str, backend: str) -> None:
    schema, good, bad = EXACT[name]
    body = body_of(schema)
    source, transport = Source(body), transport_of(body, backend)
    assert [value for value in good if not source.validator.is_valid(value)] == []
    assert [value for value in bad if source.validator.is_valid(value)] == []
    assert left_of(transport) == set()
    assert [value for value in good if not takes(transport.text, canonical_text(source, value), backend)] == []
    assert [value for value in bad if takes(transport.text, canonical_text(source, value), backend)] == []


# name: (schema, what is left, a value that is let through because of it)
LEFT: dict[str, tuple[Any, set[str], Any]] = {
    "branches that overlap": ({"oneOf": [INT, {"type": "number"}]}, {":oneOf"}, 3),
    "unique items": ({"type": "array", "items": INT, "uniqueItems": True}, {":uniqueItems"}, [1, 1]),
    "contains": ({"type": "array", "contains": {"const": 1}, "minContains": 2}, {":contains", ":minContains"}, []),
    "look-ahead that is not followed": ({"type": "string", "pattern": r"^(a)\1$"}, {":pattern"}, "b"),
    "an unknown format": ({"type": "string", "format": "made-up"}, {":format"}, None),
    "an outlined format": ({"type": "string", "format": "uri"}, {":format"}, None),
    "a required key without a place": (
        {"type": "object", "required": ["ghost"], "additionalProperties": INT},
        {":required"},
        {"other": 1},
    ),
    "not whole": ({"type": ["number", "null"], "not": {"type": "integer"}}, {":not"}, 1),
    "a single number": ({"type": "integer", "not": {"const": 3}}, {":not"}, 3),
    "if that has no complement": (
        {"type": "array", "if": {"uniqueItems": True}, "then": {"maxItems": 1}},
        {":then", "/if:uniqueItems"},
        [1, 2],
    ),
    "unevaluated items": ({"type": "array", "unevaluatedItems": INT}, {":unevaluatedItems"}, ["a"]),
    "a map by patterns and more": (
        {"type": "object", "patternProperties": {"^a": INT}, "additionalProperties": STR},
        {":patternProperties", ":additionalProperties"},
        {"a": "x"},
    ),
}


@BOTH
@pytest.mark.parametrize("name", LEFT)
def test_what_it_cannot_is_left_and_named(name: str, backend: str) -> None:
    schema, sites, value = LEFT[name]
    body = body_of(schema)
    source, transport = Source(body), transport_of(body, backend)
    assert left_of(transport) == sites
    assert all(left.why for left in transport.left)
    if value is not None:
        assert not source.validator.is_valid(value)
        assert takes(transport.text, canonical_text(source, value), backend)


UNSATISFIABLE = {
    "a required child that needs itself": {"$defs": {"n": obj({"n": {"$ref": "#/$defs/n"}}, "n")}, "$ref": "#/$defs/n"},
    "two that need each other": {
        "$defs": {
            "a": obj({"b": {"$ref": "#/$defs/b"}}, "b"),
            "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
        },
        "$ref": "#/$defs/a",
    },
    "a ghost in a closed object": obj({"a": INT}, "a", "ghost", additionalProperties=False),
    "a ghost that may not be named so": {"type": "object", "required": ["b"], "propertyNames": {"const": "a"}},
    "bounds of a number": {"type": "number", "minimum": 3, "exclusiveMaximum": 3},
    "no whole number between": {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    "no multiple between": {"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 12.345, "multipleOf": 100},
    "no decimal multiple between": {"type": "number", "minimum": 0.11, "maximum": 0.19, "multipleOf": 0.1},
    "bounds of a string": {"type": "string", "minLength": 3, "maxLength": 2},
    "bounds of an array": {"type": "array", "minItems": 3, "maxItems": 2},
    "more items than there are places": {"type": "array", "prefixItems": [INT], "items": False, "minItems": 2},
    "bounds of an object": {"type": "object", "minProperties": 3, "maxProperties": 2},
    "more keys than there are": obj({"a": INT}, additionalProperties=False, minProperties=2),
    "more required keys than allowed": obj({"a": INT, "b": INT}, "a", "b", maxProperties=1),
    "types that exclude each other": {"allOf": [INT, STR]},
    "constants that exclude each other": {"allOf": [{"const": 1}, {"const": 2}]},
    "an enum that its type refuses": {"type": "string", "enum": [1, 2]},
    "a required key that must be absent": obj({"a": False}, "a"),
    "a member that cannot be (F098)": obj({"s": {"type": "string", "not": {}}}, "s"),
    "every branch": {"anyOf": [False, {"type": "string", "enum": [1]}]},
    "if both ways": {"if": {"type": "string"}, "then": False, "else": False},
}


@pytest.mark.parametrize("name", UNSATISFIABLE)
def test_what_no_document_can_satisfy_is_told(name: str) -> None:
    body = body_of(UNSATISFIABLE[name])
    assert read(body).root == NEVER
    for backend in BACKENDS:
        transport = transport_of(body, backend)
        assert not transport.satisfiable
        assert transport.text == "false"


ORDERS: dict[str, tuple[Any, list[str]]] = {
    "as written": (obj({"rationale": STR, "label": STR}), ["rationale", "label"]),
    "turned": (obj({"label": STR, "rationale": STR}), ["label", "rationale"]),
    "not by what is required": (obj({"z": STR, "a": STR, "m": STR}, "m"), ["z", "a", "m"]),
    "allOf before": ({"allOf": [{"properties": {"b": STR}}], "type": "object", "properties": {"a": STR}}, ["b", "a"]),
    "allOf after": ({"type": "object", "properties": {"a": STR}, "allOf": [{"properties": {"b": STR}}]}, ["a", "b"]),
    "a reference before": (
        {"$ref": "#/$defs/d", "properties": {"a": STR}, "$defs": {"d": {"type": "object", "properties": {"b": STR}}}},
        ["b", "a"],
    ),
    "a reference after": (
        {
            "type": "object",
            "properties": {"a": STR},
            "$ref": "#/$defs/d",
            "$defs": {"d": {"properties": {"b": STR, "a": True}}},
        },
        ["a", "b"],
    ),
    "keys of one branch keep their place": (
        {"anyOf": [obj({"a": STR, "b": STR}), obj({"b": STR, "a": STR})]},
        ["a", "b"],
    ),
}


@BOTH
@pytest.mark.parametrize("name", ORDERS)
def test_keys_come_in_the_order_of_the_text(name: str, backend: str) -> None:
    schema, names = ORDERS[name]
    body = body_of(schema)
    text = canonical_text(Source(body), dict.fromkeys(reversed(names), "x"))
    assert list(json.loads(text)) == names
    transport = transport_of(body, backend).text
    assert takes(transport, text, backend)
    turned = json.dumps(dict.fromkeys(reversed(names), "x"), separators=(",", ":"))
    assert not takes(transport, turned, backend)


def nested_one_of(depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"oneOf": [{"type": "object", "properties": {name: schema}} for name in "ab"]}
    return schema


def crossed(unions: int, branches: int) -> Any:
    """So many unions on one value, each of so many branches."""
    return {
        "allOf": [
            {"anyOf": [{"properties": {f"{union}.{branch}": {"type": "integer"}}} for branch in range(branches)]}
            for union in range(unions)
        ]
    }


@pytest.mark.parametrize(
    "schema",
    [nested_one_of(10), crossed(8, 2), crossed(3, 40), crossed(30, 2), {"anyOf": [{"const": n} for n in range(3000)]}],
    ids=["nested unions", "eight unions", "wide unions", "thirty unions", "a union of constants"],
)
def test_what_multiplies_is_bounded(schema: Any) -> None:
    started = time.monotonic()
    shapes = read(body_of(schema))
    assert time.monotonic() - started < 20
    assert len(shapes.named) <= reading.MAX_SHAPES
    assert shapes.root != NEVER


def test_unions_that_would_multiply_too_far_are_left() -> None:
    body = body_of(crossed(8, 2))
    shapes = read(body)
    assert 2**8 > choices.MAX_ALTERNATIVES
    assert {left.keyword for left in shapes.left} == {"anyOf"}
    assert len(shapes.left) < 8


def test_more_places_than_are_told_apart_are_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SHAPES", 3)
    body = body_of(obj({name: obj({"v": INT, "w": STR}, "v") for name in "abcd"}, *"abcd"))
    transport = transport_of(body, "guidance")
    assert {left.keyword for left in transport.left} == {"*"}
    record = {name: {"v": 1, "w": ""} for name in "abcd"}
    assert takes(transport.text, canonical_text(Source(body), record), "guidance")
