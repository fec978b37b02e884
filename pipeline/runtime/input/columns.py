"""Whether the input has the columns that the job names: asked first, not a million rows later."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.delimited import csv_header
from pipeline.runtime.input.formats import chunks, jsonl_keys
from pipeline.runtime.input.locate import Located
from pipeline.runtime.input.parquet import identifies, parquet_schema

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST_ROWS = 100
_SHOWN = 30


Wanted = Sequence[tuple[str, str]]
"""(where a job names a column, its name)."""


def check_columns(located: Located, config: InputConfig) -> None:
    """Check that the input has every column that the job names.

    Raises:
        InputError: as `require_columns`, or Parquet's ids are neither strings nor integers, or text is to have columns.
    """
    if located.format == "text":
        if config.schema_column is not None:
            raise InputError("text files have no columns, so `schema_column` cannot be read: set `schema` instead.")
        if config.columns:
            raise InputError("text files have no columns: leave out `input.columns`, or give Parquet, JSONL or CSV.")
        return
    named = {"text_column": config.text_column, "id_column": config.id_column, "schema_column": config.schema_column}
    wanted = [(f"input.{setting}", name) for setting, name in named.items() if name is not None]
    require_columns(located, [*wanted, *(("input.columns", name) for name in config.columns)], config.id_column)


def require_columns(located: Located, wanted: Wanted, id_column: str | None = None) -> None:
    """Check that each Parquet schema, each CSV header, and one of JSONL's first 100 rows has every column.

    Raises:
        InputError: a column is missing (the nearest is named), or there twice, or Parquet's `id_column` holds no ids.
    """
    place = located.place
    if located.format == "jsonl":
        rows = chain.from_iterable(jsonl_keys(chunks(place, file.path)) for file in located.files)
        keys = list(dict.fromkeys(chain.from_iterable(islice(rows, _FIRST_ROWS))))
        only = located.files[0].path if len(located.files) == 1 else ""
        # Without one readable row there is nothing to compare with, and unreadable rows do not stop a job.
        if keys:
            _require(keys, f"no row of the first {_FIRST_ROWS} of {place.name(only)} has", wanted)
        return
    for file in located.files:
        name = place.name(file.path)
        if located.format == "csv":
            columns = csv_header(place, file.path)
            if columns:  # an empty file has no header and no rows either
                _require(columns, f"{name} does not have", wanted)
            continue
        schema = parquet_schema(place, file.path)
        _require([str(column) for column in schema.names], f"{name} does not have", wanted)
        if id_column is not None:
            _check_ids(schema.field(id_column).type, name, id_column)


def _check_ids(kind: pa.DataType, name: str, column: str) -> None:
    if not identifies(kind):
        raise InputError(
            f"column `{column}` (input.id_column) of {name} is of type {kind}; ids are strings "
            "or integers. Write it as one of these (pandas makes integers with gaps double: `.astype('Int64')`), or "
            "set `id_column: null` to make ids from the texts."
        )


def _require(columns: Sequence[str], what: str, wanted: Wanted) -> None:
    for setting, column in wanted:
        if columns.count(column) > 1:
            raise InputError(
                f"column `{column}` ({setting}) occurs {columns.count(column)} times among the columns "
                f"{_listed(columns)}. Rename all but one."
            )
        if column not in columns:
            nearest = difflib.get_close_matches(column, columns, n=1, cutoff=0.4)
            hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
            without = " Or set `id_column: null` to make ids from the texts." if setting == "input.id_column" else ""
            raise InputError(
                f"{what} the column `{column}` ({setting}). Columns: {_listed(columns)}.{hint} "
                f"Set {setting} to one of them.{without}"
            )


def _listed(columns: Sequence[str]) -> str:
    names = ", ".join(columns[:_SHOWN])
    return names if len(columns) <= _SHOWN else f"{names} and {len(columns) - _SHOWN} more"
