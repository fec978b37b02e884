"""What no document can satisfy, the order of keys, and what keeps shapes few and quick."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shape_cases import INT, STR, obj
from transport_trip import BACKENDS, takes

from pipeline.schema.registry import document_schema
from pipeline.schema.shape import choices
from pipeline.schema.shape import read as reading
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import Transport, transport_of
from tests.bounds import processor_seconds

BOTH = pytest.mark.parametrize("backend", BACKENDS)


def body_of(schema: Any) -> Any:
    return document_schema(schema, "shapes@1").body


def left_of(transport: Transport) -> set[str]:
    return {f"{left.pointer}:{left.keyword}" for left in transport.left}


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
    with processor_seconds(20):
        shapes = read(body_of(schema))
    assert len(shapes.named) <= reading.MAX_SHAPES
    assert shapes.root != NEVER


def test_unions_that_would_multiply_too_far_are_left() -> None:
    body = body_of(crossed(8, 2))
    shapes = read(body)
    assert choices.MAX_ALTERNATIVES < 2**8
    assert {left.keyword for left in shapes.left} == {"anyOf"}
    assert len(shapes.left) < 8


def test_more_places_than_are_told_apart_are_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SHAPES", 3)
    body = body_of(obj({name: obj({"v": INT, "w": STR}, "v") for name in "abcd"}, *"abcd"))
    transport = transport_of(body, "guidance")
    assert {left.keyword for left in transport.left} == {"*"}
    record = {name: {"v": 1, "w": ""} for name in "abcd"}
    assert takes(transport.text, canonical_text(Source(body), record), "guidance")
