"""Export: rows of a run, with their documents, as a file that a person edits."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import GristmillError, InputError
from pipeline.evaluate.review.begun import begun
from pipeline.evaluate.review.choose import Wanted, choose
from pipeline.evaluate.review.entry import Entry, sealed
from pipeline.evaluate.review.sheet import check_suffix, write_sheet
from pipeline.runtime.output.browse import Browsed, browse
from pipeline.runtime.output.recall import Recalled, recall_rows
from pipeline.runtime.output.run_record import recorded_job
from pipeline.runtime.output.tables import NO_SCHEMA
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import load_schema

MAX_LINES = 20
"""Problems of a document that are shown."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds: `written` of `matched` rows. `notes` say what is not in it, and why."""

    path: str
    run: str
    written: int
    matched: int
    notes: tuple[str, ...]


def export(run_path: str, out: Path, wanted: Wanted, schemas: str | None = None) -> Exported:
    """Write the rows that are wanted to a file for a person. `schemas` is where schemas lie, if not where the run's job
    had them.

    Raises:
        OutputError: no committed run, or the file is there already or cannot be written.
        InputError: nothing is to be reviewed, or the file is of no known kind.
    """
    check_suffix(out)
    run = browse(run_path, sys.maxsize)
    chosen = choose(run.rows(), wanted)
    notes = []
    if chosen.repeated:
        notes.append(f"{chosen.repeated} rows repeat an id that another document has: they are left out")
    if chosen.matched - chosen.repeated > len(chosen.rows):
        notes.append(f"{chosen.matched} rows match; {len(chosen.rows)} were picked by seed {wanted.seed}")
    entries = _entries(run, chosen.rows, _bodies(run, schemas, notes), notes)
    if not entries:
        raise InputError("; ".join([f"{run.store.where}: no row that is asked for can be reviewed", *notes]) + ".")
    left = write_sheet(out, entries)
    if left:
        names = ", ".join(repr(entry.key["id"]) for entry in left[:3])
        notes.append(f"{len(left)} rows do not fit a spreadsheet's cells ({names}): export them to .jsonl")
    return Exported(str(out), run.store.where, len(entries) - len(left), chosen.matched, tuple(notes))


def _bodies(run: Browsed, schemas: str | None, notes: list[str]) -> Mapping[str, Mapping[str, Any]]:
    """The schemas by name that are still to be had, with a note of those that are not."""
    found = {}
    for name in run.manifest.schemas:
        try:
            root = schemas or recorded_job(run.store)[0].schemas
            found[name] = load_schema(root, name).body
        except GristmillError as error:
            notes.append(f"records of {name} are shown as they are stored, without its schema: {error}")
    return found


def _entries(
    run: Browsed, rows: Sequence[dict[str, Any]], bodies: Mapping[str, Mapping[str, Any]], notes: list[str]
) -> list[Entry]:
    named = [row for row in rows if row["schema"] != NO_SCHEMA]
    if len(named) < len(rows):
        notes.append(f"{len(rows) - len(named)} documents name no schema, so no record can be right: they are left out")
    recalled = list(zip(named, recall_rows(run.store, named), strict=True))
    there = [(row, found) for row, found in recalled if isinstance(found, Recalled)]
    if gone := [found for _, found in recalled if not isinstance(found, Recalled)]:
        notes.append(f"{len(gone)} documents are gone, such as: {gone[0]}")
    name, entries = uuid.uuid4().hex[:12], []
    for number, (row, found) in enumerate(there, 1):
        record = begun(row, bodies.get(row["schema"]))
        key = {
            "export": name,
            "row": number,
            "of": len(there),
            "run": run.manifest.run_id,
            "id": row["document_id"],
            "source": row["source"],
            "schema": row["schema"],
            "schema_digest": run.manifest.schemas.get(row["schema"], ""),
            "text_digest": digest(found.document.text),
            "record": record,
        }
        entries.append(Entry(sealed(key), row["status"], _problems(row), found.document.text, record))
    return entries


def _problems(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The problems of the attempt that counts and of reading, one line each."""
    counts = row.get("record_attempt") or max((one["number"] for one in row["attempts"]), default=0)
    told = [one for one in row["problems"] if one["attempt"] in (0, counts)]
    lines = [f"{one['code']} at {one['pointer'] or '/'}: {' '.join(one['message'].split())}" for one in told]
    return (*lines[:MAX_LINES], *([f"and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []))
