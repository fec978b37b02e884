"""`gristmill inspect`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console

from pipeline.observe.visible import console_on, visible
from pipeline.records import STATUSES

LOG_WIDTH = 120


def run(
    path: Annotated[
        str, typer.Argument(help="A run, or an output (its latest run): a directory, or an s3:// URI.", metavar="RUN")
    ],
    status: Annotated[str | None, typer.Option(help=f"Only this status: {', '.join(STATUSES)}.")] = None,
    document_id: Annotated[str | None, typer.Option("--id", help="Only this document.")] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, max=3, help="1 first pass, 2 repaired or retried, 3 salvaged, 0 none.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many documents to show.")] = 3,
) -> None:
    """Show documents with their raw output, record and problems side by side."""
    from pipeline.observe.inspect import panel_of
    from pipeline.runtime.output.lookup import document_text, find_rows, find_run

    if status is not None and status not in STATUSES:
        raise typer.BadParameter(f"{visible(status)} is not one of {', '.join(STATUSES)}", param_hint="--status")
    console = _console()
    run_store = find_run(path)
    shown = 0
    for row in find_rows(run_store, status=status, document_id=document_id, layer=layer, limit=limit):
        console.print(panel_of(row, document_text(run_store, row)))
        shown += 1
    if not shown:
        console.print(f"no document of {visible(run_store.where)} matches.")


def _console() -> Console:
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console
