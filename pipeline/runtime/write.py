"""Write: the outcomes of one unit become Parquet files, one per status and schema, and one commit record.

Columns come from the schema, never from the values, so every file of a table has the same Arrow schema. `status` and
`schema` are in the path (hive partitioning) and not in the file, so that plain readers see each once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.errors import OutputError
from pipeline.observe.tally import tally
from pipeline.records import Outcome, Status
from pipeline.runtime.commit import COMMITS, create_exclusively
from pipeline.runtime.input import Unit
from pipeline.schema.arrow import arrow_field
from pipeline.schema.columns import Column, stored
from pipeline.schema.fingerprint import multiset_digest
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES
from pipeline.steps.validate import judge_of

if TYPE_CHECKING:
    import pyarrow as pa

NO_SCHEMA = "none"
"""The partition of documents that name no schema."""


def write_unit(
    unit: Unit, outcomes: Sequence[Outcome], plans: Mapping[str, DecodingPlan], directory: Path, run_id: str
) -> dict[str, Any]:
    """Write and commit one unit; returns its commit record. If another attempt committed first, its record stands.

    Raises:
        OutputError: the outcomes are not the unit's, or what was written does not read back.
    """
    if len(outcomes) != unit.rows:
        raise OutputError(f"unit {unit.id} has {unit.rows} documents but {len(outcomes)} outcomes; nothing is written.")
    tables: dict[tuple[Status, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        tables[outcome.status, outcome.schema or NO_SCHEMA].append(outcome)
    files = []
    for (status, schema), rows in sorted(tables.items()):
        table = _table(rows, status, plans.get(schema), run_id)
        files.append(_write_file(table, directory, status, schema, unit.id))
    record = {
        "unit": unit.id,
        "input": unit.to_json(),
        "ids_digest": multiset_digest(outcome.document_id for outcome in outcomes),
        "tally": tally(outcomes).to_json(),
        "files": files,
    }
    if not create_exclusively(directory / COMMITS / f"{unit.id}.json", record):
        for file in files:
            (directory / file["path"]).unlink(missing_ok=True)
    return record


def _write_file(table: pa.Table, directory: Path, status: str, schema: str, unit: str) -> dict[str, Any]:
    """Write, flush to disk, read back, and describe one file. The name is unique: nothing is ever overwritten."""
    import pyarrow.parquet as pq

    folder = directory / f"status={status}" / f"schema={quote(schema, safe='@')}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{unit}-{uuid.uuid4().hex[:12]}.parquet"
    try:
        pq.write_table(table, path, compression="zstd")
        with path.open("rb") as file:
            os.fsync(file.fileno())
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error}") from error
    back = pq.ParquetFile(path).read(columns=["document_id"])
    if back.column("document_id") != table.column("document_id"):
        raise OutputError(f"{path} does not read back as it was written.")
    return {
        "path": str(path.relative_to(directory)),
        "status": status,
        "schema": schema,
        "rows": table.num_rows,
        "bytes": path.stat().st_size,
        "sha256": checksum,
    }


def _table(outcomes: Sequence[Outcome], status: Status, plan: DecodingPlan | None, run_id: str) -> pa.Table:
    import pyarrow as pa

    column = judge_of(plan).column if plan is not None and status != "rejected" else None
    rows = [_row(outcome, column, plan, run_id) for outcome in outcomes]
    return pa.Table.from_pylist(rows, schema=_arrow_schema(status, column))


def _row(outcome: Outcome, column: Column | None, plan: DecodingPlan | None, run_id: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "document_id": _text(outcome.document_id),
        "source": _text(outcome.source),
        "layer": outcome.layer,
        "problems": [
            {
                "code": p.code,
                "layer": CODES[p.code].layer,
                "pointer": _text(p.pointer),
                "message": _text(p.message),
                "attempt": p.attempt,
            }
            for p in outcome.problems
        ],
        "repairs": [{key: _text(value) for key, value in dataclasses.asdict(r).items()} for r in outcome.repairs],
        "attempts": [{**dataclasses.asdict(a), "raw_text": _text(a.raw_text)} for a in outcome.attempts],
        "schema_digest": plan.schema_digest if plan else None,
        "grammar_digest": plan.grammar_digest if plan else None,
        "work_digest": outcome.work_digest,
        "run_id": run_id,
    }
    if column is None:
        row["document_text"] = _text(outcome.document_text)
    else:
        row["record"] = stored(column, outcome.record)
    return row


def _arrow_schema(status: Status, column: Column | None) -> pa.Schema:
    import pyarrow as pa

    string, int32, int64, double = pa.string(), pa.int32(), pa.int64(), pa.float64()
    problem = pa.struct({"code": string, "layer": string, "pointer": string, "message": string, "attempt": int32})
    repair = pa.struct({"kind": string, "pointer": string, "detail": string})
    counts = {"prompt_tokens": int64, "cached_tokens": int64, "output_tokens": int64}
    attempt = pa.struct(
        {"number": int32, "engine": string, "plan_digest": string, "constrained": pa.bool_(), "finish_reason": string}
        | {"error": string}
        | counts
        | {"queue_seconds": double, "seconds": double, "raw_text": string}
    )
    body = (
        pa.field("document_text", string)
        if column is None
        else arrow_field("record", column, all_nullable=status != "valid")
    )
    return pa.schema(
        [
            pa.field("document_id", string, nullable=False),
            pa.field("source", string),
            body,
            pa.field("layer", int32),
            pa.field("problems", pa.list_(problem)),
            pa.field("repairs", pa.list_(repair)),
            pa.field("attempts", pa.list_(attempt)),
            *(pa.field(name, string) for name in ("schema_digest", "grammar_digest", "work_digest", "run_id")),
        ]
    )


def _text(value: str) -> str:
    """Text that Arrow can hold: half surrogate pairs (in raw model output, say) become their escape, visibly."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
