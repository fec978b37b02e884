"""`gristmill plan`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from pipeline.observe.visible import console_on

LOG_WIDTH = 140

JobPath = Annotated[Path, typer.Argument(help="A job file, such as jobs/demo.yaml.", metavar="JOB.yaml")]
Run = Annotated[
    str | None,
    typer.Option(
        "--run", help="A committed run of this job, or its output: attempts, output and speed are taken from it."
    ),
]
Sample = Annotated[int, typer.Option(min=2, help="Documents of each schema whose prompts are counted.")]
Seed = Annotated[int, typer.Option(help="Picks the sample.")]
Success = Annotated[float | None, typer.Option(help="Chance that an answer needs no other one, 0 to 1.")]
OutputTokens = Annotated[float | None, typer.Option(help="Tokens of an answer.")]
Rate = Annotated[
    float | None, typer.Option("--tokens-per-second", help="Output tokens per second of one engine that is fully used.")
]
PromptRate = Annotated[
    float | None,
    typer.Option("--prompt-tokens-per-second", help="Of prompts, if --tokens-per-second is of decoding alone."),
]
Price = Annotated[float | None, typer.Option("--price-per-gpu-hour", help="In any currency; costs are in the same.")]
Deadline = Annotated[float | None, typer.Option(help="Hours in which the job has to end.", metavar="HOURS")]
Reserve = Annotated[float, typer.Option(help="More work than expected that the engines for a deadline can do.")]
StartMinutes = Annotated[
    float | None,
    typer.Option("--start-minutes", help="What an engine takes to start.", show_default="as the run measured it, or 0"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/plan.md lists its keys.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 where something should be looked at.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    job_path: JobPath,
    *,
    run_path: Run = None,
    sample: Sample = 200,
    seed: Seed = 0,
    success: Success = None,
    output_tokens: OutputTokens = None,
    tokens_per_second: Rate = None,
    prompt_tokens_per_second: PromptRate = None,
    price_per_gpu_hour: Price = None,
    deadline: Deadline = None,
    reserve: Reserve = 0.25,
    start: StartMinutes = None,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """Say what a job will take before anything starts: documents, tokens, engines, hours, cost.

    Documents are counted, prompts sampled with the engine's own tokenizer, schemas compiled as the run will. Attempts,
    output and speed are **given** or taken from an earlier **`--run`**. Every number says what it rests on, and has an
    interval where it is sampled. No engine and no GPU is used. See docs/plan.md.

    Exit codes: 0 planned, 2 options or job file, 3 input, 4 no schema can be used, 5 the model's tokenizer, 6 no
    committed run, or the output; with --strict 9: a refused schema, documents beyond the context, a tight token
    budget, a run that was made otherwise, a deadline that wants more engines than the job has.
    """
    from pipeline.cost.given import Given
    from pipeline.cost.plan import cost_plan
    from pipeline.jobfile import load_job

    speed = (tokens_per_second, prompt_tokens_per_second)
    given = Given(run_path, sample, seed, success, output_tokens, *speed, price_per_gpu_hour, deadline, reserve, start)
    document = cost_plan(load_job(job_path), given, strict=strict)
    _show(document, as_json=as_json)
    raise typer.Exit(document["exit_code"])


def _show(document: dict[str, Any], *, as_json: bool) -> None:
    from pipeline.observe.costed import rendered

    if as_json:
        # ASCII, so that no name from the input acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(document, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
        return
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for part in rendered(document):
        console.print(part, soft_wrap=isinstance(part, Text))
