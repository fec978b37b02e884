"""Write: the outcomes of one unit become Parquet files, one per status and schema, and one commit record.

Columns (`tables.py`) come from the schema, never from the values, so every file of a table has the same Arrow schema.
`status` and `schema` are in the path (hive partitioning) and not in the file, so that plain readers see each once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.errors import OutputError
from pipeline.observe.tally import tally
from pipeline.records import Outcome
from pipeline.runtime.commit import COMMITS, commit_record
from pipeline.runtime.durable import create_exclusively, sync_directory, writing
from pipeline.runtime.input import Unit
from pipeline.runtime.tables import tables_of
from pipeline.schema.fingerprint import multiset_digest
from pipeline.schema.plan import DecodingPlan

if TYPE_CHECKING:
    import pyarrow as pa


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
    with writing(f"unit {unit.id} below {directory}"):
        written, tables = tables_of(outcomes, plans, run_id)
    record = {"unit": unit.id, "input": unit.to_json(), "ids_digest": ids_digest, "tally": tally(written).to_json()}
    paths = {key: _path(directory, *key, unit.id) for key in tables}
    created = False
    try:
        files = [_write_file(tables[key], directory, *key, path) for key, path in paths.items()]
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
