"""`gristmill compare`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from pipeline.jobgate import GateConfig
from pipeline.observe.visible import console_on, visible

LOG_WIDTH = 140
NOT_PROMOTED = 9

RunA = Annotated[
    str, typer.Argument(help="The run that is there: a run, or an output (its latest run).", metavar="RUN_A")
]
RunB = Annotated[str, typer.Argument(help="The run that is to take its place.", metavar="RUN_B")]
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

    Exit codes: 0 compared, 2 options or rules, 6 no committed run, it cannot be read or the page not written, or no
    document is in both; with --strict 9: the verdict is not to promote.
    """
    from pipeline.evaluate.compared import compare_runs
    from pipeline.evaluate.gate import gate
    from pipeline.jobfile import load_yaml
    from pipeline.runtime.output.lookup import find_run

    judged_by = load_yaml(rules, GateConfig) if rules else GateConfig()
    found = compare_runs(find_run(a), find_run(b), alpha=judged_by.alpha, most=documents)
    gated = gate(found, judged_by)
    if output is not None:
        from pipeline.evaluate.comparison_page import write_page

        write_page(found, gated, output)
    if as_json:
        from pipeline.evaluate.comparison_text import as_document

        # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
        text = json.dumps(as_document(found, gated), indent=1, ensure_ascii=True)
        typer.echo(text.replace("\x7f", "\\u007f"))
    else:
        from pipeline.evaluate.comparison_text import rendered

        console = console_on()
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = LOG_WIDTH
        for part in rendered(found, gated, everything=everything):
            console.print(part)
        if output is not None:
            console.print(f"page  {visible(os.fspath(output))}", soft_wrap=True)
    raise typer.Exit(NOT_PROMOTED if strict and gated.decision != "promote" else 0)
