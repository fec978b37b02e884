"""Canonical form: keys in the order of the text, numbers and strings in one spelling, and nothing lost on the way."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shape_schemas import Maker

from pipeline.errors import SchemaError
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.source import Source


def text_of(schema: Any, value: Any) -> str:
    return canonical_text(Source(document_schema(schema, "canonical@1").body), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-1, "-1"), (10**30, "1" + "0" * 30), (1.0, "1"), (-0.5, "-0.5"), (1.50, "1.5"), (1e-7, "0.0000001"),
        (1e22, "1" + "0" * 22), (123456789.12345678, "123456789.12345678"), (2.5e-5, "0.000025"), (True, "true"),
        (False, "false"), (None, "null"), ("", '""'),
        ('a"b\\c/d', '"a\\"b\\\\c/d"'), ("\n\t\r\b\f", '"\\n\\t\\r\\b\\f"'),
        ("\x00\x1f\x7f", '"\\u0000\\u001f\\u007f"'), ("é中😀\u2028", '"é中😀\u2028"'), ([], "[]"), ({}, "{}"),
        ([1, [2.0, {"a": []}]], '[1,[2,{"a":[]}]]'), ({'k"': 1}, '{"k\\"":1}'),
    ],
)  # fmt: skip
def test_every_value_has_one_spelling(value: Any, text: str) -> None:
    assert text_of({"type": ["object", "array", "string", "number", "boolean", "null"]}, value) == text
    assert json.loads(text) == value


AB = {"a": 1, "b": 2, "c": 3, "d": 4}
REFERRED = {"$defs": {"d": {"properties": {"d": True, "a": True}}}}


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ({"properties": {"c": True, "a": True}}, "cabd"),
        ({"properties": {"c": True}, "required": ["b"]}, "cabd"),
        ({"allOf": [{"properties": {"d": True}}, {"properties": {"b": True}}], "properties": {"c": True}}, "dbca"),
        ({"properties": {"c": True}, "allOf": [{"properties": {"d": True}}, {"properties": {"c": True}}]}, "cdab"),
        ({"anyOf": [{"properties": {"b": True}}, {"properties": {"d": True, "b": True}}]}, "bdac"),
        ({"oneOf": [{"properties": {"d": True}}, {"properties": {"c": True}, "required": ["zz"]}]}, "dcab"),
        ({"$ref": "#/$defs/d", "properties": {"c": True}, **REFERRED}, "dacb"),
        ({"properties": {"c": True}, "$ref": "#/$defs/d", **REFERRED}, "cdab"),
        ({"if": {"properties": {"d": True}}, "then": {"properties": {"b": True}}, "properties": {"a": True}}, "dbac"),
        ({"properties": {"d": True}, "dependentSchemas": {"x": {"properties": {"c": True}}}}, "dcab"),
        ({"patternProperties": {"c": True}, "additionalProperties": True}, "abcd"),
        ({"properties": {"b": True}, "not": {"properties": {"c": {"const": 0}}}}, "bacd"),
    ],
)
def test_declared_keys_come_in_the_order_of_the_text_and_others_in_their_own(schema: Any, keys: str) -> None:
    assert list(json.loads(text_of({"type": "object", "additionalProperties": True, **schema}, AB))) == list(keys)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"items": {"$ref": "#/$defs/o"}}, [{"a": 1, "b": 2}], '[{"b":2,"a":1}]'),
        ({"prefixItems": [True, {"$ref": "#/$defs/o"}]}, [{"a": 1, "b": 2}] * 2, '[{"a":1,"b":2},{"b":2,"a":1}]'),
        ({"additionalProperties": {"$ref": "#/$defs/o"}}, {"k": {"a": 1, "b": 2}}, '{"k":{"b":2,"a":1}}'),
        ({"patternProperties": {"^k": {"$ref": "#/$defs/o"}}}, {"k": {"a": 1, "b": 2}}, '{"k":{"b":2,"a":1}}'),
        ({"properties": {"k": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/o"}]}}}, {"k": {"a": 1, "b": 2}},
         '{"k":{"b":2,"a":1}}'),
    ],
)  # fmt: skip
def test_objects_inside_are_ordered_by_their_own_schemas(schema: Any, value: Any, text: str) -> None:
    defs = {"o": {"type": "object", "properties": {"b": True, "a": True}}}
    assert text_of({**schema, "$defs": defs}, value) == text


def test_recursion_is_ordered_at_every_level() -> None:
    schema = {"type": "object", "properties": {"v": True, "n": {"$ref": "#"}}}
    assert text_of(schema, {"n": {"n": {"v": 3}, "v": 2}, "v": 1}) == '{"v":1,"n":{"v":2,"n":{"v":3}}}'


@given(st.randoms(use_true_random=False))
def test_the_text_is_the_value_compact_and_stable(rng: random.Random) -> None:
    maker = Maker(rng)
    schema, value = maker.document(), maker.value()
    try:
        source = Source(document_schema(schema, "canonical@1").body)
    except SchemaError:
        return
    text = canonical_text(source, value)
    assert json.loads(text) == value
    assert canonical_text(source, json.loads(text)) == text
