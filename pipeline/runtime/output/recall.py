"""Recall: what a committed run kept of one document, and what has changed since."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from pipeline.errors import GristmillError, InputError, OutputError
from pipeline.job import JobConfig
from pipeline.observe.visible import visible_id
from pipeline.records import Document, Outcome, Problem
from pipeline.runtime.input import InputScan, read_unit
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.output.lookup import find_rows, input_of
from pipeline.runtime.output.run_record import RUN, read_run_record
from pipeline.runtime.output.tables import NO_SCHEMA, storable, tables_of
from pipeline.runtime.store import Store
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES

_TIMES = {"seconds", "queue_seconds", "cached_tokens", "engine", "plan_digest"}
"""Of an attempt: what differs from one run to the next and makes no other answer."""
_OTHER_COLUMNS = {"run_id", "source", "unit", "schema", "document_text", "schema_digest", "grammar_digest"} | {
    "audit",
    "clipped",
}
"""What is told elsewhere, or belongs to the run and not to the document."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A row of a run with its document. `notes` are what a reader must know about how good the memory is."""

    row: Mapping[str, Any]
    document: Document
    notes: tuple[str, ...]


def recall(store: Store, document_id: str) -> Recalled:
    """The row of a document and the document itself: read again from the input, or as far as the row has it.

    Raises:
        InputError: the run holds no such document, or its text is kept nowhere.
        OutputError: the run's files cannot be read.
    """
    row, rows = None, 0
    for one in find_rows(store, status=None, document_id=document_id, layer=None, limit=sys.maxsize):
        rows += 1
        row = one if row is None or (_repeats(row) and not _repeats(one)) else row
    if row is None:
        raise InputError(
            f"{store.where} holds no document with the id {visible_id(document_id)}. `gristmill inspect {store.where}` "
            "shows some; ids are compared as they are written."
        )
    notes = [f"{rows} rows have this id; the one that was extracted is replayed"] if rows > 1 else []
    document = _found(_read_again(store, row["unit"], notes), row, notes) or _as_kept(row, notes)
    return Recalled(row, document, tuple(notes))


def recall_rows(store: Store, rows: Sequence[Mapping[str, Any]]) -> Iterator[Recalled | InputError]:
    """Rows of a run with their documents, in the order given; each unit of the input is read once if its rows stand
    together. Of a document whose text is kept nowhere, the error that says so."""
    unit: str | None = None
    documents: list[Document] | None = None
    told: list[str] = []
    for row in rows:
        if row["unit"] != unit:
            told = []
            unit, documents = row["unit"], _read_again(store, row["unit"], told)
        notes = [*told]
        try:
            yield Recalled(row, _found(documents, row, notes) or _as_kept(row, notes), tuple(notes))
        except InputError as error:
            yield error


def _repeats(row: Mapping[str, Any]) -> bool:
    return any(problem["code"] == "duplicate_id" for problem in row["problems"])


def _read_again(store: Store, unit: str, notes: list[str]) -> list[Document] | None:
    """The documents of a unit; None, and a note why, if its input cannot be read."""
    try:
        return read_unit(*input_of(store, unit))
    except GristmillError as error:
        notes.append(f"the input cannot be read as the run read it: {error}")
        return None


def _found(documents: Sequence[Document] | None, row: Mapping[str, Any], notes: list[str]) -> Document | None:
    if documents is None:
        return None
    found = [document for document in documents if storable(document.source) == row["source"]]
    if not found:
        notes.append("the input no longer holds this document")
    return found[0] if found else None


def _as_kept(row: Mapping[str, Any], notes: list[str]) -> Document:
    """The document as its row has it: only rejected rows keep the text.

    Raises:
        InputError: the row does not keep it.
    """
    text = row.get("document_text")
    if text is None:
        raise InputError(f"the text of {visible_id(row['document_id'])} is not kept in the run, and {notes[-1]}.")
    notes.append("the text is the one that the run kept; columns for business rules are not kept")
    read = [p for p in row["problems"] if not p["attempt"] and CODES[p["code"]].layer == "read"]
    problems = tuple(Problem(p["code"], p["pointer"], p["message"]) for p in read)
    schema = "" if row["schema"] == NO_SCHEMA else row["schema"]
    return Document(row["document_id"], text, row["source"], schema, problems)


def changes(store: Store, job: JobConfig, plan: DecodingPlan, lookups: Digests) -> Iterator[str]:
    """What decides over this document and is no longer as it was when the run was made, one phrase for each."""
    run = read_run_record(store) or {}
    plans = {plan.name: plan} if plan.name else {}
    nowhere = InputScan((), 0, "", "", {}, 0, ())
    work = json.loads(json.dumps(dict(identity_of(job, nowhere, plans, lookups).work)))
    before = run.get("work")
    if not isinstance(before, dict):
        yield f"{store.where}/{RUN} does not say what the run was made of"
        return
    ours = {name: value for name, value in before.items() if _is_of(name, plan.name)}
    for name in sorted({*work, *ours}):
        if work.get(name) != ours.get(name):
            yield f"{name}: {_short(ours.get(name))} in the run, {_short(work.get(name))} now"
    manifest = read_manifest(store)
    for package, then in (manifest.versions if manifest else {}).items():
        now = _version(package)
        if now != then:
            yield f"{package}: {then} in the run, {now or 'not installed'} now"


def _is_of(name: str, schema: str) -> bool:
    prefixes = ("schema ", "prompt of ", "grammar of ")
    return not name.startswith(prefixes) or name in {prefix + schema for prefix in prefixes}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def differences(
    row: Mapping[str, Any], outcome: Outcome, plan: DecodingPlan, *, without: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    """The row that an outcome would be written as, and where the committed one differs: column → (committed, now).

    `without` names members that cannot be the same, of the row and of what its lists hold.

    Raises:
        OutputError: this version could not write the outcome.
    """
    import pyarrow as pa

    plans = {plan.name: plan} if plan.name else {}
    try:
        (written,), tables = tables_of([outcome], plans, str(row.get("run_id", "")))
    except pa.ArrowException as error:
        raise OutputError(f"the outcome cannot be written: {error}. Please report it.") from error
    (table,) = (table for table in tables.values() if table.num_rows)
    now = {**table.to_pylist()[0], "status": written.status}
    left_out = _TIMES | set(without)
    found = {}
    for name in now.keys() & row.keys() - _OTHER_COLUMNS - left_out:
        pair = _bare(row[name], now[name], left_out), _bare(now[name], row[name], left_out)
        if pair[0] != pair[1]:
            found[name] = pair
    return now, dict(sorted(found.items()))


def _bare(value: Any, other: Any, left_out: set[str]) -> Any:
    """A column's value without the members that are not compared, or that rows of the other version have not."""
    if not isinstance(value, list) or not isinstance(other, list):
        return value
    known = {name for item in other if isinstance(item, dict) for name in item} or None
    return [
        {name: child for name, child in item.items() if name not in left_out and (known is None or name in known)}
        if isinstance(item, dict)
        else item
        for item in value
    ]
