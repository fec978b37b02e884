"""Gold: the records that documents should give, read from JSONL or Parquet, a row in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.records import JsonValue
from pipeline.runtime.input.formats import MISSING, WHOLE, Columns, Row, chunks, jsonl_rows
from pipeline.runtime.input.locate import Place, locate
from pipeline.runtime.input.parquet import parquet_rows, parquet_schema
from pipeline.runtime.input.values import NOT_STORABLE, json_value
from pipeline.schema.validator import PatternTimeout
from pipeline.schema.walk import escape

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_WORDS = 300
MAX_SLICE = 60
"""Characters of a value that slices are named by."""


@dataclass(frozen=True, slots=True)
class GoldConfig:
    """Where gold lies, and the names of its columns. `by` are further ones whose values make slices."""

    path: str
    id: str = "id"
    record: str = "record"
    schema: str = "schema"
    acceptable: str = "acceptable"
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldRow:
    """One row. `where` is `path#row`, `schema` empty if the row names none; `acceptable` has, by pointer into the
    record, other values that are as right. `fault` says why it cannot be used; then only `where` and `id` count."""

    id: str
    where: str
    schema: str = ""
    record: JsonValue = None
    acceptable: Mapping[str, list[JsonValue]] = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


def read_gold(config: GoldConfig) -> Iterator[GoldRow]:
    """The rows of a file, directory or glob.

    Raises:
        InputError: it is missing, unreadable, in another format, or has no column of the names that are given.
    """
    located = locate(InputConfig(path=config.path, text_column=config.record, schema="gold"))
    if located.format not in ("jsonl", "parquet"):
        raise InputError(f"{config.path} is {located.format}: give gold as JSONL or Parquet, with one record a row.")
    for file in located.files:
        for row in _rows(located.format, located.place, file.path, config):
            yield _gold_row(row, f"{located.place.name(file.path)}#{row.number}", config)


def fault_of(record: JsonValue, validator: Validator) -> str:
    """In what a record breaks its schema, the first fault in a few words; empty if it satisfies it."""
    try:
        error = next(validator.iter_errors(record), None)
    except (PatternTimeout, RecursionError) as failure:
        return f"it cannot be judged: {failure}"[:MAX_WORDS]
    return "" if error is None else f"at {error.json_path}: {error.message}"[:MAX_WORDS]


def without_nulls(record: JsonValue) -> JsonValue:
    """A record without members that are null: what a struct column has for members that a row lacks."""
    if isinstance(record, dict):
        return {key: without_nulls(child) for key, child in record.items() if child is not None}
    return [without_nulls(child) for child in record] if isinstance(record, list) else record


def _rows(form: str, place: Place, path: str, config: GoldConfig) -> Iterator[Row]:
    needed, optional = [config.id, config.record], [config.schema, config.acceptable, *config.by]
    if form == "jsonl":
        others = tuple(dict.fromkeys([config.record, *optional]))
        yield from jsonl_rows(chunks(place, path), WHOLE, Columns(None, config.id, None, others))
        return
    there = parquet_schema(place, path).names
    if lacking := [name for name in (*needed, *config.by) if name not in there]:
        raise InputError(
            f"{place.name(path)} has no column {lacking[0]!r}, but {', '.join(map(repr, there[:20]))}. Name the "
            "gold's columns: --gold-id, --gold-record."
        )
    others = tuple(name for name in dict.fromkeys([config.record, *optional]) if name in there)
    yield from parquet_rows(place, path, WHOLE, Columns(None, config.id, None, others))


def _gold_row(row: Row, where: str, config: GoldConfig) -> GoldRow:
    key = _id(row.id)
    if row.fault or key is None:
        return GoldRow(key or "", where, fault=row.fault or f"no text or integer under {config.id!r}")
    if config.record not in row.columns:
        return GoldRow(key, where, fault=f"nothing under {config.record!r}; name another key with --gold-record")
    try:
        values = {name: _plain(raw, repr(name)) for name, raw in row.columns.items()}
        record, acceptable = _read(values[config.record]), _acceptable(_read(values.get(config.acceptable)))
    except (ValueError, RecursionError) as error:
        return GoldRow(key, where, fault=str(error)[:MAX_WORDS])
    schema = values.get(config.schema)
    by = {name: _slice(values.get(name)) for name in config.by}
    return GoldRow(key, where, schema if isinstance(schema, str) else "", record, acceptable, by)


def _id(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is MISSING or not isinstance(value, str) or not value:
        return None
    return NOT_STORABLE.sub("\ufffd", value)


def _read(value: JsonValue) -> JsonValue:
    """What a column holds; a text that begins as an object or a list is read as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return _plain(json.loads(value, object_pairs_hook=_once), "the text")
    return value


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object of the text repeats a key")
    return made


def _plain(raw: Any, name: str) -> JsonValue:
    """A value of a row as JSON. NaN and infinities would become null, which gold would say by it."""
    json.dumps(raw, allow_nan=False, default=str)
    value = json_value(raw)
    if value.fault:
        raise ValueError(f"{name} {value.fault}")
    return value.json


def _acceptable(value: JsonValue) -> dict[str, list[JsonValue]]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError("the alternatives are no object of lists by pointer")
    found = {}
    for key, others in value.items():
        pointer = key if key.startswith("/") or not key else f"/{escape(key)}"
        found[pointer] = [] if others is None else others if isinstance(others, list) else [others]
    return found


def _slice(value: JsonValue) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text[:MAX_SLICE] or "(none)"
