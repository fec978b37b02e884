"""`gristmill compare`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.jobgate import GateConfig
from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.evaluate.comparison import RunComparison
    from pipeline.evaluate.gate import Gated

LOG_WIDTH = 140
NOT_PROMOTED = 9

RunA = Annotated[
    str,
    typer.Argument(help="The run that is there: a run, an output or a job file (its latest run).", metavar="RUN_A"),
]
RunB = Annotated[str, typer.Argument(help="The run that is to take its place.", metavar="RUN_B")]
Gold = Annotated[
    str | None, typer.Option(help="Right records, as for `evaluate`: adds the score against them.", metavar="PATH")
]
GoldId = Annotated[str, typer.Option("--gold-id", help="The key of the document's id.")]
GoldRecord = Annotated[str, typer.Option("--gold-record", help="The key of the record.")]
Schemas = Annotated[str | None, typer.Option(help="The directory of schemas, for gold.", show_default="the jobs'")]
Rules = Annotated[
    Path | None, typer.Option("--rules", help="A YAML file with the keys of a gate; defaults where there is none.")
]
Documents = Annotated[int, typer.Option(min=1, help="Documents to pair; of more, evenly chosen units of them.")]
Output = Annotated[Path | None, typer.Option("--output", help="Write a page (HTML) that opens offline to this file.")]
All = Annotated[bool, typer.Option("--all", help="Show every test, field and example.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/compare.md lists its keys.")]
StrictExit = Annotated[bool, typer.Option("--strict", help="Exit 9 unless the verdict is `promote`.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    a: RunA,
    b: RunB,
    *,
    rules: Rules = None,
    gold: Gold = None,
    gold_id: GoldId = "id",
    gold_record: GoldRecord = "record",
    schemas: Schemas = None,
    documents: Documents = 20_000,
    output: Output = None,
    everything: All = False,
    as_json: AsJson = False,
    strict: StrictExit = False,
) -> None:
    """Hold one run against another, document by document, and say whether it may take its place.

    What newly failed, what newly passed, rates by layer, tokens, and how each field's values changed: paired tests, all
    corrected together. Warns when more than one thing changed between the runs. The verdict is **promote**, **hold** or
    **roll_back**, by confidence bounds against the margins of the rules. See docs/compare.md.

    Exit codes: 0 compared, 2 options or rules, 3 gold that cannot be used, 6 no committed run, it cannot be read or the
    page not written, or no document is in both; with --strict 9: the verdict is not to promote.
    """
    from pipeline.evaluate.compared import compare_paths
    from pipeline.evaluate.gate import gate
    from pipeline.evaluate.gold import GoldConfig
    from pipeline.jobfile import load_yaml

    judged_by = load_yaml(rules, GateConfig) if rules else GateConfig()
    config = GoldConfig(gold, gold_id, gold_record) if gold is not None else None
    found = compare_paths((a, b), alpha=judged_by.alpha, most=documents, gold=config, schemas=schemas)
    gated = gate(found, judged_by)
    _show(found, gated, output, everything=everything, as_json=as_json)
    raise typer.Exit(NOT_PROMOTED if strict and gated.decision != "promote" else 0)


def _show(found: RunComparison, gated: Gated, output: Path | None, *, everything: bool, as_json: bool) -> None:
    from pipeline.evaluate.comparison_page import write_page
    from pipeline.evaluate.comparison_text import as_document, rendered

    if output is not None:
        write_page(found, gated, output)
    if as_json:
        # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
        text = json.dumps(as_document(found, gated), indent=1, ensure_ascii=True)
        typer.echo(text.replace("\x7f", "\\u007f"))
        return
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for part in rendered(found, gated, everything=everything):
        console.print(part)
    if output is not None:
        console.print(f"page  {visible(os.fspath(output))}", soft_wrap=True)
