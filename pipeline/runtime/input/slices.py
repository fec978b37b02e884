"""Rows of a unit, or of a whole file, whatever the format. Scanning and reading both take them from here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pipeline.job import InputConfig
from pipeline.runtime.input.check import header_bytes
from pipeline.runtime.input.delimited import csv_header, csv_rows
from pipeline.runtime.input.formats import WHOLE, Columns, Hasher, Row, Span, chunks, jsonl_rows, text_row
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
            yield path, row._replace(raw=one.digest())
        return
    path = unit.paths[0]
    prefix, rows = _rows(unit.format, place, path, columns_of(config), (unit.span, None))
    hasher.update(prefix)
    for row in rows:
        hasher.update(row.raw)
        yield path, row


def file_rows(
    form: Format, place: Place, path: str, config: InputConfig, hasher: Hasher, *, whole: bool = False
) -> tuple[bytes, Iterator[Row]]:
    """What a check starts with, and all rows of a JSONL, CSV or Parquet file, for their ids and schemas; `whole`: with
    texts and `input.columns`.

    `hasher` sees the bytes of JSONL and CSV as they are read, and none of Parquet's.

    Raises:
        InputError: the file cannot be read.
    """
    columns = columns_of(config)
    if not whole:
        # Parquet's texts are not even decoded, unless ids are made from them.
        text = None if form == "parquet" and config.id_column is not None else columns.text
        columns = Columns(text, columns.id, columns.schema)
    return _rows(form, place, path, columns, (WHOLE, hasher))


def columns_of(config: InputConfig) -> Columns:
    """All columns that documents are made of."""
    others = tuple(dict.fromkeys(config.columns))
    return Columns(config.text_column, config.id_column, config.schema_column, others)


def _rows(
    form: Format, place: Place, path: str, columns: Columns, slice_of: tuple[Span, Hasher | None]
) -> tuple[bytes, Iterator[Row]]:
    """What a check starts with, and the rows; a hasher sees all bytes that are read for them."""
    span, hasher = slice_of
    if form == "parquet":
        return b"", parquet_rows(place, path, span, columns)
    parts = chunks(place, path, span, hasher)
    if form == "csv":
        header = csv_header(place, path)
        return header_bytes(header), csv_rows(parts, span, columns, header)
    return b"", jsonl_rows(parts, span, columns)
