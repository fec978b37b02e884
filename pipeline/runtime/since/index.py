"""The index of an incremental run: a row for every document of its input, which says where the document's row lives.

It lies in the run's place as `_since/index-….parquet`, a sequence of files of at most PART_ROWS rows, which the
manifest names. Documents that the input no longer holds are kept for a while (`gone`), so that what was only missing
for some nights, such as a folder that was not mounted, is not extracted again.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import OutputError
from pipeline.runtime.output.parquet import parquet_from, parquet_of
from pipeline.runtime.output.run_record import reading
from pipeline.runtime.output.tables import storable
from pipeline.runtime.store import Store, reason

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "_since/index"
SUPERSEDED = "_since/superseded"
PART_ROWS = 500_000


def id_hash(document_id: str) -> int:
    """What an id is compared by: 64 bits of it, as it is written to a row."""
    return _bits(storable(document_id))


def reuse_digest(document_id: str, work: str, content: str) -> int:
    """What has to be unchanged for a record to be reused, 64 bits. `work` is of `Work`, `content` of the document.

    The id is in it, so that a wrong match needs both hashes of one document to fall together with another's.
    """
    return _bits(f"{work}\0{content}\0{document_id}")


def _bits(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def index_schema() -> pa.Schema:
    """`gone` is 0, or the number of the run that first missed the document; `repeats` counts further rows of the id."""
    import pyarrow as pa

    text = {name: pa.string() for name in ("document_id", "schema", "status", "run_id")}
    numbers = {"gone": pa.int32(), "repeats": pa.uint32(), "id_hash": pa.uint64(), "reuse_digest": pa.uint64()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in (text | numbers).items()])


def superseded_schema() -> pa.Schema:
    """`run_id` is the run of the row that no longer counts, `why` one of changed, asked, lost, gone."""
    import pyarrow as pa

    names = ("document_id", "schema", "status", "run_id", "why")
    return pa.schema([pa.field(name, pa.string(), nullable=False) for name in names])


class Parts:
    """Writes one table as files of at most PART_ROWS rows, so that no more than two of them are in memory.

    Of two drivers that write the index of one run, neither overwrites what the other's manifest may name.
    """

    def __init__(self, store: Store, prefix: str, schema: pa.Schema, rows: int = PART_ROWS) -> None:
        self._store = store
        self._prefix = prefix
        self._attempt = uuid.uuid4().hex[:12]
        self._schema = schema
        self._rows = rows
        self._waiting: list[pa.Table] = []
        self._count = 0
        self.files: list[dict[str, Any]] = []

    def add(self, table: pa.Table) -> None:
        """Append rows.

        Raises:
            OSError, pyarrow.ArrowException: they cannot be written.
        """
        if table.num_rows:
            self._waiting.append(table.cast(self._schema))
            self._count += table.num_rows
        while self._count >= self._rows:
            self._write(self._rows)

    def close(self) -> list[dict[str, Any]]:
        """Write what is left; the files, as the manifest names them.

        Raises:
            OSError, pyarrow.ArrowException: it cannot be written.
        """
        if self._count:
            self._write(self._count)
        return self.files

    def _write(self, rows: int) -> None:
        import pyarrow as pa

        table = pa.concat_tables(self._waiting)
        self._waiting = [table.slice(rows)] if rows < table.num_rows else []
        self._count -= rows
        data = parquet_from(table.slice(0, rows).combine_chunks())
        key = f"{self._prefix}-{len(self.files):06d}-{self._attempt}.parquet"
        self._store.put(key, data)
        self.files.append({"path": key, "rows": rows, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})


def read_parts(
    store: Store, files: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The files of an index, one at a time, checked against what the manifest says of them.

    Raises:
        OutputError: one is missing, or is not what was written.
    """
    import pyarrow as pa

    for file in files:
        where = f"{store.where}/{file['path']}"
        with reading(where):
            data = store.get(file["path"])
        if data is None or hashlib.sha256(data).hexdigest() != file["sha256"]:
            state = "is gone" if data is None else "is not what the run wrote"
            raise OutputError(
                f"{where}, by which the next incremental run is told what is new, {state}. Put it back, or move "
                f"{store.where} away: then the job starts from the run before it."
            )
        try:
            yield parquet_of(data, columns)
        except pa.ArrowException as error:
            raise OutputError(f"{where} cannot be read: {reason(error)}") from error
