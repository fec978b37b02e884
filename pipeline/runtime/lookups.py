"""Lookups: the columns that a job's values are looked up in, loaded once per process and held as sets of text.

They do not travel with tasks: each actor loads them itself and checks that they are what the run began with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from typing import Any

from pipeline.errors import InputError
from pipeline.job import ExtractConfig, InputConfig
from pipeline.runtime.input.columns import require_columns
from pipeline.runtime.input.delimited import csv_header, csv_rows
from pipeline.runtime.input.formats import MISSING, WHOLE, Columns, Row, chunks, jsonl_rows
from pipeline.runtime.input.locate import SUFFIXES, Located, locate
from pipeline.runtime.input.parquet import parquet_rows
from pipeline.schema.fingerprint import multiset_digest
from pipeline.steps.rules import Lookups

MAX_VALUES = 5_000_000
"""Different values of all lookups of a job together: about half a GiB of short texts in each actor."""

WHERE = "lookups.path"

Digests = Mapping[tuple[str, str], str]
"""What each (path, column) holds: the `multiset_digest` of its different values."""


def load_lookups(config: ExtractConfig, expected: Digests | None = None) -> Lookups:
    """The values of every column that the job looks up, by (path, column): texts as they are, integers as decimals.

    Nulls, absent keys of JSONL and empty fields of CSV are no values. `expected` are the digests of an earlier load.

    Raises:
        InputError: a file or column is missing, unreadable or without any value, holds something else than strings
            and integers, holds too much, or is not what it was when `expected` was made.
    """
    found: dict[tuple[str, str], Set[str]] = {}
    for lookup in config.lookups:
        if (lookup.path, lookup.column) not in found:
            room = MAX_VALUES - sum(map(len, found.values()))
            found[lookup.path, lookup.column] = _values(lookup.path, lookup.column, room)
    if expected is not None and (changed := _changed(lookups_digest(found), expected)):
        raise InputError(f"the lookup in {changed} was changed since the run began. Start a new run.")
    return found


def lookups_digest(lookups: Lookups) -> Digests:
    """What tells the contents of lookups, whatever the order and number of their rows."""
    return {key: multiset_digest(values) for key, values in lookups.items()}


def _changed(now: Digests, before: Digests) -> str:
    return next((f"column `{key[1]}` of {_shown(key[0])}" for key in now if now[key] != before.get(key)), "")


def _shown(path: str) -> str:
    """A path as messages may show it: URIs may hold keys."""
    return path if "://" not in path else path.partition("?")[0].rpartition("@")[2]


def _values(path: str, column: str, room: int) -> Set[str]:
    suffix = os.path.splitext(path.partition("?")[0] if "://" in path else path)[1].lower()
    if SUFFIXES.get(suffix, "text") == "text":
        known = ", ".join(name for name, form in SUFFIXES.items() if form != "text")
        raise InputError(f"{WHERE} {_shown(path)} is of no known format. Give a file or glob that ends in {known}.")
    located = locate(InputConfig(path=path, schema="lookup"), WHERE)
    require_columns(located, [("lookups.column", column)])
    values: set[str] = set()
    for name, row in _rows(located, column):
        value = _text(row, f"row {row.number} (counted from 0) of {name}", column)
        if value is not None and not (located.format == "csv" and value == ""):
            values.add(value)
        if len(values) > room:
            raise InputError(
                f"the lookups of the job hold more than {MAX_VALUES} different values, the last in column `{column}` "
                f"of {name}. Each actor keeps them in memory: look up a shorter list."
            )
    if not values:
        raise InputError(f"column `{column}` of {located.place.name(located.files[0].path)} holds no value to look up.")
    return frozenset(values)


def _rows(located: Located, column: str) -> Iterator[tuple[str, Row]]:
    place, columns = located.place, Columns(None, column, None)
    for file in located.files:
        if located.format == "parquet":
            rows = parquet_rows(place, file.path, WHOLE, columns)
        elif located.format == "csv":
            rows = csv_rows(chunks(place, file.path), WHOLE, columns, csv_header(place, file.path))
        else:
            rows = jsonl_rows(chunks(place, file.path), WHOLE, columns)
        yield from ((place.name(file.path), row) for row in rows)


def _text(row: Row, where: str, column: str) -> str | None:
    """The value of a row as a text to compare with, None if it has none."""
    value = row.id
    if row.fault or row.not_utf8:
        raise InputError(f"{where}, in which values are looked up: {row.fault or row.not_utf8}. Mend the file.")
    if value is None or value is MISSING:
        return None
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where}, column `{column}`: the value is not UTF-8. Mend the file.") from error
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return str(value)
    raise InputError(
        f"{where}, column `{column}`, holds {_kind(value)}; what is looked up are strings or integers. {_HINT}"
    )


_HINT = "Write the column as one of these (pandas makes integers with gaps double: `.astype('Int64')`)."


def _kind(value: Any) -> str:
    kinds = {
        bool: "a boolean",
        float: "a floating-point number",
        Decimal: "a decimal with a fraction",
        dict: "an object",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")
