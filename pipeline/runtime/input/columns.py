"""Whether the input has the columns that the job names: asked first, not a million rows later."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import chain, islice

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.delimited import csv_header
from pipeline.runtime.input.formats import chunks, jsonl_keys
from pipeline.runtime.input.locate import Located, Place
from pipeline.runtime.input.parquet import identifies, parquet_schema

_FIRST_ROWS = 100
_SHOWN = 30


def check_columns(located: Located, config: InputConfig) -> None:
    """Check that each Parquet schema, each CSV header, and one of JSONL's first 100 rows has every column.

    Raises:
        InputError: a column is missing (the nearest is named) or there twice, Parquet's ids are neither strings
            nor integers, or text is to have columns.
    """
    place = located.place
    if located.format == "text":
        if config.schema_column is not None:
            raise InputError("text files have no columns, so `schema_column` cannot be read: set `schema` instead.")
    elif located.format == "jsonl":
        rows = chain.from_iterable(jsonl_keys(chunks(place, file.path)) for file in located.files)
        keys = list(dict.fromkeys(chain.from_iterable(islice(rows, _FIRST_ROWS))))
        only = located.files[0].path if len(located.files) == 1 else ""
        # Without one readable row there is nothing to compare with, and unreadable rows do not stop a job.
        if keys:
            _require(keys, f"no row of the first {_FIRST_ROWS} of {place.name(only)} has", config)
    else:
        check = _check_csv if located.format == "csv" else _check_parquet
        for file in located.files:
            check(place, file.path, config)


def _check_csv(place: Place, path: str, config: InputConfig) -> None:
    columns = csv_header(place, path)
    if columns:  # an empty file has no header and no rows either
        _require(columns, f"{place.name(path)} does not have", config)


def _check_parquet(place: Place, path: str, config: InputConfig) -> None:
    schema = parquet_schema(place, path)
    _require([str(name) for name in schema.names], f"{place.name(path)} does not have", config)
    if config.id_column is None:
        return
    kind = schema.field(config.id_column).type
    if not identifies(kind):
        raise InputError(
            f"column `{config.id_column}` (input.id_column) of {place.name(path)} is of type {kind}; ids are strings "
            "or integers. Write it as one of these (pandas makes integers with gaps double: `.astype('Int64')`), or "
            "set `id_column: null` to make ids from the texts."
        )


def _require(columns: Sequence[str], what: str, config: InputConfig) -> None:
    wanted = {
        "text_column": config.text_column,
        "id_column": config.id_column,
        "schema_column": config.schema_column,
    }
    for setting, column in wanted.items():
        if column is None:
            continue
        if columns.count(column) > 1:
            raise InputError(
                f"column `{column}` (input.{setting}) occurs {columns.count(column)} times among the columns "
                f"{_listed(columns)}. Rename all but one."
            )
        if column not in columns:
            nearest = difflib.get_close_matches(column, columns, n=1, cutoff=0.4)
            hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
            without = " Or set `id_column: null` to make ids from the texts." if setting == "id_column" else ""
            raise InputError(
                f"{what} the column `{column}` (input.{setting}). Columns: {_listed(columns)}.{hint} "
                f"Set input.{setting} to one of them.{without}"
            )


def _listed(columns: Sequence[str]) -> str:
    names = ", ".join(columns[:_SHOWN])
    return names if len(columns) <= _SHOWN else f"{names} and {len(columns) - _SHOWN} more"
