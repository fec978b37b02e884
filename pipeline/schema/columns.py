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
from pipeline.schema.walk import constrains, escape, resolve

Kind = Literal["string", "integer", "number", "boolean", "list", "struct", "json"]

INT64 = range(-(2**63), 2**63)
_KINDS: dict[str, Kind] = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "struct",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One node of the tree. `json` columns hold the value's JSON text; `fields` are in schema order."""

    kind: Kind
    nullable: bool = False
    item: Column | None = None
    fields: tuple[tuple[str, Column], ...] = ()


JSON = Column("json", nullable=True)


MAX_COLUMNS = 2000
"""References stop being followed at this size: definitions that refer to each other can multiply without end."""


@dataclass
class _Source:
    root: Mapping[str, Any]
    left: int = MAX_COLUMNS


def column_of(root: Mapping[str, Any]) -> Column:
    """The column that holds every value of a schema."""
    return _column(_Source(root), root, frozenset())


def _column(source: _Source, schema: Any, seen: frozenset[str]) -> Column:
    """The column of a subschema; `seen` are the references that led here."""
    source.left -= 1
    if not isinstance(schema, Mapping):
        return JSON
    if "$ref" in schema:
        reference = schema["$ref"]
        if sum(map(constrains, schema)) > 1 or reference in seen or source.left <= 0:
            return JSON
        return _column(source, resolve(source.root, reference), seen | {reference})
    branches, nullable = _without_null(schema)
    if len(branches) == 1:
        inner = _column(source, branches[0], seen)
        return Column(inner.kind, nullable or inner.nullable, inner.item, inner.fields)
    types = _types(schema)
    nullable = "null" in types
    types -= {"null"}
    if types == {"integer", "number"}:
        types = {"number"}
    if len(types) != 1 or branches:
        return JSON
    return _typed(source, schema, Column(_KINDS[types.pop()], nullable), seen)


def _typed(source: _Source, schema: Mapping[str, Any], plain: Column, seen: frozenset[str]) -> Column:
    """The column of a schema of one type; `plain` says which."""
    properties, items = schema.get("properties"), schema.get("items")
    if plain.kind == "list":
        if "prefixItems" in schema or not isinstance(items, Mapping):
            return Column("json", plain.nullable)
        return Column("list", plain.nullable, item=_column(source, items, seen))
    if plain.kind != "struct":
        return plain
    if not properties or schema.get("additionalProperties") is not False or schema.get("patternProperties"):
        return Column("json", plain.nullable)
    required = set(schema.get("required", ()))
    fields = []
    for name, child in properties.items():
        column = _column(source, child, seen)
        fields.append((name, Column(column.kind, column.nullable or name not in required, column.item, column.fields)))
    return Column("struct", plain.nullable, fields=tuple(fields))


def _without_null(schema: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The branches of a bare anyOf/oneOf apart from `null`, and whether `null` was among them."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and sum(map(constrains, schema)) == 1:
            branches = [branch for branch in schema[keyword] if not _is_null(branch)]
            return branches, len(branches) < len(schema[keyword])
    return [], False


def _is_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    bare = {keyword: value for keyword, value in schema.items() if constrains(keyword)}
    return bare in ({"type": "null"}, {"const": None}, {"enum": [None]})


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
    elif column.kind == "number" and isinstance(value, int) and not _is_double(value):
        yield pointer, "is an integer that a 64-bit float cannot hold exactly"
    elif column.kind == "list" and column.item is not None:
        for index, item in enumerate(value):
            yield from misfits(column.item, item, f"{pointer}/{index}")
    elif column.kind == "struct":
        for name, child in column.fields:
            if name in value:
                yield from misfits(child, value[name], f"{pointer}/{escape(name)}")


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def stored(column: Column, value: JsonValue) -> Any:
    """The value as its column takes it: JSON text where the column is `json`, missing members as None.

    Raises:
        TypeError: the value was not validated against the schema that the column comes from.
    """
    if value is None and column.kind != "json":
        return None
    if column.kind == "json":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if column.kind in ("integer", "number"):
        return _number(value, int if column.kind == "integer" else float)
    if column.kind == "list" and column.item is not None:
        return [stored(column.item, item) for item in value]
    if column.kind == "struct":
        if value.keys() - dict(column.fields).keys():
            raise TypeError(f"{sorted(value)} holds a key that has no column")
        return {name: stored(child, value[name]) if name in value else None for name, child in column.fields}
    return value


def _number(value: JsonValue, kind: type[int] | type[float]) -> int | float:
    if isinstance(value, bool) or kind(value) != value:
        raise TypeError(f"{value!r} is not exactly of type {kind.__name__}")
    return kind(value)
