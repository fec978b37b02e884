"""Write: the outcomes of one unit become Parquet files, one per status and schema, and one commit record.

Columns (`tables.py`) come from the schema, never from the values, so every file of a table has the same Arrow schema.
`status` and `schema` are in the path (hive partitioning) and not in the file, so that plain readers see each once.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.errors import OutputError
from pipeline.observe.tally import tally
from pipeline.records import Outcome
from pipeline.runtime.input import Unit
from pipeline.runtime.output.commit import MANIFEST
from pipeline.runtime.output.gather import commit_key, commit_record, find_record, packed
from pipeline.runtime.output.parquet import parquet_from, parquet_of
from pipeline.runtime.output.run_record import reading
from pipeline.runtime.output.tables import Key, tables_of
from pipeline.runtime.store import Store, publish, writing
from pipeline.schema.fingerprint import digest, multiset_digest
from pipeline.schema.plan import DecodingPlan

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FOLDER = 200
"""Bytes of a folder's name; most disks take 255."""

DUPLICATE = "duplicate_id"
_HALF_A_BYTE = re.compile("%.?$")


def write_unit(
    unit: Unit, outcomes: Sequence[Outcome], plans: Mapping[str, DecodingPlan], store: Store, run_id: str
) -> dict[str, Any]:
    """Write and commit one unit; returns the commit record that stands.

    That is the record of whichever attempt committed first: one that comes later writes nothing, or takes back what
    it wrote, as does one that fails before it tries to commit.

    Raises:
        OutputError: the outcomes are not the unit's, something cannot be written, or it does not read back.
        OutcomeUnknownError: nobody can tell whether the unit is committed. Its files are left: a rerun finds out.
    """
    if (standing := find_record(store, unit.id)) is not None:
        return standing
    ids_digest = _check_outcomes(unit, outcomes)
    _check_open(unit, store)
    with writing(what := f"unit {unit.id} below {store.where}"):
        written, tables = tables_of(outcomes, plans, run_id)
    attempt = uuid.uuid4().hex
    paths = {key: _path(*key, unit.id, attempt) for key in tables}
    try:
        files = [_write_file(table, store, key, paths[key]) for key, table in tables.items()]
    except BaseException as error:
        _take_back(store, paths.values())
        # Who commits the run sweeps what no record names, also what we are writing just then.
        if isinstance(error, OutputError) and (standing := find_record(store, unit.id)) is not None:
            return standing
        raise
    record = {
        "unit": unit.id,
        "attempt": attempt,
        "input": unit.to_json(),
        "ids_digest": ids_digest,
        "tally": tally(written, plans).to_json(),
        "files": files,
        "digests": {paths[key]: packed(_digests(table)) for key, table in tables.items() if key[0] != "rejected"},
    }
    with writing(what):
        published = publish(store, commit_key(unit.id), record)
    return record if published else _yield_to(unit, store, paths.values())


def _yield_to(unit: Unit, store: Store, paths: Iterable[str]) -> dict[str, Any]:
    """The record of who was first, before which our files go."""
    standing = commit_record(store, unit.id)
    named = {file["path"] for file in standing["files"]}
    _take_back(store, (path for path in paths if path not in named))
    return standing


def _check_outcomes(unit: Unit, outcomes: Sequence[Outcome]) -> str:
    """The digest of the outcomes' ids."""
    if len(outcomes) != unit.rows:
        raise OutputError(f"unit {unit.id} has {unit.rows} documents but {len(outcomes)} outcomes; nothing is written.")
    repeated = {row for row, one in enumerate(outcomes) if any(p.code == DUPLICATE for p in one.problems)}
    if repeated != set(unit.duplicates):
        raise OutputError(
            f"unit {unit.id}: rows {sorted(repeated ^ set(unit.duplicates))[:5]} repeat an id by the scan or by their "
            "outcomes, not by both; nothing of it is written. Please report this."
        )
    ids_digest = multiset_digest(outcome.document_id for outcome in outcomes)
    if ids_digest != unit.ids_digest:
        raise OutputError(
            f"the ids of unit {unit.id} are not those that the scan found there; nothing of it is written. Did the "
            "input change while the run was under way? Run again to re-read it, and report this if not."
        )
    return ids_digest


def _check_open(unit: Unit, store: Store) -> None:
    """Of a committed run all units are committed: who finds one that is not is of another time or another input."""
    with reading(store.where):
        if store.size(MANIFEST) is not None:
            raise OutputError(f"{store.where} is committed without unit {unit.id}; nothing of the unit is written.")


def _take_back(store: Store, paths: Iterable[str]) -> None:
    """Remove files of this attempt, which no commit record names. What cannot be removed now is swept later."""
    for path in paths:
        with contextlib.suppress(OSError):
            store.delete(path)


def _path(status: str, schema: str, unit: str, attempt: str) -> str:
    """The name is unique: nothing is ever overwritten."""
    return f"status={status}/schema={_folder(schema)}/{unit}-{attempt[:12]}.parquet"


def _folder(schema: str) -> str:
    """A schema's name as disks can hold it. Rows may name schemas that there are not, at any length; the manifest has
    the name as it is."""
    name = quote(schema, safe="@")
    if len(name) <= MAX_FOLDER:
        return name
    return f"{_HALF_A_BYTE.sub('', name[: MAX_FOLDER - 17])}-{digest(schema)[:16]}"


def _write_file(table: pa.Table, store: Store, key: Key, path: str) -> dict[str, Any]:
    """Write, read back, and describe one file."""
    status, schema = key
    with writing(f"{store.where}/{path}"):
        content = parquet_from(table)
        store.put(path, content)
        back = store.get(path)
        if back != content or parquet_of(back, ["document_id"]).column(0) != table.column("document_id"):
            raise OutputError(f"{store.where}/{path} does not read back as it was written.")
    return {
        "path": path,
        "status": status,
        "schema": schema,
        "rows": table.num_rows,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _digests(table: pa.Table) -> list[str | None]:
    digests: list[str | None] = table.column("record_digest").to_pylist()
    return digests
