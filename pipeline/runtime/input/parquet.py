"""Rows of Parquet files. A slice is read without the row groups before it and columns not needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from pipeline.runtime.input.formats import MISSING, NO_COLUMNS, Columns, Row, Span, Unreadable
from pipeline.runtime.input.locate import Place, readable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS = 256
"""Rows decoded at a time when texts are among them; ids alone are small."""
_ROWS_WITHOUT_TEXT = 1 << 14

_LOCK = Lock()

Key = tuple[str, str, int, int, tuple[str, ...]]


class _Batches:
    """A file's batches from some row on, forward only. `row` is the first that was not handed out yet."""

    def __init__(self, file: pq.ParquetFile, row: int, columns: list[str], size: int) -> None:
        self.edges = _edges(file)
        group = sum(edge <= row for edge in self.edges[1:-1])
        groups = list(range(group, file.num_row_groups))
        self._file = file
        self._batches = file.iter_batches(size, row_groups=groups, columns=columns, use_threads=False)
        self.row = self.edges[group]
        self._batch: pa.RecordBatch | None = None

    def reaches(self, row: int) -> bool:
        """Whether going on to `row` decodes nothing that opening the file there would skip."""
        return self.row <= row and not any(self.row < edge <= row for edge in self.edges)

    def take(self, start: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of rows [start, end), each with the number of its first row; fewer if the file ends."""
        while self.row < end:
            batch = self._batch if self._batch is not None else next(self._batches, None)
            if batch is None:
                return
            self._batch = None
            skipped = min(max(start - self.row, 0), batch.num_rows)
            wanted = min(batch.num_rows - skipped, end - self.row - skipped)
            first = self.row + skipped
            self.row = first + wanted
            if skipped + wanted < batch.num_rows:
                self._batch = batch.slice(skipped + wanted)
            if wanted:
                yield first, batch.slice(skipped, wanted)


_LEFT_OFF: list[tuple[Key, _Batches]] = []
"""Where this process stopped reading, the last places last.

Row groups are often far larger than units, so a process that reads unit after unit would otherwise decode
each group from its top as often as it holds units. Several places, because units of different schemas overlap and
several are read at a time. What is read does not depend on it.
"""
_MOST_LEFT_OFF = 4
"""Each holds up to a batch of rows and a page of each column."""


def parquet_schema(place: Place, path: str) -> pa.Schema:
    """The file's columns, with their names and types.

    Raises:
        InputError: the file is not Parquet, or its footer is corrupt.
    """
    with readable(f"{place.name(path)} as Parquet"):
        return _open(place, path).schema_arrow


def row_bytes(place: Place, path: str, columns: Columns) -> int:
    """Bytes of a row as far as these columns go, about: the mean of the row group whose rows are largest, as it was
    before it was compressed. Texts that repeat within a group are counted less often than they are.

    Raises:
        InputError: the file is not Parquet, or its footer is corrupt.
    """
    names = columns.names()
    with readable(f"{place.name(path)} as Parquet"):
        footer = _open(place, path).metadata
        paths = [f"{footer.schema.column(number).path}." for number in range(footer.num_columns)]
        wanted = [n for n, leaf in enumerate(paths) if any(leaf.startswith(f"{name}.") for name in names)]
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        sizes = [sum(one.column(n).total_uncompressed_size for n in wanted) // max(1, one.num_rows) for one in groups]
    return max(sizes, default=0)


def identifies(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold ids: strings or integers, or nulls, of which each row tells."""
    import pyarrow.types as of

    if of.is_dictionary(kind):
        kind = kind.value_type
    strings = (of.is_string, of.is_large_string, of.is_string_view, of.is_binary, of.is_large_binary, of.is_binary_view)
    return any(test(kind) for test in (*strings, of.is_integer, of.is_null))


def parquet_rows(place: Place, path: str, span: Span, columns: Columns) -> Iterator[Row]:
    """Rows [span.start, span.end) of a file. A string that is not UTF-8 comes as bytes.

    Raises:
        InputError: the file or one of its pages is corrupt.
    """
    names = columns.names()
    with readable(f"{place.name(path)} as Parquet"):
        info = place.filesystem.get_file_info(place.full(path))
        key = (str(place.filesystem.type_name), info.path, int(info.size or 0), int(info.mtime_ns or 0), tuple(names))
        batches = _left_off(key, span.start)
        if batches is None:
            size = _ROWS if columns.text is not None or columns.others else _ROWS_WITHOUT_TEXT
            batches = _Batches(_open(place, path), span.start, names, size)
        end = batches.edges[-1] if span.end is None else span.end
        for first, batch in batches.take(span.start, end):
            yield from _rows(*_picked(first, batch, span.picks), columns)
    if span.end is not None:
        with _LOCK:
            _LEFT_OFF.append((key, batches))
            del _LEFT_OFF[:-_MOST_LEFT_OFF]


def _left_off(key: Key, row: int) -> _Batches | None:
    """The batches of a file that are nearest before a row. They are taken, so that nobody else advances them."""
    with _LOCK:
        near = [index for index, (at, batches) in enumerate(_LEFT_OFF) if at == key and batches.reaches(row)]
        return _LEFT_OFF.pop(max(near, key=lambda index: _LEFT_OFF[index][1].row))[1] if near else None


def _picked(first: int, batch: pa.RecordBatch, picks: Sequence[int] | None) -> tuple[Sequence[int], pa.RecordBatch]:
    """The numbers of the rows of a batch that are wanted, and these."""
    if picks is None:
        return range(first, first + batch.num_rows), batch
    numbers = picks[bisect_left(picks, first) : bisect_left(picks, first + batch.num_rows)]
    return numbers, batch.take([number - first for number in numbers]) if numbers else batch.slice(0, 0)


def _open(place: Place, path: str) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    # Buffered and not pre-buffered, so that a row group's columns are streamed rather than held whole.
    file = place.filesystem.open_input_file(place.full(path))
    return pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)


