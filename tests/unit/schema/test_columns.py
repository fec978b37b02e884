"""Records as columns: nothing is lost or coerced, and the Arrow schema follows from the document schema alone."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import schema_and_record, schemas

from pipeline.schema.arrow import arrow_field
from pipeline.schema.columns import MAX_COLUMNS, Column, column_of, misfits, stored

PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ROW_OF_PLACES = {"type": "array", "items": PLACE}


def arrow_of(schema: Any, root: Any = None) -> str:
    return str(arrow_field("x", column_of({**schema, "$defs": (root or {})})).type)


def through_parquet(column: Column, records: list[Any], *, all_nullable: bool = False) -> list[Any]:
    schema = pa.schema([arrow_field("record", column, all_nullable=all_nullable)])
    table = pa.Table.from_pylist([{"record": stored(column, record)} for record in records], schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    back = pq.read_table(sink)
    back.validate(full=True)
    assert back.schema.equals(schema, check_metadata=False)
    return [row["record"] for row in back.to_pylist()]


def seen(column: Column, value: Any) -> Any:
    """A stored value as a reader takes it: JSON text read, members that are missing or null left out."""
    if value is None:
        return None
    if column.kind == "json":
        return json.loads(value)
    if column.kind == "list" and column.item:
        return [seen(column.item, item) for item in value]
    if column.kind == "struct":
        return {name: seen(child, value[name]) for name, child in column.fields if value[name] is not None}
    return value


def expected(column: Column, value: Any) -> Any:
    if column.kind == "struct" and value is not None:
        present = {name: expected(child, value[name]) for name, child in column.fields if name in value}
        json_columns = {name for name, child in column.fields if child.kind == "json"}
        return {name: item for name, item in present.items() if item is not None or name in json_columns}
    if column.kind == "list" and value is not None:
        return [expected(column.item, item) for item in value]
    return value


@settings(max_examples=80)
@given(schema_and_record())
def test_records_come_back_from_parquet_as_they_were(pair: Any) -> None:
    column = column_of(pair[0])
    assert list(misfits(column, pair[1])) == []
    for nullable in (False, True):
        (back,) = through_parquet(column, [pair[1]], all_nullable=nullable)
        assert json.dumps(seen(column, back), sort_keys=True) == json.dumps(
            json.loads(json.dumps(_as_typed(column, expected(column, pair[1])))), sort_keys=True
        )


def _as_typed(column: Column, value: Any) -> Any:
    """1.0 in an integer column and 1 in a number column are the same numbers, written differently."""
    if column.kind == "integer" and value is not None:
        return int(value)
    if column.kind == "number" and value is not None:
        return float(value)
    if column.kind == "list" and column.item and value is not None:
        return [_as_typed(column.item, item) for item in value]
    if column.kind == "struct" and value is not None:
        fields = dict(column.fields)
        return {name: _as_typed(fields[name], item) for name, item in value.items()}
    return value


@given(st.data(), schemas())
def test_the_arrow_schema_does_not_depend_on_values(data: st.DataObject, sample: Any) -> None:
    schema, records = sample
    column = column_of(schema)
    values = [data.draw(records) for _ in range(2)]
    assert len(through_parquet(column, values)) == 2  # asserts the Arrow schema that was read back
    assert arrow_field("record", column) == arrow_field("record", column_of(json.loads(json.dumps(schema))))


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "int64"),
        ({"type": "number"}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": "boolean"}, "bool"),
        ({"type": ["string", "null"]}, "string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int64"),
        ({"oneOf": [{"type": "null", "description": "absent"}, {"type": "number"}], "title": "t"}, "double"),
        ({"anyOf": [{"const": None}, {"enum": ["a", "b"]}]}, "string"),
        ({"anyOf": [{"type": "integer"}]}, "int64"),
        ({"enum": ["a", None]}, "string"),
        ({"enum": [1, 2.5]}, "double"),
        ({"enum": [1, "a"]}, "string"),
        ({"const": True}, "bool"),
        ({"const": {"a": 1}}, "string"),
        ({"type": "array", "items": {"type": ["integer", "null"]}}, "list<item: int64>"),
        (ROW_OF_PLACES, "list<item: struct<city: string not null> not null>"),
        ({"type": "array"}, "string"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "string"),
        ({"type": "object"}, "string"),
        ({**PLACE, "additionalProperties": True}, "string"),
        ({**PLACE, "patternProperties": {"^x": {}}}, "string"),
        ({"type": "object", "properties": {}, "additionalProperties": False}, "string"),
        ({"type": ["string", "integer"]}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string"),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"const": ""}]}, "string"),
        ({}, "string"),
        (
            {**PLACE, "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
            "struct<city: string not null, zip: string>",
        ),
    ],
)
def test_every_shape_has_its_type(schema: Any, arrow: str) -> None:
    assert arrow_of(schema) == arrow


def test_references_are_followed_beside_annotations_only() -> None:
    defs = {"place": PLACE}
    assert arrow_of({"$ref": "#/$defs/place"}, defs) == "struct<city: string not null>"
    assert arrow_of({"$ref": "#/$defs/place", "description": "d", "x-y": 1}, defs) == "struct<city: string not null>"
    assert arrow_of({"$ref": "#/$defs/place", "minProperties": 1}, defs) == "string"


def test_json_columns_say_so() -> None:
    assert arrow_field("x", column_of({})).metadata == {b"gristmill": b"json"}
    assert arrow_field("x", column_of({"type": "string"})).metadata is None


def test_recursion_ends_in_json_text() -> None:
    node = {**PLACE, "properties": {"city": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}
    column = column_of({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    record = {"city": "a", "next": {"city": "b", "next": {"city": "c"}}}
    (back,) = through_parquet(column, [record])
    assert json.loads(back["next"]) == record["next"]


def test_definitions_that_multiply_are_bounded() -> None:
    doubling = {f"d{i}": _pair(f"#/$defs/d{i + 1}") for i in range(40)} | {"d40": {"type": "string"}}
    tangled = {f"d{i}": _pair(*(f"#/$defs/d{j}" for j in range(15))) for i in range(15)}
    for defs in (doubling, tangled):
        started = time.monotonic()
        column = column_of({"$defs": defs, "$ref": "#/$defs/d0"})
        assert _size(column) < 2 * MAX_COLUMNS
        assert time.monotonic() - started < 2


def _pair(*references: str) -> dict[str, Any]:
    properties = {
        f"p{i}": {"$ref": reference} for i, reference in enumerate((references * 2)[: max(2, len(references))])
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _size(column: Column) -> int:
    return 1 + sum(_size(child) for _, child in column.fields) + (_size(column.item) if column.item else 0)


def test_missing_is_told_from_null_only_in_json_columns() -> None:
    schema = {**PLACE, "properties": {"city": {"type": ["string", "null"]}, "more": {}}, "required": []}
    column = column_of(schema)
    assert stored(column, {}) == {"city": None, "more": None}
    assert stored(column, {"city": None, "more": None}) == {"city": None, "more": "null"}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "integer"}, 2**63, "64 bits"),
        ({"type": "integer"}, 1e19, "64 bits"),
        ({"type": "number"}, 2**53 + 1, "float"),
        ({"type": "number"}, 10**400, "float"),
        (ROW_OF_PLACES, [{"city": "a"}], None),
        ({}, 10**400, None),
        ({"type": "integer"}, 2**63 - 1, None),
        ({"type": "number"}, 2**60, None),
    ],
)
def test_numbers_that_a_column_cannot_hold_are_named_and_others_stored(schema: Any, value: Any, reason: Any) -> None:
    column = column_of(schema)
    found = list(misfits(column, value))
    assert [words for _, words in found if reason in words] if reason else found == []
    if not reason:
        (back,) = through_parquet(column, [value])
        assert seen(column, back) == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.5),
        ({"type": "integer"}, True),
        ({"type": "number"}, False),
        ({"type": "number"}, 2**53 + 1),
        (PLACE, {"city": "a", "warn": "no column"}),
    ],
)
def test_a_value_that_was_not_validated_is_refused_rather_than_coerced(schema: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        stored(column_of(schema), value)


def test_unusual_names_and_texts_survive() -> None:
    names = ["", "a.b", "a/b~c", "名前", "x-foo", "element", "list", "ключ 😀", "a\x00b"]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "additionalProperties": False,
    }
    record = {name: f"{name}\x00\u2028😀" for name in names}
    assert through_parquet(column_of(schema), [record]) == [record]


def test_a_deeply_nested_record_survives() -> None:
    schema: Any = {"type": "integer"}
    record: Any = 1
    for _ in range(28):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
        record = {"a": record}
    assert through_parquet(column_of(schema), [record]) == [record]
