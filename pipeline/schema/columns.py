"""How a record is stored: a tree of columns derived from the acceptance schema, free of Arrow.

The mapping loses nothing: whatever has no single column type (unions, open or recursive objects, schemas that allow
anything) is kept as JSON text, with a note that says why. Columns hold every valid value; that a keyword refuses some
values more does not matter here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.schema.columns_number import number_column
from pipeline.schema.columns_together import Budget, Together
from pipeline.schema.storage import Column, Kind, is_unicode, misfits, stored

__all__ = ["MAX_COLUMNS", "MAX_LEVELS", "Column", "Kind", "column_of", "misfits", "stored"]

MAX_COLUMNS = 2000
"""References stop being followed at this size: definitions that refer to each other can multiply without end."""

MAX_LEVELS = 96
"""Levels of a Parquet schema: a struct is one, a list two, what they hold another. PyArrow reads 99 below the root."""

_EXACT_TEXT = {
    "date-time": "date-time kept as text: an Arrow timestamp would lose the offset, leap seconds and digits",
    "time": "time kept as text: an Arrow time would lose the offset, leap seconds and digits",
}
_ALWAYS_NULL = "always null"
_MAX_WORDS = 4


def column_of(root: Mapping[str, Any]) -> Column:
    """The column that holds every value of a schema; what it cannot hold exactly is told by `misfits`."""
    return _Builder(root).column([root], frozenset(), 1)


def _json(reason: str) -> Column:
    return Column("json", note=f"{reason}: kept as JSON text")


@dataclass(slots=True)
class _Builder:
    root: Mapping[str, Any]
    budget: Budget = field(default_factory=lambda: Budget(MAX_COLUMNS))

    def column(self, schemas: Sequence[Any], seen: frozenset[str], level: int) -> Column:
        """The column of values that all `schemas` judge; `level` counts from the record, which is 1."""
        self.budget.left -= 1
        told = self._together(schemas, seen)
        types = told.types()
        if told.blocked:
            return _json(told.blocked)
        if types is None:
            return self._union(told, level)
        nullable, types = "null" in types, types - {"null"}
        if len(types) != 1:
            return _json(_words(types) if types else _ALWAYS_NULL if nullable else "no value satisfies the schema")
        column = self._typed(types.pop(), told, level)
        return replace(column, nullable=nullable) if column.kind != "json" else column

    def _together(self, schemas: Sequence[Any], seen: frozenset[str]) -> Together:
        told = Together(self.root, seen, self.budget)
        for schema in schemas:
            told.add(schema)
        return told

    def _typed(self, name: str, told: Together, level: int) -> Column:
        if name == "boolean":
            return Column("boolean")
        if name == "string":
            return _text(told)
        if name == "array":
            return self._list(told, level)
        if name == "object":
            return self._struct(told, level)
        column = number_column(told, integral=name == "integer")
        return _json(column.note) if column.kind == "json" else column

    def _list(self, told: Together, level: int) -> Column:
        items = told.values("items")
        if any(told.values("prefixItems")):
            return _json("array whose positions differ (prefixItems)")
        if not any(isinstance(schema, Mapping) and schema for schema in items):
            return _json("array that is always empty" if False in items else "array of items of any type")
        if level + 2 > MAX_LEVELS:
            return _json("nested deeper than Parquet readers go")
        return Column("list", item=self.column(items, told.trail(), level + 2))

    def _struct(self, told: Together, level: int) -> Column:
        if not told.closed:
            return _json("object that may hold keys which are not declared")
        allowed = frozenset.intersection(*told.closed)
        declared = told.values("properties")
        names = [name for name in dict.fromkeys(name for some in declared for name in some) if name in allowed]
        if not names:
            return _json("object without properties, which Parquet cannot store")
        if not all(map(is_unicode, names)):
            return _json("object with a property name that is not Unicode")
        if level + 1 > MAX_LEVELS:
            return _json("nested deeper than Parquet readers go")
        required = {name for some in told.values("required") for name in some}
        fields = []
        for name in names:
            child = self.column([some[name] for some in declared if name in some], told.trail(), level + 1)
            fields.append((name, child if name in required else replace(child, nullable=True)))
        return Column("struct", fields=tuple(fields))

    def _union(self, told: Together, level: int) -> Column:
        """The column of a value whose type only `anyOf` or `oneOf` tells: of any of them, since a value passes all."""
        last = _json("value of any type")
        for branches in [*told.values("anyOf"), *told.values("oneOf")]:
            last = self._one_of(branches, told.trail(), level)
            if last.kind != "json":
                return last
        return last

    def _one_of(self, branches: Sequence[Any], seen: frozenset[str], level: int) -> Column:
        columns = [self.column([branch], seen, level) for branch in branches if branch is not False]
        nothing = _json(_ALWAYS_NULL)
        some = [column for column in columns if column != nothing]
        nullable = len(some) < len(columns) or any(column.nullable for column in some)
        if not some:
            return nothing
        same = {replace(column, nullable=False, note="") for column in some}
        kinds = {column.kind for column in some}
        if len(some) == 1 or (len(same) == 1 and "json" not in kinds):
            return some[0] if some[0].kind == "json" else replace(some[0], nullable=nullable)
        if kinds <= {"string", "date"}:
            return Column("string", nullable)
        if kinds == {"integer", "number"}:
            return Column("number", nullable)
        said = [self._together([branch], seen).types() for branch in branches if branch is not False]
        return _json(_words({name for types in said for name in types or {"any type"}}))


def _text(told: Together) -> Column:
    formats = told.values("format")
    if "date" in formats:
        return Column("date")
    exact = next((name for name in formats if name in _EXACT_TEXT), "")
    return Column("string", format=exact, note=_EXACT_TEXT.get(exact, ""))


def _words(types: Iterable[str]) -> str:
    *names, last = sorted(set(types) - {"null"})
    if "any type" in (*names, last):
        return "value of any type"
    return f"union of {', '.join(names)} and {last}" if names else f"union of different kinds of {last}"
