"""`gristmill review export`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands_review import (
    AsJson,
    Codes,
    Most,
    RunPath,
    Schema,
    Seed,
    Status,
    as_document,
    line,
    notes,
    wanted,
)

Out = Annotated[Path, typer.Argument(help="A new file: .csv for a spreadsheet, or .jsonl.", metavar="OUT")]
Root = Annotated[str | None, typer.Option("--schemas", help="Where schemas lie, if not where the run had them.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    path: RunPath,
    out: Out,
    *,
    status: Status = None,
    code: Codes = None,
    schema: Schema = None,
    documents: Most = 200,
    seed: Seed = 0,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Write rows of a run to a file in which a person corrects their records.

    Degraded rows unless `--status` says otherwise. The file holds the documents as they are. See docs/review.md.

    Exit codes: 0 written, 2 options, 3 nothing to review, 6 no committed run, or the file is there already.
    """
    from pipeline.evaluate.review.export import export

    told = export(path, out, wanted(status or ["degraded"], code, schema, documents, seed), root)
    if as_json:
        as_document(asdict(told))
        return
    line(f"{told.written} of {told.matched} rows of {told.run} are in {told.path}")
    line(f"Edit `record`, write `ok` as verdict, then: gristmill review import {told.path} --gold GOLD.jsonl")
    notes(told.notes)
