"""Lookup: find rows of a committed run, and the documents that they came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import GristmillError, InputError, OutputError
from pipeline.job import InputConfig
from pipeline.observe.inspect import NO_DOCUMENT
from pipeline.records import Document
from pipeline.runtime.commit import COMMITS, MANIFEST, read_manifest
from pipeline.runtime.input import Unit, read_unit
from pipeline.runtime.run_record import RUN
from pipeline.runtime.tables import storable

if TYPE_CHECKING:
    import pyarrow as pa


def find_run(path: str) -> Path:
    """The run directory that a path means: itself, or the run below it that committed last.

    Raises:
        OutputError: there is no committed run there.
    """
    root = Path(path)
    try:
        if (root / MANIFEST).exists():
            return root
        if (root / RUN).exists():
            raise OutputError(f"{path} is an unfinished run; run the job again to finish it.")
        below = list(root.glob("run=*"))
        runs = [run for run in below if (run / MANIFEST).exists()]
    except OSError as error:
        raise OutputError(f"cannot look into {path}: {error.strerror}.") from error
    if not runs:
        unfinished = " There is an unfinished one; run the job again to finish it." if below else ""
        raise OutputError(f"no committed run in {path}.{unfinished}")
    return max(runs, key=lambda run: (run / MANIFEST).stat().st_mtime)


def find_rows(
    directory: Path, *, status: str | None, document_id: str | None, layer: int | None, limit: int
) -> Iterator[dict[str, Any]]:
    """Rows of the files that the manifest names, as Python values, with `status`, `schema` and `unit` added."""
    import pyarrow.compute as pc

    manifest = read_manifest(directory)
    assert manifest is not None
    wanted = {"document_id": None if document_id is None else storable(document_id), "layer": layer}
    for file in manifest.files:
        if status is not None and file["status"] != status:
            continue
        table = _read(directory / file["path"])
        for name, value in wanted.items():
            if value is not None:
                table = table.filter(pc.equal(table.column(name), value))
        for row in table.slice(0, limit).to_pylist():
            limit -= 1
            yield {
                **row,
                "status": file["status"],
                "schema": file["schema"],
                "unit": Path(file["path"]).name.split("-")[0],
            }
        if limit <= 0:
            return


def _read(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot read {path}, which the manifest names: {error}") from error


def find_document(directory: Path, row: dict[str, Any]) -> Document:
    """A row's document with its columns, read again from the input.

    Raises:
        GristmillError: what the run says of its input cannot be read, or the input is gone or changed.
    """
    try:
        commit = json.loads((directory / COMMITS / f"{row['unit']}.json").read_text(encoding="utf-8"))
        read_as = InputConfig(**json.loads((directory / RUN).read_text(encoding="utf-8"))["input"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"what the run says of its input cannot be read: {error!r}") from error
    try:
        documents = read_unit(Unit.from_json(commit["input"]), read_as)
    except GristmillError as error:
        keys = " Its URI is kept without credentials: give them in the environment." if "://" in read_as.path else ""
        raise InputError(f"the input can no longer be read: {error}{keys}") from error
    for document in documents:
        if storable(document.source) == row["source"]:
            return document
    raise InputError("the input no longer holds it")


def document_text(directory: Path, row: dict[str, Any]) -> str:
    """The text of a row's document: kept beside rejected rows, read again from the input for the others."""
    if row.get("document_text"):
        return str(row["document_text"])
    try:
        return find_document(directory, row).text
    except GristmillError as error:
        return f"{NO_DOCUMENT}{error})"
