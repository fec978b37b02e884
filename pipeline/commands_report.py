"""`gristmill report`: its options; and the report that ends `gristmill run`. `cli.py` registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.observe.visible import console_on, visible

RunPath = Annotated[
    str, typer.Argument(help="A run, or an output (its latest run): a directory, or an s3:// URI.", metavar="RUN")
]
Output = Annotated[
    Path | None, typer.Option("--output", help="Write the page to this file, and not beside the run's manifest.")
]
Price = Annotated[
    float | None,
    typer.Option("--price-per-gpu-hour", min=0, help="What a GPU costs for an hour, in your currency: adds the cost."),
]
Documents = Annotated[
    int | None, typer.Option("--documents", min=1, help="About how many documents to read (20,000 if not given).")
]


def run(path: RunPath, *, output: Output = None, price: Price = None, documents: Documents = None) -> None:
    """Write the report of a committed run: one HTML file that opens offline.

    Shows what broke, in which layer and field, with the document that shows it; lengths against the budget, fields,
    clipped mass, the slowest documents, tokens, cost and the run before. `gristmill run` writes it, too, beside the
    manifest. The page holds passages of documents. See docs/report.md.

    Exit codes: 0 written, 2 options, 6 no committed run, or it cannot be read or the page not written.
    """
    from pipeline.report.build import write_report
    from pipeline.runtime.output.browse import MAX_DOCUMENTS

    told = write_report(path, output=output, price=price, most=documents or MAX_DOCUMENTS)
    console_on().print(f"report  {visible(told)}", soft_wrap=True)


def after_run(console: Console, where: str, *, keep: bool) -> None:
    """Write the report of a run that has just been committed, or, with `keep`, one that has none yet. The run's files
    are published already: no fault here is a fault of the run, so it is told and passed over."""
    from pipeline.report.build import write_report

    try:
        console.print(f"report  {visible(write_report(where, keep=keep))}", soft_wrap=True)
    except (Exception, KeyboardInterrupt) as error:
        words = visible(f"{type(error).__name__}: {error}"[:500])
        console.print(f"the run is committed, but its report was not written: {words}", style="yellow", soft_wrap=True)
        console.print(f"Try again: gristmill report {visible(where)}", soft_wrap=True)
