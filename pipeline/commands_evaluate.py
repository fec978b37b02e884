"""`gristmill evaluate`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import OutputError
from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.evaluate.build import Evaluation
    from pipeline.evaluate.limits import Held

LOG_WIDTH = 160
NOT_KEPT = 9

RunPath = Annotated[
    str,
    typer.Argument(
        help="A run, an output (its latest run), or a job file (that job's latest run): a path, or an s3:// URI.",
        metavar="RUN|JOB.yaml",
    ),
]
Gold = Annotated[str, typer.Option(help="The right records: JSONL or Parquet, one document a row.", metavar="PATH")]
GoldId = Annotated[str, typer.Option("--gold-id", help="The key of the document's id.")]
GoldRecord = Annotated[str, typer.Option("--gold-record", help="The key of the record.")]
GoldSchema = Annotated[str, typer.Option("--gold-schema", help="The key of the schema's name; rows may lack it.")]
GoldAcceptable = Annotated[
    str, typer.Option("--gold-acceptable", help="The key of an object: JSON pointer → other values that are as right.")
]
By = Annotated[list[str] | None, typer.Option("--by", help="A key of gold rows; scores for each of its values.")]
Schemas = Annotated[str | None, typer.Option(help="The directory of schemas.", show_default="the job's")]
OnlyExtracted = Annotated[
    bool, typer.Option("--only-extracted", help="Leave out gold of documents that the run has no row of.")
]
AtLeast = Annotated[
    list[str] | None,
    typer.Option("--at-least", help="Exit 9 below this: f1=0.8, or /total:f1=0.9 for a field.", metavar="NAME=MIN"),
]
AtMost = Annotated[
    list[str] | None, typer.Option("--at-most", help="Exit 9 above this: ungrounded=0.05.", metavar="NAME=MAX")
]
Sure = Annotated[bool, typer.Option("--sure", help="Limits have to be kept by the whole interval.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/evaluate.md lists its keys.")]
Output = Annotated[Path | None, typer.Option("--output", help="Write the JSON document to this file, too.")]
Resamples = Annotated[int, typer.Option(min=100, max=20_000, help="Resamples of the bootstrap.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the resamples.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    path: RunPath,
    *,
    gold: Gold,
    gold_id: GoldId = "id",
    gold_record: GoldRecord = "record",
    gold_schema: GoldSchema = "schema",
    gold_acceptable: GoldAcceptable = "acceptable",
    by: By = None,
    schemas: Schemas = None,
    only_extracted: OnlyExtracted = False,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    sure: Sure = False,
    as_json: AsJson = False,
    output: Output = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
) -> None:
    """Hold a run's records against the right ones: precision, recall and F1 of every field, exact and normalised.

    Each rate has its denominator and a 95 % interval; format, schema and meaning are told apart. Rejected documents and
    those that the run has no row of count as mistakes. Gold that breaks its schema is told and not used.
    See docs/evaluate.md.

    Exit codes: 0 evaluated, 2 options or the job file, 3 the gold cannot be used, 6 no committed run or it cannot be
    read, 9 a limit is not kept.
    """
    from pipeline.evaluate.build import Asked, evaluate
    from pipeline.evaluate.gold import GoldConfig
    from pipeline.evaluate.limits import held

    config = GoldConfig(gold, gold_id, gold_record, gold_schema, gold_acceptable, tuple(by or ()))
    found = evaluate(Asked(path, config, schemas, only_extracted, resamples, seed))
    limits = held(found, at_least or (), at_most or (), sure=sure)
    _show(found, limits, output, as_json=as_json)
    raise typer.Exit(0 if all(one.kept for one in limits) else NOT_KEPT)


def _show(found: Evaluation, limits: Sequence[Held], output: Path | None, *, as_json: bool) -> None:
    from pipeline.evaluate.shown import as_document, rendered

    # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
    text = json.dumps(as_document(found, limits), indent=1, ensure_ascii=True).replace("\x7f", "\\u007f")
    if output is not None:
        try:
            output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot write {output}: {error.strerror or error}.") from error
    if as_json:
        typer.echo(text)
        return
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for part in rendered(found, limits):
        console.print(part)
    if output is not None:
        console.print(f"evaluation  {visible(str(output))}", soft_wrap=True)
