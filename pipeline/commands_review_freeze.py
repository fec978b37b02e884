"""`gristmill review freeze`: its options, and what is done with them. `cli.py` registers it."""

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

Set = Annotated[Path, typer.Argument(help="A set: a directory, made if it is not there.", metavar="SET")]
Redact = Annotated[
    list[str] | None,
    typer.Option(help="A regular expression: what it finds in documents and answers is hidden. May be given again."),
]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    path: RunPath,
    set_path: Set,
    *,
    status: Status = None,
    code: Codes = None,
    schema: Schema = None,
    documents: Most = 200,
    seed: Seed = 0,
    redact: Redact = None,
    as_json: AsJson = False,
) -> None:
    """Freeze rows of a run with the answers that it kept: the next version of a set that is played without a model.

    Degraded and rejected rows unless `--status` says otherwise. The set holds documents, answers, schemas and what of
    the job decides over them. `gristmill review check SET` plays it. See docs/review.md.

    Exit codes: 0 frozen, 2 options, 3 nothing to freeze, or the set was changed, 6 no committed run, or the set cannot
    be written.
    """
    from pipeline.evaluate.review.freeze import freeze

    chosen = wanted(status or ["degraded", "rejected"], code, schema, documents, seed)
    told = freeze(path, set_path, chosen, redact or ())
    if as_json:
        as_document(asdict(told))
        return
    line(
        f"{told.path}: {told.added} cases of this run ({told.replaced} replace older ones), {told.kept} of the version "
        "before"
    )
    if redact:
        line(f"something was hidden in {told.hidden} of them")
    if told.otherwise:
        line(f"{told.otherwise} come out otherwise than in the run: see `notes` of these cases", "yellow")
    notes(told.notes)
