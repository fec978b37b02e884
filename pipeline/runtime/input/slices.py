"""Rows of a unit, or of a whole file, whatever the format. Scanning and reading both take them from here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pipeline.job import InputConfig
from pipeline.runtime.input.check import Sums, header_bytes
from pipeline.runtime.input.delimited import csv_header, csv_rows
from pipeline.runtime.input.formats import WHOLE, Columns, Hasher, Row, chunks, jsonl_rows, text_row
from pipeline.runtime.input.locate import Format, Place
from pipeline.runtime.input.parquet import parquet_rows
from pipeline.runtime.input.units import Unit


def unit_rows(unit: Unit, place: Place, config: InputConfig, hasher: Hasher | None = None) -> Iterator[tuple[str, Row]]:
    """The rows of a unit, each after the path of its file.

    `hasher` sees what a check by hash is made of (see `check`), and nothing of Parquet.

    Raises:
        InputError: a file cannot be read.
    """
    hasher = hashlib.sha256() if hasher is None else hasher
    if unit.format == "text":
        for path in unit.paths:
            one = hashlib.sha256()
            row = text_row(chunks(place, path, hasher=one), path)
            hasher.update(one.digest())
            yield path, row
        return
    path, span = unit.paths[0], unit.span
    others = tuple(dict.fromkeys(config.columns))
    columns = Columns(config.text_column, config.id_column, config.schema_column, others)
    if unit.format == "parquet":
        rows = parquet_rows(place, path, span, columns)
    elif unit.format == "csv":
        header = csv_header(place, path)
        hasher.update(header_bytes(header))
        rows = csv_rows(chunks(place, path, span, hasher), span, columns, header)
    else:
        rows = jsonl_rows(chunks(place, path, span, hasher), span, columns)
    for row in rows:
        yield path, row


def file_rows(form: Format, place: Place, path: str, config: InputConfig, sums: Sums) -> Iterator[Row]:
    """All rows of a JSONL, CSV or Parquet file, for their ids and schemas: without `input.columns`.

    `sums` sees the bytes of JSONL and CSV as they are read, and none of Parquet's.

    Raises:
        InputError: the file cannot be read.
    """
    if form == "parquet":
        # Without an id column the id is made from the text; with one the texts are not even decoded.
        text = config.text_column if config.id_column is None else None
        return parquet_rows(place, path, WHOLE, Columns(text, config.id_column, config.schema_column))
    columns = Columns(config.text_column, config.id_column, config.schema_column)
    parts = chunks(place, path, hasher=sums)
    if form == "csv":
        header = csv_header(place, path)
        sums.prefix = header_bytes(header)
        return csv_rows(parts, WHOLE, columns, header)
    return jsonl_rows(parts, WHOLE, columns)
