"""Write: the outcomes of one unit become Parquet files, one per status and schema, and one commit record.

Columns come from the schema, never from the values, so every file of a table has the same Arrow schema. `status` and
`schema` are in the path (hive partitioning) and not in the file, so that plain readers see each once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.errors import OutputError
from pipeline.observe.tally import tally
from pipeline.records import Outcome, Status
from pipeline.runtime.commit import COMMITS, commit_record
from pipeline.runtime.durable import create_exclusively, sync_directory, writing
from pipeline.runtime.input import Unit
from pipeline.schema.arrow import arrow_field
from pipeline.schema.fingerprint import multiset_digest
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.storage import Column, stored
from pipeline.steps.codes import CODES
from pipeline.steps.validate import judge_of

if TYPE_CHECKING:
    import pyarrow as pa

NO_SCHEMA = "none"
"""The partition of documents that name no schema."""


def write_unit(
    unit: Unit, outcomes: Sequence[Outcome], plans: Mapping[str, DecodingPlan], directory: Path, run_id: str
) -> dict[str, Any]:
    """Write and commit one unit; returns the commit record that stands.

    That is the record of whichever attempt committed first: one that comes later writes nothing, or takes back what
    it wrote, as does one that fails.

    Raises:
        OutputError: the outcomes are not the unit's, something cannot be written, or it does not read back.
    """
    commit = directory / COMMITS / f"{unit.id}.json"
    if commit.exists():
        return commit_record(commit)
    ids_digest = _check_outcomes(unit, outcomes)
    tables: dict[tuple[Status, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        tables[outcome.status, outcome.schema or NO_SCHEMA].append(outcome)
    paths = {key: _path(directory, *key, unit.id) for key in sorted(tables)}
    record = {"unit": unit.id, "input": unit.to_json(), "ids_digest": ids_digest, "tally": tally(outcomes).to_json()}
    created = False
    try:
        with writing(f"unit {unit.id} below {directory}"):
            tabled = {key: _table(rows, key[0], plans.get(key[1]), run_id) for key, rows in tables.items()}
        files = [_write_file(tabled[key], directory, *key, path) for key, path in paths.items()]
        with writing(str(commit)):
            _sync_folders(directory, paths.values())
            created = create_exclusively(commit, {**record, "files": files})
        return commit_record(commit)
    finally:
        if not created:
            _take_back(commit, paths.values())


def _check_outcomes(unit: Unit, outcomes: Sequence[Outcome]) -> str:
    """The digest of the outcomes' ids."""
    if len(outcomes) != unit.rows:
        raise OutputError(f"unit {unit.id} has {unit.rows} documents but {len(outcomes)} outcomes; nothing is written.")
    ids_digest = multiset_digest(outcome.document_id for outcome in outcomes)
    if ids_digest != unit.ids_digest:
        raise OutputError(
            f"the ids of unit {unit.id} are not those that the scan found there; nothing of it is written. Did the "
            "input change while the run was under way? Run again to re-read it, and report this if not."
        )
    return ids_digest


def _take_back(commit: Path, paths: Iterable[Path]) -> None:
    """Remove files that no commit record names; those of a failed flush, whose record stands, are kept."""
    named = {file["path"] for file in commit_record(commit)["files"]} if commit.exists() else set()
    for path in paths:
        if not any(str(path).endswith(name) for name in named):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _path(directory: Path, status: str, schema: str, unit: str) -> Path:
    """The name is unique: nothing is ever overwritten."""
    folder = directory / f"status={status}" / f"schema={quote(schema, safe='@')}"
    return folder / f"{unit}-{uuid.uuid4().hex[:12]}.parquet"


def _sync_folders(directory: Path, paths: Iterable[Path]) -> None:
    folders = {path.parent for path in paths}
    for folder in sorted(folders | {folder.parent for folder in folders} | {directory}):
        sync_directory(folder)


def _write_file(table: pa.Table, directory: Path, status: str, schema: str, path: Path) -> dict[str, Any]:
    """Write, flush to disk, read back, and describe one file."""
    import pyarrow.parquet as pq

    with writing(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")
        with path.open("rb") as file:
            os.fsync(file.fileno())
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        back = pq.ParquetFile(path).read(columns=["document_id"])
        size = path.stat().st_size
    if back.column("document_id") != table.column("document_id"):
        raise OutputError(f"{path} does not read back as it was written.")
    return {
        "path": str(path.relative_to(directory)),
        "status": status,
        "schema": schema,
        "rows": table.num_rows,
        "bytes": size,
        "sha256": checksum,
    }


def _table(outcomes: Sequence[Outcome], status: Status, plan: DecodingPlan | None, run_id: str) -> pa.Table:
    import pyarrow as pa

    column = judge_of(plan).column if plan is not None and status != "rejected" else None
    rows = [_row(outcome, column, plan, run_id) for outcome in outcomes]
    return pa.Table.from_pylist(rows, schema=_arrow_schema(status, column))


def _row(outcome: Outcome, column: Column | None, plan: DecodingPlan | None, run_id: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "document_id": storable(outcome.document_id),
        "source": storable(outcome.source),
        "layer": outcome.layer,
        "record_attempt": outcome.record_attempt,
        "problems": [
            {
                "code": p.code,
                "layer": CODES[p.code].layer,
                "pointer": storable(p.pointer),
                "message": storable(p.message),
                "attempt": p.attempt,
            }
            for p in outcome.problems
        ],
        "repairs": [
            {"kind": r.kind, "pointer": storable(r.pointer), "detail": storable(r.detail), "attempt": r.attempt}
            for r in outcome.repairs
        ],
        "attempts": [{**dataclasses.asdict(a), "raw_text": storable(a.raw_text)} for a in outcome.attempts],
        "schema_digest": plan.schema_digest if plan else None,
        "grammar_digest": plan.grammar_digest if plan else None,
        "work_digest": outcome.work_digest,
        "run_id": run_id,
    }
    if column is None:
        row["document_text"] = storable(outcome.document_text)
    else:
        row["record"] = stored(column, outcome.record, all_nullable=outcome.status != "valid")
    return row


def _arrow_schema(status: Status, column: Column | None) -> pa.Schema:
    import pyarrow as pa

    string, int32, int64, double = pa.string(), pa.int32(), pa.int64(), pa.float64()
    problem = pa.struct({"code": string, "layer": string, "pointer": string, "message": string, "attempt": int32})
    repair = pa.struct({"kind": string, "pointer": string, "detail": string, "attempt": int32})
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
            pa.field("record_attempt", int32),
            pa.field("problems", pa.list_(problem)),
            pa.field("repairs", pa.list_(repair)),
            pa.field("attempts", pa.list_(attempt)),
            *(pa.field(name, string) for name in ("schema_digest", "grammar_digest", "work_digest", "run_id")),
        ]
    )


def storable(value: str) -> str:
    """Text that Arrow can hold: half surrogate pairs (in raw model output, say) become their escape, visibly."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
