"""Columns follow from the document schema alone: typed where one type holds every valid value, JSON text elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_trip import assert_same, through_parquet
from support import schema_and_record

from pipeline.schema.arrow import arrow_field
from pipeline.schema.columns import MAX_COLUMNS, column_of
from pipeline.schema.storage import Column, misfits
from pipeline.schema.validator import validator_of
from tests.bounds import processor_seconds

PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ROW_OF_PLACES = {"type": "array", "items": PLACE}
STRUCT = "struct<city: string not null>"


def arrow_of(schema: Any, root: Any = None) -> str:
    """The Arrow type as text; `json` and why for JSON text, which is a string to Arrow."""
    column = column_of({**schema, "$defs": (root or {})})
    assert bool(column.note) == (column.kind == "json" or bool(column.format))
    if column.kind == "json":
        return f"json, {column.note.removesuffix(': kept as JSON text')}"
    return str(arrow_field("x", column).type)


@given(schema_and_record())
def test_records_come_back_from_parquet_as_they_were(pair: Any) -> None:
    column = column_of(pair[0])
    assert list(misfits(column, pair[1])) == []
    for nullable in (False, True):
        (back,) = through_parquet(column, [pair[1]], all_nullable=nullable)
        assert_same(column, back, pair[1])


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "uri"}, "string"),
        ({"type": "string", "format": "date"}, "date32[day]"),
        ({"type": "string", "format": "date-time"}, "string"),
        ({"format": "date"}, "json, value of any type"),
        ({"type": "integer"}, "int64"),
        ({"type": "number"}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"type": ["string", "null"]}, "string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int64"),
        ({"oneOf": [{"type": "null", "description": "absent"}, {"type": "number"}], "title": "t"}, "double"),
        ({"anyOf": [{"const": None}, {"enum": ["a", "b"]}]}, "string"),
        ({"anyOf": [{"type": "integer"}]}, "int64"),
        ({"anyOf": [{"type": "string", "format": "date"}, {"const": "unknown"}]}, "string"),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "string"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "double"),
        ({"oneOf": [PLACE, {**PLACE, "title": "again"}, {"type": "null"}]}, STRUCT),
        ({"enum": ["a", None]}, "string"),
        ({"enum": [1, 2.0]}, "int64"),
        ({"enum": [1, 2.5]}, "double"),
        ({"type": "string", "enum": ["a", 1, None]}, "string"),
        ({"enum": [1, "a"]}, "json, union of integer and string"),
        ({"enum": [1, True]}, "json, union of boolean and integer"),
        ({"const": True}, "bool"),
        ({"const": {"a": 1}}, "json, object that may hold keys which are not declared"),
        ({"type": "array", "items": {"type": ["integer", "null"]}}, "list<item: int64>"),
        (ROW_OF_PLACES, f"list<item: {STRUCT} not null>"),
        ({"type": "array"}, "json, array of items of any type"),
        ({"type": "array", "items": False}, "json, array that is always empty"),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": PLACE},
            "json, array whose positions differ (prefixItems)",
        ),
        ({"type": "object"}, "json, object that may hold keys which are not declared"),
        ({**PLACE, "additionalProperties": True}, "json, object that may hold keys which are not declared"),
        ({**PLACE, "patternProperties": {"^x": {}}}, "json, object that may hold keys which are not declared"),
        (
            {"type": "object", "properties": {}, "additionalProperties": False},
            "json, object without properties, which Parquet cannot store",
        ),
        ({"type": ["string", "integer", "null"]}, "json, union of integer and string"),
        ({"type": ["object", "string", "array"]}, "json, union of array, object and string"),
        ({"anyOf": [{"type": "string"}, PLACE]}, "json, union of object and string"),
        ({"anyOf": [{"type": "array"}, {"type": "object"}]}, "json, union of array and object"),
        ({"anyOf": [{"type": "string"}, {}]}, "json, value of any type"),
        (
            {"oneOf": [PLACE, {**PLACE, "properties": {"city": {"type": "null"}}}]},
            "json, union of different kinds of object",
        ),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"const": ""}]}, "string"),
        ({"type": "null"}, "json, always null"),
        ({"type": "string", "enum": [1]}, "json, no value satisfies the schema"),
        ({}, "json, value of any type"),
        (
            {**PLACE, "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
            "struct<city: string not null, zip: string>",
        ),
    ],
)
def test_every_shape_has_its_type(schema: Any, arrow: str) -> None:
    assert arrow_of(schema) == arrow


PERSON = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
AGE = {"properties": {"age": {"type": "integer"}}}
SEALED = {"unevaluatedProperties": False}
DAY = {"format": "date"}
OPEN = "json, object that may hold keys which are not declared"


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ({"type": "object", "allOf": [PERSON, AGE], **SEALED}, "name: string not null, age: int64"),
        ({"type": "object", **AGE, "allOf": [PERSON], **SEALED}, "age: int64, name: string not null"),
        ({"$ref": "#/$defs/person", **AGE, "type": "object", **SEALED}, "name: string not null, age: int64"),
        ({"type": "object", "allOf": [PERSON, {**PERSON, **AGE, "additionalProperties": False}]}, "age: int64"),
        ({**PLACE, "allOf": [{"minProperties": 1}, {"properties": {"city": DAY}}]}, "city: date32[day] not null"),
        ({"allOf": [PLACE]}, "city: string not null"),
        ({"allOf": [PLACE, PLACE, {"$ref": "#/$defs/place"}, True]}, "city: string not null"),
        ({"$ref": "#/$defs/place", "description": "d", "x-y": 1}, "city: string not null"),
        ({"$ref": "#/$defs/place", "minProperties": 1}, "city: string not null"),
        ({**PLACE, "if": {"required": ["city"]}, "then": {"minProperties": 1}}, "city: string not null"),
        ({"type": "object", "allOf": [PERSON, AGE]}, OPEN),
        ({"type": "object", "allOf": [{**PERSON, "unevaluatedProperties": False}, AGE]}, "name: string not null"),
        ({"type": "object", "anyOf": [PERSON, AGE], "unevaluatedProperties": False}, OPEN),
        ({"type": "object", **AGE, "allOf": [{"anyOf": [PERSON, {}]}], **SEALED}, OPEN),
        ({"allOf": [PLACE, {**PLACE, "properties": {"city": True, "x": {}}}]}, "city: string not null"),
        ({"allOf": [PLACE, {"type": "string"}]}, "json, no value satisfies the schema"),
        ({"allOf": [PLACE, False]}, "json, the schema `false` allows no value"),
    ],
)  # fmt: skip
def test_objects_that_are_put_together_have_the_columns_of_all_parts(schema: Any, arrow: str) -> None:
    expected = arrow if arrow.startswith("json") else f"struct<{arrow}>"
    assert arrow_of(schema, {"place": PLACE, "person": PERSON}) == expected


def test_recursion_ends_in_json_text() -> None:
    node = {**PLACE, "properties": {"city": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}
    column = column_of({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    record = {"city": "a", "next": {"city": "b", "next": {"city": "c"}}}
    (back,) = through_parquet(column, [record])
    assert_same(column, back, record)
    assert dict(column.fields)["next"].note == "the schema is recursive: kept as JSON text"


def test_definitions_that_multiply_are_bounded() -> None:
    doubling = {f"d{i}": _pair(f"#/$defs/d{i + 1}") for i in range(40)} | {"d40": {"type": "string"}}
    tangled = {f"d{i}": _pair(*(f"#/$defs/d{j}" for j in range(15))) for i in range(15)}
    unions = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {"type": "string"}}
    joined = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {"type": "string"}}
    huge = {"d0": {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/e"} for i in range(3000)}, **SEALED}}
    enum = huge | {"e": {"enum": list(range(100_000))}}
    wide = huge | {"e": {"allOf": [{"minLength": 1}] * 30_000}}
    open_ = huge | {"e": {"type": "object", "properties": {f"p{i}": {} for i in range(30_000)}}}
    for defs in (doubling, tangled, unions, joined, enum, wide, open_):
        with processor_seconds(3):
            column = column_of({"$defs": defs, "$ref": "#/$defs/d0"})
            assert _size(column) <= 2 * MAX_COLUMNS


def _pair(*references: str) -> dict[str, Any]:
    properties = {
        f"p{i}": {"$ref": reference} for i, reference in enumerate((references * 2)[: max(2, len(references))])
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _size(column: Column) -> int:
    return 1 + sum(_size(child) for _, child in column.fields) + (_size(column.item) if column.item else 0)


def test_unusual_names_and_texts_survive() -> None:
    names = [
        "",
        "a.b",
        "a/b~c",
        "名前",
        "x-foo",
        "element",
        "list",
        "array",
        "key_value",
        "ключ 😀",
        "a\x00b",
        "a",
        "A",
    ]
    names += ["é", "e\u0301", "\n", "x" * 5000]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    column = column_of({"type": "array", "items": {**schema, "additionalProperties": False}})
    record = [{name: f"{name}\x00\u2028😀" for name in names}, {}]
    (back,) = through_parquet(column, [record])
    assert_same(column, back, record)
    odd = column_of({**schema, "properties": {"\ud800": {}}, "additionalProperties": False})
    assert odd.kind == "json"
    through_parquet(odd, [{"\ud800": 1}])


_SMALL = [None, True, 0, 1.0, 0.5, "", "a", "2024-01-01", [], [1], ["a", None], [[]], {}, {"a": 1}, {"b": "a"}]
_SMALL += [{"a": None}, {"a": {"b": 0.5}}, {"a": 1, "b": "a"}, [{"a": 1}], {"a": [{"b": 1}]}, {"c": 1}, [{"a": {}}, {}]]
_KEYWORDS = {
    "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object", "object"])
    | st.lists(st.sampled_from(["null", "integer", "string", "array", "object"]), min_size=1, max_size=3, unique=True),
    "enum": st.lists(st.sampled_from(_SMALL), min_size=1, max_size=4),
    "const": st.sampled_from(_SMALL),
    "format": st.sampled_from(["date", "time"]),
    "multipleOf": st.sampled_from([0.5, 1, 3]),
    "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
    "additionalProperties": st.just(False),
    "unevaluatedProperties": st.just(False),
    "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
}


def _any_schema(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    names = st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    nested = {"properties": names, "items": inner, "if": inner, "then": inner, "patternProperties": names}
    nested |= {"allOf": several, "anyOf": several, "oneOf": several, "not": inner, "prefixItems": several}
    return st.fixed_dictionaries({}, optional={**_KEYWORDS, **nested})


_WILD = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional=_KEYWORDS), _any_schema, max_leaves=6)


@settings(max_examples=300)
@given(_WILD.filter(lambda schema: isinstance(schema, dict)))
def test_a_column_takes_every_value_that_its_schema_takes(schema: dict[str, Any]) -> None:
    """Whatever keywords meet: what decides the column must not be stricter than what decides validity."""
    defs = {"x": {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}}, "y": PLACE}
    column = column_of({**schema, "$defs": defs})
    validator = validator_of({**schema, "$defs": defs})
    valid = [value for value in _SMALL if validator.is_valid(value)]
    for value in valid:
        assert list(misfits(column, value)) == []
    for back, value in zip(through_parquet(column, valid), valid, strict=True):
        assert_same(column, back, value)
