"""Records through Parquet and back: nothing is lost or coerced, and what does not fit is named before it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parquet_trip import assert_same, identical, schema_and_values, through_parquet

from pipeline.errors import SchemaError
from pipeline.schema.arrow import Row, arrow_field, describe
from pipeline.schema.closing import close_objects
from pipeline.schema.columns import column_of
from pipeline.schema.registry import DRAFT, check_schema
from pipeline.schema.storage import as_json, misfits, stored
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import resolve


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@settings(max_examples=300)
@given(schema_and_values())
def test_a_valid_value_comes_back_exactly_or_is_named_as_a_misfit(sample: Any) -> None:
    schema, values = sample
    column = column_of(schema)
    fitting = []
    for value in values:
        assert validator_of(schema).is_valid(value)
        found = list(misfits(column, value))
        for pointer, reason in found:
            assert reason
            resolve(value, f"#{pointer.replace('%', '%25')}")  # the pointer leads somewhere
        if found:
            with pytest.raises(TypeError, match="the value at"):
                stored(column, value)
        else:
            fitting.append(value)
    for all_nullable in (False, True):
        for back, value in zip(through_parquet(column, fitting, all_nullable=all_nullable), fitting, strict=True):
            assert_same(column, back, value)


@given(schema_and_values())
def test_the_arrow_schema_follows_from_the_schema_alone(sample: Any) -> None:
    schema, _ = sample
    field = arrow_field("record", column_of(schema))
    assert field.equals(arrow_field("record", column_of(json.loads(json.dumps(schema)))), check_metadata=True)
    paths = [row.path for row in describe(column_of(schema))]
    assert len(paths) == len(set(paths))


def test_real_schemas_keep_their_valid_instances(shared: Path) -> None:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").strip().split("\n")
    kept = 0
    for case in map(json.loads, lines[::4]):
        schema = {**case["schema"], "$schema": DRAFT}
        try:
            check_schema(schema, case["id"])
        except SchemaError:
            continue
        body, _ = close_objects(schema)
        column, validator = column_of(body), validator_of(body)
        values = [test["data"] for test in case["tests"] if test["valid"] and validator.is_valid(test["data"])]
        assert not [found for value in values for found in misfits(column, value)], case["id"]
        for back, value in zip(through_parquet(column, values), values, strict=True):
            assert_same(column, back, value)
        kept += len(values)
    assert kept > 50


LEAVES = [0, 1, -1, 1.0, 1.5, True, False, None, "", "1", "2024-01-01", [], {}, [1], {"a": 1}, 2**63, 2**200, 1e300]
KINDS = [
    {"type": "string"},
    {"type": "string", "format": "date"},
    {"type": "integer"},
    {"type": "integer", "maximum": 2**64},
    {"type": "number"},
    {"type": "number", "multipleOf": 0.1},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "integer"}},
    closed(a={"type": "integer"}),
]


@pytest.mark.parametrize("schema", KINDS, ids=str)
def test_no_leaf_is_ever_coerced(schema: Any) -> None:
    """F056: 1.5 into int64 became 1, True became 1. Whatever is stored is the value; whatever is not is refused."""
    column = column_of(schema)
    accepted = []
    leaves = [leaf for leaf in LEAVES if leaf != {} or column.kind != "struct"]  # whose member may be missing, see F064
    for value in [*leaves, float("nan"), float("inf"), 10**400]:
        if list(misfits(column, value)):
            with pytest.raises(TypeError):
                stored(column, value)
        else:
            accepted.append(value)
            assert validator_of(schema).is_valid(value)
    for back, value in zip(through_parquet(column, accepted), accepted, strict=True):
        assert_same(column, back, value)


@pytest.mark.parametrize("depth", ["", "deep"])
def test_a_key_without_a_column_is_an_error_and_never_dropped(depth: str) -> None:
    """F057: pyarrow drops keys that its schema lacks without a word."""
    column = column_of(closed(id={"type": "integer"}))
    value: Any = {"id": 2, "warn": "low scan quality"}
    if depth:
        column, value = column_of({"type": "array", "items": closed(id={"type": "integer"})}), [value]
    (found,) = misfits(column, value)
    assert found == ("/0" if depth else "", "holds a key that has no column")
    for all_nullable in (False, True):
        with pytest.raises(TypeError, match="warn"):
            stored(column, value, all_nullable=all_nullable)


@pytest.mark.parametrize("empty", [{}, {"a": []}, {"a": {"b": {}}}, {"": {}}])
@pytest.mark.parametrize(
    "extra",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": ["object", "null"], "patternProperties": {"": {}}, "additionalProperties": False},
        {},
    ],
)
def test_objects_without_declared_members_are_json_text(extra: Any, empty: Any) -> None:
    """F058: an empty struct cannot be written to Parquet at all."""
    column = column_of(closed(extra=extra))
    (back,) = through_parquet(column, [{"extra": empty}])
    assert identical(json.loads(back["extra"]), empty)


def test_amounts_that_are_text_stay_text_and_decimals_never_lose_a_digit() -> None:
    """F061: one value that does not fit a decimal type failed the whole column, or was rounded."""
    text = column_of(closed(amt={"type": "string", "pattern": "^-?[0-9]+\\.[0-9]{2,3}$"}))
    assert through_parquet(text, [{"amt": "1.239"}]) == [{"amt": "1.239"}]
    column = column_of(closed(rows={"type": "array", "items": {"type": "number", "multipleOf": 0.01}}))
    value = {"rows": [19.99, 1.239, 10**36, 0.1 + 0.2, 10**36 - 1, 12345678901234567.89]}
    assert [pointer for pointer, _ in misfits(column, value)] == ["/rows/1", "/rows/2", "/rows/3", "/rows/5"]
    (back,) = through_parquet(column, [{"rows": [19.99, 0.07, 1e2, 10**36 - 1, -1234567890123.45]}])
    assert [str(one) for one in back["rows"]] == [
        *("19.99", "0.07", "100.00", "999999999999999999999999999999999999.00", "-1234567890123.45")
    ]


@pytest.mark.parametrize("value", [{"rows": [{"s": ""}, {"s": None}]}, {"rows": [{"s": ""}, None]}, {"rows": [{}]}])
def test_a_null_where_the_column_takes_none_is_refused(value: Any) -> None:
    """F064: pyarrow writes such a null into a file that cannot be read back."""
    column = column_of(closed(rows={"type": "array", "items": closed(s={"type": "string"})}))
    with pytest.raises(TypeError, match="/rows/"):
        stored(column, value)
    (back,) = through_parquet(column, [value], all_nullable=True)
    assert len(back["rows"]) == len(value["rows"])


def test_missing_is_told_from_null_only_in_json_columns() -> None:
    column = column_of({**closed(city={"type": ["string", "null"]}, more={}), "required": []})
    assert stored(column, {}) == {"city": None, "more": None}
    assert stored(column, {"city": None, "more": None}) == {"city": None, "more": "null"}


def test_half_surrogate_pairs_are_misfits_of_text_and_escapes_in_json_text() -> None:
    """PyArrow raises on them in the middle of a table, which would cost the whole unit."""
    column = column_of(closed(a={"type": "string"}, b={}))
    assert [pointer for pointer, _ in misfits(column, {"a": "x\ud800", "b": 1})] == ["/a"]
    (back,) = through_parquet(column, [{"a": "\x00", "b": {"\udfff": "\x00"}}])
    assert (back["a"], json.loads(back["b"])) == ("\x00", {"\udfff": "\x00"})


@given(st.dates(), st.integers(-(10**30), 10**30), st.integers(-(10**14), 10**14))
def test_what_a_reader_finds_is_the_same_json_again(day: Any, number: int, cents: int) -> None:
    schema = closed(
        on={"type": "string", "format": "date"},
        big={"type": ["integer", "null"], "maximum": 10**37},
        sums={"type": "array", "items": {"type": "number", "multipleOf": 0.01}},
    )
    value = {"on": day.isoformat(), "big": number, "sums": [float(f"{cents}e-2"), 0.5]}
    (back,) = through_parquet(column_of(schema), [value])
    assert as_json(back) == value
    assert json.loads(json.dumps(as_json(back))) == value


@pytest.mark.parametrize("kind", ["list", "struct", "mixed"])
@pytest.mark.parametrize("depth", [10, 30, 47, 48, 50, 95, 99, 150])
def test_any_depth_reads_back(kind: str, depth: int) -> None:
    """PyArrow writes Parquet schemas of any depth and reads 100 levels."""
    schema: Any = {"type": "integer"}
    value: Any = 7
    for level in range(depth):
        nest = kind == "list" or (kind == "mixed" and level % 2)
        schema, value = ({"type": "array", "items": schema}, [value]) if nest else (closed(a=schema), {"a": value})
    column = column_of(schema)
    (back,) = through_parquet(column, [value])
    assert_same(column, back, value)
    assert any("nested deeper" in row.note for row in describe(column)) == (
        depth > {"list": 47, "struct": 95, "mixed": 63}[kind]
    )


def test_columns_are_described_for_people() -> None:
    item = closed(price={"type": "number", "multipleOf": 0.01}, at={"type": "string", "format": "date-time"})
    schema = closed(
        items={"type": "array", "items": item}, day={"type": ["string", "null"], "format": "date"}, **{"a.b": {}}
    )
    column = column_of(schema)
    kept = "date-time kept as text: an Arrow timestamp would lose the offset, leap seconds and digits"
    assert describe(column) == [
        Row("items", "list", False, ""),
        Row("items[]", "struct", False, ""),
        Row("items[].price", "decimal128(38, 2)", False, ""),
        Row("items[].at", "string", False, kept),
        Row("day", "date32[day]", True, ""),
        Row('["a.b"]', "string", False, "value of any type: kept as JSON text"),
    ]
    record = arrow_field("record", column).type
    assert record.field("items").type.value_type.field("at").metadata == {b"gristmill": b"date-time"}
    assert record.field("a.b").metadata == {b"gristmill": b"json"}
    assert record.field("day").metadata is None
    for kind in KINDS[:-2]:
        (row,) = describe(column_of(kind))
        assert row.type == str(arrow_field("x", column_of(kind)).type)
    assert describe(column_of({}))[0].path == ""


def test_no_file_holds_types_that_only_pyarrow_knows() -> None:
    field = arrow_field("x", column_of(closed(a={"type": "string", "format": "date"}, b={"enum": ["x", "y"]})))
    assert [str(child.type) for child in field.type] == ["date32[day]", "string"]
    assert not isinstance(field.type, pa.BaseExtensionType)
