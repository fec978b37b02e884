"""`gristmill differential`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline import commands_run
from pipeline.commands_run import screen
from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.evaluate.sheet import Sheet

LOG_WIDTH = 180

Where = Annotated[
    list[str],
    typer.Argument(
        help="A job file, which is run in both ways; or two runs that are there: the constrained one, then the free.",
        metavar="JOB.yaml | CONSTRAINED FREE",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Of a job: the first so many documents only.")]
Orders = Annotated[
    int,
    typer.Option(min=0, max=20, help="Of a job: also run it under so many other orders of each enum's members."),
]
Schemas = Annotated[str | None, typer.Option(help="Of two runs: the directory of schemas.", show_default="the job's")]
Documents = Annotated[int, typer.Option(min=1, help="Documents to compare; of more, evenly chosen units of them.")]
Output = Annotated[Path | None, typer.Option("--output", help="Write a page (HTML) that opens offline to this file.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, and nothing else there.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    where: Where,
    *,
    limit: Limit = None,
    orders: Orders = 0,
    schemas: Schemas = None,
    documents: Documents = 20_000,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Run the same documents with the constraint and without it, the prompt being the same, and show what it buys.

    Format, completeness, agreement of the content by field, clipped mass where audited, tokens and time, each with an
    interval; documents by what became of them, with examples; with --orders, what the order of choices changes. The
    runs lie in `<output>/differential`; the same command goes on with them, and asks nothing twice. See
    docs/differential.md.

    Exit codes: 0 shown, 2 options or the job file, 6 a run cannot be read or the page not written, and those of
    `gristmill run`.
    """
    from pipeline.evaluate.differential_runs import from_job, from_runs
    from pipeline.evaluate.differential_shown import as_document, differential_sheet, order_section

    command, order = typed("differential", where, limit=limit, orders=orders or None), None
    if len(where) == 1:
        job, found, order = running(command, lambda see: from_job(where[0], limit, documents, see, orders))
    elif len(where) == 2 and not orders:
        job, found = from_runs((where[0], where[1]), schemas, documents)
    else:
        raise typer.BadParameter(
            "give a job file, or two runs without --orders", param_hint="JOB.yaml | CONSTRAINED FREE"
        )
    sheet = differential_sheet(found, job, command, [order_section(order)] if order else [])
    show({**as_document(found), "order": dataclasses.asdict(order) if order else None}, sheet, output, as_json=as_json)


def typed(name: str, where: list[str], **options: object) -> str:
    """The command that makes an experiment again, with the options that decide what is run; None: it was not given."""
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items() if value is not None]
    return shlex.join(["gristmill", name, *where, *flags])


def running(command: str, work: Callable[[Any], Any]) -> Any:
    """Do what runs jobs, with a console on stderr that follows them; Ctrl-C and SIGTERM end it as they end
    `gristmill run`."""
    from pipeline.observe.metrics.server import serving

    console = screen(stderr=True)
    watcher = commands_run.Watcher(console)
    signal.signal(signal.SIGTERM, commands_run.terminate)
    try:
        with serving(None, watcher.say) as watcher.metrics, watcher.reporter.live():
            return work(watcher)
    except KeyboardInterrupt as signalled:
        raise typer.Exit(commands_run.interrupted(console, command, "the job's output", signalled)) from None


def show(document: dict[str, Any], sheet: Sheet, output: Path | None, *, as_json: bool) -> None:
    """Show an experiment: as tables or JSON, and as a page if one is asked for."""
    from pipeline.evaluate.sheet import rendered, write_sheet

    if output is not None:
        write_sheet(sheet, output)
    if as_json:
        # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(document, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
        return
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for part in rendered(sheet):
        console.print(part)
    if output is not None:
        console.print(f"page  {visible(os.fspath(output))}", soft_wrap=True)
