"""`gristmill replay`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, get_args

import typer

from pipeline.observe.visible import console_on, visible

LOG_WIDTH = 120
DIFFERENT = 9

RunPath = Annotated[
    str, typer.Argument(help="A run, or an output (its latest run): a directory, or an s3:// URI.", metavar="RUN")
]
Id = Annotated[str, typer.Option("--id", help="The document.")]
EngineOption = Annotated[
    str,
    typer.Option("--engine", help="main: the job's engine. recorded: the answers that the run kept, without a model."),
]
Job = Annotated[Path | None, typer.Option("--job", help="Take this job file, and not the job that the run kept.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/replay.md lists its keys.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 where the outcome differs from the committed one.")]


def run(
    path: RunPath,
    *,
    document_id: Id,
    engine: EngineOption = "main",
    job_path: Job = None,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """Extract one document of a committed run again, with every step shown.

    Shows what each step made of the document, where in its grammar an answer stopped or broke and which tokens were
    allowed there, and whether the outcome equals the committed one. Nothing is written. **`--engine recorded`** needs
    no model: it plays the answers that the run kept, for bug reports. See docs/replay.md.

    Exit codes: 0 replayed, 2 options or job file, 3 no such document or its text is gone, 4 schema, 5 engine, 6 no
    committed run, 8 memory; with --strict 9: the outcome differs.
    """
    from pipeline.observe.replayed import rendered
    from pipeline.replay import Which, replay

    if engine not in get_args(Which):
        raise typer.BadParameter(f"{visible(engine)} is not one of {', '.join(get_args(Which))}", param_hint="--engine")
    document = replay(path, document_id, which="recorded" if engine == "recorded" else "main", job_path=job_path)
    if as_json:
        # ASCII, so that no character of a document acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(document, indent=1, ensure_ascii=True, default=str).replace("\x7f", "\\u007f"))
    else:
        console = console_on()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = LOG_WIDTH
        for part in rendered(document):
            console.print(part)
    raise typer.Exit(DIFFERENT if strict and not document["equal"] else 0)
