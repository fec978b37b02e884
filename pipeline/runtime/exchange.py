"""What travels between stages: a unit's JSON and one binary column of rows. Types are made once, in the writer.

Letting Ray infer column types from values would make them drift from block to block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pipeline.errors import OutputError
from pipeline.records import Attempt, Document, Field, Outcome, Problem, Repair

if TYPE_CHECKING:
    import pyarrow as pa


def to_table(unit: str, rows: Iterable[Any]) -> pa.Table:
    """Documents and outcomes of one unit as a table: `unit` (its JSON, in the first row), `row` (their JSON), `done`.

    The unit is not in the schema's metadata, which Ray Data is free to drop between stages.
    """
    import pyarrow as pa

    rows = list(rows)
    units = [unit if number == 0 else "" for number in range(len(rows))]
    done = [isinstance(row, Outcome) for row in rows]
    columns = [pa.array(units, pa.string()), pa.array(map(_encode, rows), pa.binary()), pa.array(done, pa.bool_())]
    return pa.Table.from_arrays(columns, names=["unit", "row", "done"])


def unit_of(table: pa.Table) -> str:
    """The JSON of the unit that a table holds.

    Raises:
        OutputError: the table is not a whole unit, from its first row on.
    """
    first, *others = table.column("unit").to_pylist() or [""]
    if not first or any(others):
        raise OutputError("a unit did not arrive as one block; nothing of it is written. Please report this.")
    return str(first)


def rows_of(table: pa.Table) -> list[Document | Outcome]:
    """What `to_table` encoded, in its order: documents that nobody has worked on yet, outcomes of the others."""
    encoded, done = table.column("row").to_pylist(), table.column("done").to_pylist()
    return [(_outcome if finished else _document)(_decode(row)) for row, finished in zip(encoded, done, strict=True)]


def outcomes_of(table: pa.Table) -> list[Outcome]:
    """The outcomes that `to_table` encoded.

    Raises:
        OutputError: a document came through without one.
    """
    rows = rows_of(table)
    outcomes = [row for row in rows if isinstance(row, Outcome)]
    if len(outcomes) < len(rows):
        raise OutputError("no stage worked on some documents of a unit; nothing of it is written. Please report this.")
    return outcomes


def _document(row: dict[str, Any]) -> Document:
    return Document(**{**row, "problems": tuple(Problem(**problem) for problem in row["problems"])})


def _outcome(row: dict[str, Any]) -> Outcome:
    nested = {"problems": Problem, "repairs": Repair, "attempts": Attempt, "fields": Field}
    return Outcome(**{**row, **{key: tuple(kind(**item) for item in row[key]) for key, kind in nested.items()}})


def _encode(value: Any) -> bytes:
    # surrogatepass: raw model text may hold half a surrogate pair, and must arrive as it was.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_members)
    return text.encode("utf-8", "surrogatepass")


def _members(row: Any) -> dict[str, Any]:
    """A record's members as they are; `dataclasses.asdict` would copy every value first."""
    return {name: getattr(row, name) for name in row.__slots__}


def _decode(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass"))
