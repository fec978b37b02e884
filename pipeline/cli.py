"""The command line: its commands, and how errors are told."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table

from pipeline import (
    __version__,
    commands,
    commands_canary,
    commands_compare,
    commands_differential,
    commands_drift,
    commands_evaluate,
    commands_in_force,
    commands_inject,
    commands_models,
    commands_plan,
    commands_probe,
    commands_render,
    commands_replay,
    commands_report,
    commands_review,
    commands_review_export,
    commands_review_freeze,
    commands_run,
    commands_submit,
    commands_submitted,
)
from pipeline.commands_run import screen
from pipeline.errors import GristmillError
from pipeline.observe.visible import cell, visible
from pipeline.records import STATUSES

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="**Gristmill** turns piles of documents into typed records: constrained decoding, honest validation, "
    "exactly-once Parquet.\n\nTry `gristmill run jobs/demo.yaml` (or `make demo`), then "
    "`gristmill inspect jobs/.out/demo --status degraded`.",
)

app.command("run")(commands_run.run)


@app.command()
def inspect(
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
    console = screen()
    run_store = find_run(path)
    shown = 0
    for row in find_rows(run_store, status=status, document_id=document_id, layer=layer, limit=limit):
        console.print(panel_of(row, document_text(run_store, row)))
        shown += 1
    if not shown:
        console.print(f"no document of {visible(run_store.where)} matches.")


app.command("check")(commands.run)
app.command("plan")(commands_plan.run)
app.command("replay")(commands_replay.run)
app.command("probe")(commands_probe.run)
review = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
review.command("export")(commands_review_export.run)
review.command("import")(commands_review.import_)
review.command("freeze")(commands_review_freeze.run)
review.command("check")(commands_review.check)
app.add_typer(review, name="review", help="Have a person correct records; freeze documents and replay them.")
app.command("inject")(commands_inject.run)
app.command("in-force")(commands_in_force.run)
app.command("report")(commands_report.run)
app.command("canary")(commands_canary.run)
app.command("render")(commands_render.run)
app.command("drift")(commands_drift.run)
app.command("compare")(commands_compare.run)
app.command("differential")(commands_differential.run)
app.command("evaluate")(commands_evaluate.run)
app.command("models")(commands_models.run)
app.command("submit")(commands_submit.run)
app.command("status")(commands_submitted.status)
app.command("cancel")(commands_submitted.cancel)


@app.command()
def engines() -> None:
    """Show which engines this environment can run, and what is missing for the others."""
    from pipeline.engines.installed import survey

    table = Table("engine", "usable", "what", title=f"gristmill {__version__}", title_justify="left")
    for line in survey():
        table.add_row(cell(line.engine), "yes" if line.usable else "no", cell(line.what))
    screen().print(table)


def main() -> None:
    """Entry point: errors that say what to do are printed without a traceback, with their own exit code."""
    try:
        app()
    except GristmillError as error:
        screen(stderr=True).print(f"error: {visible(str(error))}", style="red", soft_wrap=True)
        sys.exit(error.exit_code)
