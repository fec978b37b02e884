"""What travels between stages: a unit's JSON and one binary column of rows. Types are made once, in the writer.

Letting Ray infer column types from values would make them drift from block to block.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pipeline.errors import OutputError
from pipeline.records import Attempt, Document, Outcome, Problem, Repair

if TYPE_CHECKING:
    import pyarrow as pa


def to_table(unit: str, rows: Iterable[Any]) -> pa.Table:
    """Dataclass rows of one unit as a table of `unit` (its JSON, in the first row) and `row` (their JSON).

    The unit is not in the schema's metadata, which Ray Data is free to drop between stages.
    """
    import pyarrow as pa

    encoded = [_encode(row) for row in rows]
    units = [unit if number == 0 else "" for number in range(len(encoded))]
    columns = [pa.array(units, pa.string()), pa.array(encoded, pa.binary())]
    return pa.Table.from_arrays(columns, names=["unit", "row"])


def unit_of(table: pa.Table) -> str:
    """The JSON of the unit that a table holds.

    Raises:
        OutputError: the table is not a whole unit, from its first row on.
    """
    first, *others = table.column("unit").to_pylist() or [""]
    if not first or any(others):
        raise OutputError("a unit did not arrive as one block; nothing of it is written. Please report this.")
    return str(first)


def documents_of(table: pa.Table) -> list[Document]:
    """The documents that `to_table` encoded."""
    rows = [_decode(row) for row in table.column("row").to_pylist()]
    return [Document(**{**row, "problems": tuple(Problem(**p) for p in row["problems"])}) for row in rows]


def outcomes_of(table: pa.Table) -> list[Outcome]:
    """The outcomes that `to_table` encoded."""
    nested = {"problems": Problem, "repairs": Repair, "attempts": Attempt}
    outcomes = []
    for encoded in table.column("row").to_pylist():
        row = _decode(encoded)
        outcomes.append(Outcome(**{**row, **{k: tuple(kind(**item) for item in row[k]) for k, kind in nested.items()}}))
    return outcomes


def _encode(value: Any) -> bytes:
    # surrogatepass: raw model text may hold half a surrogate pair, and must arrive as it was.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_members)
    return text.encode("utf-8", "surrogatepass")


def _members(row: Any) -> dict[str, Any]:
    """A record's members as they are; `dataclasses.asdict` would copy every value first."""
    return {name: getattr(row, name) for name in row.__slots__}


def _decode(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass"))
