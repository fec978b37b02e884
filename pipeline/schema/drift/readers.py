"""What the readers of Parquet files find: columns compared by name, kind, nullability, and whatever else they carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from pipeline.schema.columns import Column
from pipeline.schema.drift.found import ABSENT, Finding

_OWN = frozenset({"kind", "nullable", "item", "fields"})
_NOTES = frozenset({"note", "notes"})


def same_columns(old: Column, new: Column) -> Iterator[Finding]:
    """Differences of two column trees, which are bounded by `columns.MAX_COLUMNS`. Steps are the column's path."""
    pending = [((), old, new)]  # type: list[tuple[tuple[str, ...], Column, Column]]
    while pending:
        path, was, now = pending.pop()
        if _traits(was) != _traits(now):
            yield Finding("column_type", path, _traits(was), _traits(now), readers="breaking")
        elif was.kind == "list" and was.item is not None and now.item is not None:
            pending.append(((*path, "*"), was.item, now.item))
        elif was.kind == "struct":
            yield from _fields(path, was, now)
            later = dict(now.fields)
            pending += [((*path, name), child, later[name]) for name, child in was.fields if name in later]
        if was.nullable != now.nullable:
            kind = "column_nullable" if now.nullable else "column_required"
            readers: Any = "breaking" if now.nullable else "narrowing"
            yield Finding(kind, path, was.nullable, now.nullable, readers=readers)
        for name in _NOTES & {field.name for field in fields(was)}:
            if getattr(was, name) != getattr(now, name):
                yield Finding("column_note", path, str(getattr(was, name)), str(getattr(now, name)))


def _traits(column: Column) -> str:
    """Kind, and all that a column says beside kind and children, such as digits or a time zone, as text."""
    more = [field.name for field in fields(column) if field.name not in _OWN | _NOTES]
    said = [f"{name}={getattr(column, name)}" for name in more if getattr(column, name) is not None]
    return " ".join([column.kind, *said])


def _fields(path: tuple[str, ...], old: Column, new: Column) -> Iterator[Finding]:
    was, now = dict(old.fields), dict(new.fields)
    for name in now:
        if name not in was:
            yield Finding("column_added", (*path, name), ABSENT, _traits(now[name]), readers="widening")
    for name in was:
        if name not in now:
            yield Finding("column_removed", (*path, name), _traits(was[name]), readers="breaking")
    if [name for name in was if name in now] != [name for name in now if name in was]:
        yield Finding("column_order", path, list(was), list(now))