def _edges(file: pq.ParquetFile) -> list[int]:
    """Row numbers where row groups start, and the number of rows at the end."""
    edges = [0]
    for group in range(file.num_row_groups):
        edges.append(edges[-1] + file.metadata.row_group(group).num_rows)
    return edges


def _rows(numbers: Sequence[int], batch: pa.RecordBatch, columns: Columns) -> Iterator[Row]:
    absent = [MISSING] * batch.num_rows
    wanted = dict.fromkeys(name for name in columns.all if name is not None)
    values = {name: _values(batch.column(name)) for name in wanted}
    texts, ids, schemas = (absent if name is None else values[name] for name in columns.all)
    others = {name: _any_values(batch.column(name)) for name in columns.others}
    for index, (number, text, key, schema) in enumerate(zip(numbers, texts, ids, schemas, strict=True)):
        more = {name: found[index] for name, found in others.items()} if others else NO_COLUMNS
        yield Row(number, number, number + 1, text, key, schema, columns=more)


def _values(column: pa.Array) -> list[Any]:
    """Python values. Readers do not check that strings are UTF-8, so those that are not are kept as bytes."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        return list(column.cast(pa.large_binary()).to_pylist())


def _any_values(column: pa.Array) -> list[Any]:
    """Python values of a column of any type. What Python has no value for stands as Unreadable in its own row only."""
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, ValueError, OverflowError):
        return [_any_value(scalar) for scalar in column]


def _any_value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except KeyError:
        return Unreadable("holds a map that repeats a key")
    except UnicodeDecodeError as error:
        return Unreadable(f"is not UTF-8: {error.reason} at byte {error.start}", not_utf8=True)
    except (ValueError, OverflowError) as error:
        return Unreadable(f"holds a {scalar.type} that cannot be read: {error}")
