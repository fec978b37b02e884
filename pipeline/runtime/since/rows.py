"""From the last index and the rows of a run to the run's index, and what it supersedes. Tables at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pipeline.errors import OutputError
from pipeline.runtime.output.parquet import read_parquet
from pipeline.runtime.since.entries import (
    ASKED,
    CHANGED,
    DOUBTED,
    FRESH,
    GONE,
    GONE_DOUBTED,
    KEPT,
    LOST,
    REGAINED,
    RETURNED,
    Entries,
    Pass,
)
from pipeline.runtime.since.index import id_hash, index_schema, superseded_schema
from pipeline.runtime.store import Store, reason

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

GONE_RUNS = 30
"""Runs after which the index forgets a document that the input no longer holds."""
THREADS = 8
WINDOW = 64
"""Files of a run that are read at once, and that are held at once."""

_WHY = {CHANGED: "changed", ASKED: "asked", REGAINED: "lost", FRESH: "gone", DOUBTED: "gone", LOST: "gone"}
_DUPLICATE = "duplicate_id"


class Present:
    """Documents of an index that its input holds, altogether and by the run of their rows."""

    def __init__(self) -> None:
        self.documents = 0
        self.runs: dict[str, int] = {}

    def add(self, rows: pa.Table) -> None:
        """Count rows of the index."""
        import pyarrow.compute as pc

        for run_id in pc.unique(rows.column("run_id")).to_pylist():
            self.runs.setdefault(run_id, 0)  # also if all that is left of it is gone from the input: it may return
        for pair in pc.value_counts(rows.column("run_id").filter(pc.equal(rows.column("gone"), 0))).to_pylist():
            self.runs[pair["values"]] += pair["counts"]
            self.documents += pair["counts"]


def carried(
    parts: Iterable[pa.Table], entries: Entries, met: Pass, sequence: int
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Of every part of the last index: the rows of the new one that come from it, and the rows that are superseded."""
    import numpy as np
    import pyarrow as pa

    states = entries.by_row(np.frombuffer(met.states, np.uint8))
    repeated = np.zeros(len(states), np.uint32)
    if met.repeats:
        repeated[list(met.repeats.keys())] = list(met.repeats.values())
    repeated = entries.by_row(repeated)
    start = 0
    for part in parts:
        mine, repeats = states[start : start + part.num_rows], repeated[start : start + part.num_rows]
        start += part.num_rows
        absent = part.column("gone").to_numpy()
        gone = np.where(np.isin(mine, (FRESH, DOUBTED)), sequence, np.where(mine < KEPT, absent, 0))
        stay = np.isin(mine, (KEPT, RETURNED, FRESH, DOUBTED))
        stay |= np.isin(mine, (GONE, GONE_DOUBTED)) & (sequence - absent < GONE_RUNS)
        changes = {"gone": pa.array(gone, pa.int32()), "repeats": pa.array(repeats, pa.uint32())}
        yield _replaced(part, changes).filter(pa.array(stay)), _superseded(part, mine)


def _replaced(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), values)
    return table


def _superseded(part: pa.Table, states: npt.NDArray[np.uint8]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    chosen = np.isin(states, list(_WHY))
    why = pa.array([_WHY[state] for state in states[chosen].tolist()], pa.string())
    columns = [name for name in superseded_schema().names if name != "why"]
    rows: pa.Table = part.select(columns).filter(pa.array(chosen)).append_column("why", why)
    return rows


def made(run: Store, run_id: str, files: Sequence[Mapping[str, Any]], met: Pass) -> Iterator[pa.Table]:
    """The rows of the index for the documents that a run made, file by file; duplicates are not documents.

    Raises:
        OutputError: a file cannot be read, or holds a document that was not to be made.
    """
    import numpy as np

    hashes = np.frombuffer(met.hashes, np.uint64)
    known, first, count = np.unique(hashes, return_index=True, return_counts=True)
    digests = np.frombuffer(met.digests, np.uint64)[first]
    for file, ids in _documents(run, files):
        keys = np.fromiter(map(id_hash, ids), np.uint64, len(ids))
        places = np.minimum(np.searchsorted(known, keys), max(0, len(known) - 1))
        if len(ids) and not (len(known) and bool((known[places] == keys).all())):
            raise OutputError(
                f"not committed: {run.where}/{file['path']} holds documents that were not to be extracted. Please "
                "report this; to have all of its unit's documents extracted again, delete the unit's commit record."
            )
        yield _table(file, run_id, ids, keys, (digests[places], count[places] - 1))


def _table(
    file: Mapping[str, Any],
    run_id: str,
    ids: Sequence[str],
    keys: npt.NDArray[np.uint64],
    found: tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]],
) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    rows = len(ids)
    columns: list[Any] = [ids, [file["schema"]] * rows, [file["status"]] * rows, [run_id] * rows]
    columns += [np.zeros(rows, np.int32), found[1].astype(np.uint32), keys, found[0]]
    schema = index_schema()
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema)


def _documents(run: Store, files: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """Each file with the ids of its documents."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="index") as pool:
        for start in range(0, len(files), WINDOW):
            window = files[start : start + WINDOW]
            yield from zip(window, pool.map(lambda file: _ids(run, file), window), strict=True)


def _ids(run: Store, file: Mapping[str, Any]) -> list[str]:
    import pyarrow as pa

    rejected = file["status"] == "rejected"
    try:
        table = read_parquet(run, file["path"], ["document_id", *(["problems"] if rejected else [])])
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot read {run.where}/{file['path']}: {reason(error)}. Run again.") from error
    ids: list[str] = table.column("document_id").to_pylist()
    if not rejected:
        return ids
    problems = table.column("problems").to_pylist()
    return [
        one
        for one, found in zip(ids, problems, strict=True)
        if all(problem["code"] != _DUPLICATE for problem in found or ())
    ]
