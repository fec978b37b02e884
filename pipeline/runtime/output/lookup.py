"""Lookup: find rows of a committed run, and the documents that they came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import GristmillError, InputError, OutputError
from pipeline.job import InputConfig
from pipeline.observe.inspect import NO_DOCUMENT
from pipeline.records import Document, Manifest
from pipeline.runtime.input import Unit, read_unit
from pipeline.runtime.output.commit import MANIFEST, read_manifest
from pipeline.runtime.output.gather import commit_record, unit_of
from pipeline.runtime.output.parquet import read_parquet
from pipeline.runtime.output.run_record import RUN, read_run_record, reading, runs_of
from pipeline.runtime.output.tables import storable
from pipeline.runtime.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa


def find_run(path: str) -> Store:
    """The run that a path or an s3:// URI means: itself, or the run below it that committed last.

    Raises:
        OutputError: there is no committed run there.
    """
    root = open_store(path)
    with reading(path):
        if root.size(MANIFEST) is not None:
            return root
        if root.size(RUN) is not None:
            raise OutputError(f"{path} is an unfinished run; run the job again to finish it.")
        below = runs_of(root)
        runs = [run for run in below if run.size(MANIFEST) is not None]
    if not runs:
        unfinished = " There is an unfinished one; run the job again to finish it." if below else ""
        raise OutputError(f"no committed run in {path}.{unfinished}")
    return max(runs, key=_committed) if len(runs) > 1 else runs[0]


def _committed(run: Store) -> tuple[str, str]:
    """When a run was committed; when it was begun decides between equals."""
    manifest = read_manifest(run)
    return (manifest.committed, manifest.started) if manifest else ("", "")


def previous_run(run: Store) -> Store | None:
    """The run of the same job in the same output that was committed last before this one; None if there is none, or if
    the run does not lie in an output.

    Raises:
        OutputError: the output, or a manifest in it, cannot be read.
    """
    place = run.where if "://" in run.where else os.path.abspath(run.where)
    output, _, name = place.rstrip("/").rpartition("/")
    mine = read_manifest(run)
    if mine is None or not output or not name.startswith("run="):
        return None
    return _last(open_store(output), mine.job, before=mine)


def last_committed(output: Store, job: str) -> Store | None:
    """The run of a job in its output that was committed last, None if there is none.

    Raises:
        OutputError: the output, or a manifest in it, cannot be read.
    """
    return _last(output, job)


def _last(output: Store, job: str, before: Manifest | None = None) -> Store | None:
    found = []
    for run in runs_of(output):
        manifest = read_manifest(run)
        if manifest is None or manifest.job != job or (before and manifest.run_id == before.run_id):
            continue
        when = (manifest.committed, manifest.started)
        if before is None or when <= (before.committed, before.started):
            found.append((when, manifest.run_id, run))
    return max(found, key=lambda one: one[:2])[2] if found else None


def find_rows(
    store: Store, *, status: str | None, document_id: str | None, layer: int | None, limit: int
) -> Iterator[dict[str, Any]]:
    """Rows of the files that the manifest names, as Python values, with `status`, `schema` and `unit` added."""
    import pyarrow.compute as pc

    manifest = read_manifest(store)
    assert manifest is not None
    wanted = {"document_id": None if document_id is None else storable(document_id), "layer": layer}
    for file in manifest.files:
        if status is not None and file["status"] != status:
            continue
        table = read_named(store, file["path"])
        for name, value in wanted.items():
            if value is not None:
                table = table.filter(pc.equal(table.column(name), value))
        for row in table.slice(0, limit).to_pylist():
            limit -= 1
            yield {**row, "status": file["status"], "schema": file["schema"], "unit": unit_of(file["path"])}
        if limit <= 0:
            return


def read_named(store: Store, key: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A file that the manifest names, or those of the named columns that it has.

    Raises:
        OutputError: it cannot be read.
    """
    import pyarrow as pa

    try:
        return read_parquet(store, key, columns)
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot read {store.where}/{key}, which the manifest names: {error}") from error


def find_document(store: Store, row: dict[str, Any]) -> Document:
    """A row's document with its columns, read again from the input.

    Raises:
        GristmillError: what the run says of its input cannot be read, or the input is gone or changed.
    """
    unit, read_as = input_of(store, row["unit"])
    try:
        documents = read_unit(unit, read_as)
    except GristmillError as error:
        keys = " Its URI is kept without credentials: give them in the environment." if "://" in read_as.path else ""
        raise InputError(f"the input can no longer be read: {error}{keys}") from error
    for document in documents:
        if storable(document.source) == row["source"]:
            return document
    raise InputError("the input no longer holds it")


def input_of(store: Store, unit: str) -> tuple[Unit, InputConfig]:
    """A unit of a run, and how the run reads its input.

    Raises:
        GristmillError: what the run says of them cannot be read.
    """
    try:
        return Unit.from_json(commit_record(store, unit)["input"]), InputConfig(
            **(read_run_record(store) or {})["input"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise OutputError(f"what the run says of its input cannot be read: {error!r}") from error


def document_text(store: Store, row: dict[str, Any]) -> str:
    """The text of a row's document: kept beside rejected rows, read again from the input for the others."""
    if row.get("document_text"):
        return str(row["document_text"])
    try:
        return find_document(store, row).text
    except GristmillError as error:
        return f"{NO_DOCUMENT}{error})"
