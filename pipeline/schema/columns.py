"""How a record is stored: a tree of columns derived from the acceptance schema, free of Arrow.

The mapping loses nothing: whatever has no single column type (unions, open or recursive objects, schemas that allow
anything) is kept as JSON text, and a value that its column cannot hold is a coded problem, never a coercion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.records import JsonValue
from pipeline.schema.walk import escape, is_assertion, resolve

Kind = Literal["string", "integer", "number", "boolean", "list", "struct", "json"]

INT64 = range(-(2**63), 2**63)
_SCALARS: dict[str, Kind] = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """One node of the tree. `json` columns hold the value's JSON text; `fields` are in schema order."""

    kind: Kind
    nullable: bool = False
    item: Column | None = None
    fields: tuple[tuple[str, Column], ...] = ()


JSON = Column("json", nullable=True)


def column_of(root: Mapping[str, Any], schema: Any = None, seen: frozenset[str] = frozenset()) -> Column:
    """The column that holds every value of `schema` (the root itself if none is given)."""
    schema = root if schema is None else schema
    if not isinstance(schema, Mapping):
        return JSON
    if "$ref" in schema:
        reference = schema["$ref"]
        alone = sum(map(is_assertion, schema)) == 1
        return (
            column_of(root, resolve(root, reference), seen | {reference}) if alone and reference not in seen else JSON
        )
    branches, nullable = _without_null(schema)
    if len(branches) == 1:
        inner = column_of(root, branches[0], seen)
        return Column(inner.kind, nullable or inner.nullable, inner.item, inner.fields)
    types = _types(schema)
    nullable = "null" in types
    types -= {"null"}
    if types == {"integer", "number"}:
        types = {"number"}
    if len(types) != 1 or branches:
        return JSON
    return _typed(root, schema, types.pop(), nullable, seen)


def _typed(
    root: Mapping[str, Any], schema: Mapping[str, Any], kind: str, nullable: bool, seen: frozenset[str]
) -> Column:
    if kind in _SCALARS:
        return Column(_SCALARS[kind], nullable)
    if kind == "array":
        if "prefixItems" in schema or not isinstance(schema.get("items"), Mapping):
            return Column("json", nullable)
        return Column("list", nullable, item=column_of(root, schema["items"], seen))
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return Column("json", nullable)
    required = set(schema.get("required", ()))
    fields = []
    for name, child in properties.items():
        column = column_of(root, child, seen)
        fields.append((name, Column(column.kind, column.nullable or name not in required, column.item, column.fields)))
    return Column("struct", nullable, fields=tuple(fields))


def _without_null(schema: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The branches of a bare anyOf/oneOf apart from `null`, and whether `null` was among them."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and sum(map(is_assertion, schema)) == 1:
            branches = [branch for branch in schema[keyword] if branch != {"type": "null"}]
            return branches, len(branches) < len(schema[keyword])
    return [], False


def _types(schema: Mapping[str, Any]) -> set[str]:
    declared = schema.get("type")
    if declared is not None:
        return {declared} if isinstance(declared, str) else set(declared)
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else []
    return {_type_of(value) for value in values}


def _type_of(value: JsonValue) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def misfits(column: Column, value: JsonValue, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Where a schema-valid value does not fit its column: (JSON pointer, reason)."""
    if value is None or column.kind == "json":
        return
    if column.kind == "integer" and int(value) not in INT64:
        yield pointer, "is an integer beyond 64 bits"
    elif column.kind == "number" and isinstance(value, int) and int(float(value)) != value:
        yield pointer, "is an integer that a 64-bit float cannot hold exactly"
    elif column.kind == "list" and column.item is not None:
        for index, item in enumerate(value):
            yield from misfits(column.item, item, f"{pointer}/{index}")
    elif column.kind == "struct":
        for name, child in column.fields:
            if name in value:
                yield from misfits(child, value[name], f"{pointer}/{escape(name)}")


def stored(column: Column, value: JsonValue) -> Any:
    """The value as its column takes it: JSON text where the column is `json`, missing members as None."""
    if value is None and column.kind != "json":
        return None
    if column.kind == "json":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if column.kind == "integer":
        return int(value)
    if column.kind == "number":
        return float(value)
    if column.kind == "list" and column.item is not None:
        return [stored(column.item, item) for item in value]
    if column.kind == "struct":
        return {name: stored(child, value[name]) if name in value else None for name, child in column.fields}
    return value
