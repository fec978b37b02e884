"""`gristmill models`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.commands_differential import AsJson, Limit, Output, running, show, typed

Where = Annotated[
    list[str],
    typer.Argument(
        help="A job file, which is run with each --engine; or runs that are there, two at least.",
        metavar="JOB.yaml | RUN...",
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option("--engine", help="An engine config, a name of the job's `engines`, or `main`: the job's own."),
]
Repeats = Annotated[int, typer.Option(min=0, max=10, help="Run each engine so often again, to see what changes.")]
Gold = Annotated[str | None, typer.Option(help="Right records, as for `evaluate`.", metavar="PATH")]
GoldId = Annotated[str, typer.Option("--gold-id", help="The key of the document's id.")]
GoldRecord = Annotated[str, typer.Option("--gold-record", help="The key of the record.")]
Schemas = Annotated[str | None, typer.Option(help="The directory of schemas.", show_default="the job's")]
Price = Annotated[
    float | None, typer.Option("--price-per-gpu-hour", min=0, help="What a GPU costs for an hour, in your currency.")
]
Start = Annotated[
    float, typer.Option("--start-minutes", min=0, help="What an engine takes to start: taken off each run's time.")
]
Documents = Annotated[int, typer.Option(min=1, help="Documents to compare; of more, evenly chosen units of them.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    where: Where,
    *,
    engine: Engines = None,
    limit: Limit = None,
    repeats: Repeats = 1,
    gold: Gold = None,
    gold_id: GoldId = "id",
    gold_record: GoldRecord = "record",
    schemas: Schemas = None,
    price: Price = None,
    start: Start = 0.0,
    documents: Documents = 20_000,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Hold models against each other over the same documents: one table, and which to take by a rule that is told.

    Valid records, completeness, empty values, clipped mass, what changes when the same is run again and in other
    batches, F1 against gold, speed and cost per valid record. The runs lie in `<output>/models`; the same command goes
    on with them, and asks nothing twice. See docs/models.md.

    Exit codes: 0 shown, 2 options, the job file, an engine, 3 gold, 6 runs or the page, and those of `gristmill run`.
    """
    from pipeline.evaluate.gold import GoldConfig
    from pipeline.evaluate.models import Wanted
    from pipeline.evaluate.models_runs import from_job, from_runs
    from pipeline.evaluate.models_shown import as_document, models_sheet

    right = GoldConfig(gold, gold_id, gold_record) if gold is not None else None
    wanted = Wanted(documents, right, price, 60 * start, schemas)
    words = [f"--engine={one}" for one in engine or ()]
    command = typed("models", [*where, *words], limit=limit, repeats=repeats if engine else None, gold=gold)
    if len(where) == 1 and engine:
        job, found = running(command, lambda see: from_job(where[0], engine, limit, repeats, wanted, see))
    elif len(where) > 1 and not engine:
        job, found = from_runs(where, wanted)
    else:
        raise typer.BadParameter("give a job file and engines, or two runs at least", param_hint="JOB.yaml | RUN...")
    show(as_document(found), models_sheet(found, job, command), output, as_json=as_json)
