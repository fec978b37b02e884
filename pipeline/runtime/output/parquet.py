"""Parquet files of a run: one object each, read whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.runtime.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(store: Store, key: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in an object, or those of the named columns that it has.

    Raises:
        OSError, pyarrow.ArrowException: it is not there, or cannot be read.
    """
    data = store.get(key)
    if data is None:
        raise FileNotFoundError(f"{store.where}/{key} is not there")
    return parquet_of(data, columns)


def parquet_of(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in a file's content. Not a dataset, which would add columns for the path.

    Raises:
        pyarrow.ArrowException: it is no Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(data)).read(columns=None if columns is None else list(columns))


def parquet_from(table: pa.Table) -> bytes:
    """The content of the file that holds a table.

    Raises:
        pyarrow.ArrowException: it cannot be written so.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
