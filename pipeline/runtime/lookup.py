"""Lookup: find rows of a committed run, and the documents that they came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import GristmillError, OutputError
from pipeline.job import InputConfig
from pipeline.runtime.commit import COMMITS, MANIFEST, RUN, read_manifest
from pipeline.runtime.input import Unit, read_unit


def find_run(path: str) -> Path:
    """The run directory that a path means: itself, or the run below it that committed last.

    Raises:
        OutputError: there is no committed run there.
    """
    root = Path(path)
    if (root / MANIFEST).exists():
        return root
    runs = [run for run in root.glob("run=*") if (run / MANIFEST).exists()]
    if not runs:
        unfinished = " There is an unfinished one; run the job again to finish it." if list(root.glob("run=*")) else ""
        raise OutputError(f"no committed run in {path}.{unfinished}")
    return max(runs, key=lambda run: (run / MANIFEST).stat().st_mtime)


def find_rows(
    directory: Path, *, status: str | None, document_id: str | None, layer: int | None, limit: int
) -> Iterator[dict[str, Any]]:
    """Rows of the files that the manifest names, as Python values, with `status`, `schema` and `unit` added."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    manifest = read_manifest(directory)
    assert manifest is not None
    for file in manifest.files:
        if status is not None and file["status"] != status:
            continue
        table = pq.ParquetFile(directory / file["path"]).read()
        for name, wanted in (("document_id", document_id), ("layer", layer)):
            if wanted is not None:
                table = table.filter(pc.equal(table.column(name), wanted))
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


def document_text(directory: Path, row: dict[str, Any]) -> str:
    """The text of a row's document: kept beside rejected rows, read again from the input for the others."""
    if row.get("document_text"):
        return str(row["document_text"])
    commit = json.loads((directory / COMMITS / f"{row['unit']}.json").read_text(encoding="utf-8"))
    read_as = json.loads((directory / RUN).read_text(encoding="utf-8"))["input"]
    try:
        documents = read_unit(Unit.from_json(commit["input"]), InputConfig(**read_as))
    except GristmillError as error:
        return f"(the input can no longer be read: {error})"
    texts = [document.text for document in documents if document.source == row["source"]]
    return texts[0] if texts else "(the input no longer holds this document)"
