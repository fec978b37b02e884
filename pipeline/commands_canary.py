"""`gristmill canary`: its options; and the candidate that `gristmill run` tries afterwards. `cli.py` registers it."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pipeline import commands_run
from pipeline.commands_run import JobPath, MetricsPort, Watcher, screen
from pipeline.errors import OutputError
from pipeline.observe.visible import visible

if TYPE_CHECKING:
    from pipeline.canary import Judged
    from pipeline.job import JobConfig
    from pipeline.runtime.store import Store

NOT_PROMOTED = 9

Switch = Annotated[
    str | None,
    typer.Option(
        "--switch",
        help="Begin no run; from the next one on: free (no constraint, prompt and repair only), or constrained (as the "
        "job says).",
        metavar="free|constrained",
    ),
]
Because = Annotated[str, typer.Option("--because", help="With --switch: why, for those who find it.")]
AsJson = Annotated[bool, typer.Option("--json", help="The verdict as one JSON document on stdout, and nothing else.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 unless the verdict is `promote`.")]


def run(
    job_path: JobPath,
    *,
    switch: Switch = None,
    because: Because = "",
    strict: Strict = False,
    as_json: AsJson = False,
    metrics_port: MetricsPort = None,
) -> None:
    """Try the candidate that `canary:` of a job describes, on a share of the documents of the job's last run.

    Its records are written apart, in `<output>/canary`, and held against the run's; the rules of `canary.gate` decide:
    **promote**, **hold** or **roll back** (`canary.json` there). `gristmill run` does the same when its run is
    committed. The same command goes on with an interrupted candidate, and does nothing after a finished one.

    Exit codes: 0 judged, 2 job file, 6 no committed run, and those of `gristmill run`; with --strict 9: not promoted.
    """
    from pipeline.jobfile import load_job
    from pipeline.runtime.output.lookup import last_committed
    from pipeline.runtime.store import open_store

    console, job = screen(stderr=as_json), load_job(job_path)
    if switch is not None:
        _set(console, job, switch, because)
        return
    of = last_committed(open_store(job.output), job.name)
    if of is None:
        raise OutputError(f"no run of `{job.name}` is committed in {job.output}. Run the job first: gristmill run.")
    signal.signal(signal.SIGTERM, commands_run.terminate)
    try:
        judged = _tried(console, job, of, metrics_port)
    except KeyboardInterrupt as signalled:
        command = f"gristmill canary {job_path}"
        raise typer.Exit(commands_run.interrupted(console, command, f"{job.output}/canary", signalled)) from None
    if as_json:
        # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(judged.told, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
    if judged.error is not None:
        raise judged.error
    raise typer.Exit(NOT_PROMOTED if strict and judged.verdict != "promote" else 0)


def after_run(console: Console, job: JobConfig, run_id: str, metrics_port: str | None) -> None:
    """Try the candidate of a job whose run has just been committed. No fault here is a fault of that run, so it is told
    and passed over; Ctrl-C and SIGTERM are not."""
    from pipeline.runtime.store import open_store

    try:
        judged = _tried(console, job, open_store(job.output).at(f"run={run_id}"), metrics_port)
        if judged.error is None:
            return
        error: Exception = judged.error
    except Exception as raised:
        error = raised
    words = visible(f"{type(error).__name__}: {error}"[:1000])
    console.print(f"the run is committed, but its candidate was not judged: {words}", style="yellow", soft_wrap=True)


def _tried(console: Console, job: JobConfig, of: Store, metrics_port: str | None) -> Judged:
    from pipeline.canary import try_candidate
    from pipeline.observe.metrics.server import serving

    watcher = Watcher(console)
    console.print(f"candidate of {visible(job.name)}", style="bold")
    with serving(metrics_port, watcher.say) as watcher.metrics, watcher.reporter.live():
        judged = try_candidate(job, of, watcher)
    _show(console, judged)
    return judged


def _show(console: Console, judged: Judged) -> None:
    """The verdict, why, and where more is to be seen."""
    from pipeline.evaluate.comparison_text import COLOURS

    before = f", judged on {visible(judged.told['judged'])}" if judged.before else ""
    console.print(f"verdict  {judged.verdict}{before}", style=COLOURS[judged.verdict])
    for rule in judged.told.get("rules", ()):
        console.print(visible(f"  {rule['state']:6} {rule['words']}"), soft_wrap=True)
    for warning in judged.told.get("warnings", ()):
        console.print(f"warning: {visible(warning)}", style="yellow", soft_wrap=True)
    if judged.error is None:
        sides = f"{visible(judged.told['of'])} {visible(judged.told['run'])}"
        console.print(f"more: gristmill compare {sides}", soft_wrap=True)


def _set(console: Console, job: JobConfig, state: str, why: str) -> None:
    from pipeline.runtime.store import open_store
    from pipeline.runtime.switch import STATES, set_switch

    chosen = next((one for one in STATES if one == state), None)
    if chosen is None:
        raise typer.BadParameter(f"{visible(state)} is not one of {', '.join(STATES)}", param_hint="--switch")
    switch = set_switch(job, open_store(job.output), chosen, why)
    console.print(visible(switch.told(job.name)), soft_wrap=True)
