"""Columns as Arrow types: the same for every file of a run, whatever values a file happens to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.schema.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_field(name: str, column: Column, *, all_nullable: bool = False) -> pa.Field:
    """The Arrow field of a column. JSON text columns say so in their metadata. Degraded tables are `all_nullable`."""
    import pyarrow as pa

    metadata = {"gristmill": "json"} if column.kind == "json" else None
    return pa.field(
        name, _arrow_type(column, all_nullable), nullable=all_nullable or column.nullable, metadata=metadata
    )


def _arrow_type(column: Column, all_nullable: bool) -> pa.DataType:
    import pyarrow as pa

    if column.kind == "list":
        assert column.item is not None
        return pa.list_(arrow_field("item", column.item, all_nullable=all_nullable))
    if column.kind == "struct":
        return pa.struct([arrow_field(name, child, all_nullable=all_nullable) for name, child in column.fields])
    scalars = {
        "string": pa.string(),
        "json": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
    }
    return scalars[column.kind]
