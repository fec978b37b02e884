"""Columns as Arrow types: the same for every file of a run, whatever values a file happens to hold."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.schema.storage import DIGITS, Column

if TYPE_CHECKING:
    import pyarrow as pa


_PLAIN_NAME = re.compile(r"[^\W\d][\w-]*")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of columns. `path` is relative to the record: `items[].price`, `["odd name"]`."""

    path: str
    type: str
    nullable: bool
    note: str


def arrow_field(name: str, column: Column, *, all_nullable: bool = False) -> pa.Field:
    """The Arrow field of a column. Degraded tables are `all_nullable`.

    The metadata key `gristmill` says what a string column holds that is more than text: `json`, `date-time`, `time`.
    """
    import pyarrow as pa

    meaning = "json" if column.kind == "json" else column.format
    return pa.field(
        name,
        _arrow_type(column, all_nullable),
        nullable=all_nullable or column.nullable,
        metadata={"gristmill": meaning} if meaning else None,
    )


def _arrow_type(column: Column, all_nullable: bool) -> pa.DataType:
    import pyarrow as pa

    if column.kind == "list":
        assert column.item is not None
        return pa.list_(arrow_field("item", column.item, all_nullable=all_nullable))
    if column.kind == "struct":
        return pa.struct([arrow_field(name, child, all_nullable=all_nullable) for name, child in column.fields])
    if column.kind == "decimal":
        return pa.decimal128(DIGITS, column.scale)
    scalars = {
        "string": pa.string(),
        "json": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
    }
    return scalars[column.kind]


def describe(column: Column, path: str = "") -> list[Row]:
    """A row for every column of a record, parents before children. Types are spelled as Arrow spells them."""
    rows = [Row(path, type_text(column), column.nullable, column.note)] if path or column.kind != "struct" else []
    for name, child in column.fields:
        plain = _PLAIN_NAME.fullmatch(name)
        step = f".{name}" if plain and path else name if plain else f"[{json.dumps(name, ensure_ascii=False)}]"
        rows += describe(child, path + step)
    return rows + (describe(column.item, f"{path}[]") if column.item else [])


def type_text(column: Column) -> str:
    """The Arrow type of a column without what it contains: `int64`, `decimal128(38, 2)`, `list`, `struct`."""
    if column.kind == "decimal":
        return f"decimal128({DIGITS}, {column.scale})"
    names = {"integer": "int64", "number": "double", "boolean": "bool", "date": "date32[day]", "json": "string"}
    return names.get(column.kind, column.kind)
