"""`gristmill run`: its options, what a person sees of a run, and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pipeline import commands_report
from pipeline.errors import Terminated
from pipeline.job import JobConfig
from pipeline.observe.visible import console_on, visible, visible_id
from pipeline.records import Manifest

JobPath = Annotated[Path, typer.Argument(help="A job file, such as jobs/demo.yaml.", metavar="JOB.yaml")]

Again = Annotated[
    list[str] | None,
    typer.Option(help="Incremental runs: take these again: rejected, degraded, engine (made by another), all."),
]

Record = Annotated[str | None, typer.Option(help="Save every completion in this directory, for a `recorded` engine.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start a new run although an unfinished one exists under other digests.")
]
MetricsPort = Annotated[
    str | None, typer.Option(help="Serve /metrics there while it runs; 0 takes a free port.", metavar="[HOST:]PORT")
]

Slot = Annotated[str | None, typer.Option(help="In place of the job's `slot`, such as a date: another is another run.")]
Overlap = Annotated[
    str | None,
    typer.Option(
        help="If another run of this job is under way: refuse, queue (wait for its end) or allow.",
        show_default="refuse with `input.since`, else allow",
    ),
]

Candidate = Annotated[bool, typer.Option("--canary/--no-canary", help="Try the job's candidate afterwards.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the log of Ray's workers and of vLLM.")]

INTERRUPTED = 130
TERMINATED = 143
LOG_WIDTH = 120


def run(  # noqa: PLR0913  # the options of a command are its parameters
    job_path: JobPath,
    record: Record = None,
    fresh: Fresh = False,
    again: Again = None,
    slot: Slot = None,
    overlap: Overlap = None,
    metrics_port: MetricsPort = None,
    canary: Candidate = True,
    verbose: Verbose = False,
) -> None:
    """Run a job: read, extract, write Parquet, commit.

    The same command on the same input **resumes** an interrupted run and **does nothing** after a finished one. What
    is committed stands in `<output>/run=<id>/manifest.json`; trust only files that it names. `report.html` lies beside.

    Ctrl-C and SIGTERM let what is in flight finish for a while (`safety.drain_seconds`) and save it; a second one ends
    at once. The candidate of the job's `canary` is tried afterwards; it changes neither the run nor the exit code.

    Exit codes: 0 committed, 2 job file, 3 input, 4 schema, 5 engine, 6 output, 7 run changed, 8 memory, 9 another
    driver is at the run or the job, 10 stopped by `stop_if`, 11 stalled, 130 interrupted, 143 terminated.
    """
    from pipeline import commands_canary
    from pipeline.jobfile import load_job
    from pipeline.runtime.since import AGAIN

    _log(everything=verbose)
    again = [one_of(word, AGAIN, "--again") for word in again or ()]
    console, job = screen(), load_job(job_path, slot)
    watcher = Watcher(console)
    signal.signal(signal.SIGTERM, terminate)
    try:
        manifest = _watched(job, watcher, overlap, metrics_port, record=record, fresh=fresh, again=again)
        if canary and job.canary is not None:
            commands_canary.after_run(console, job, manifest.run_id, metrics_port)
    except KeyboardInterrupt as signalled:
        options = {"--record": record, "--slot": slot, "--overlap": overlap, "--metrics-port": metrics_port}
        command = _command(job_path, options, again, canary=canary)
        raise typer.Exit(interrupted(console, command, job.output, signalled)) from None


def _watched(job: JobConfig, watcher: Watcher, overlap: str | None, metrics: str | None, **options: Any) -> Manifest:
    """Run the job when its turn is, and say what became of it."""
    from pipeline import flow
    from pipeline.observe.metrics.server import serving
    from pipeline.runtime.overlap import OVERLAPS, alone, usual

    how = one_of(overlap, OVERLAPS, "--overlap") if overlap else usual(job)
    with (
        alone(job, how, watcher.say) as ended_if_lost,
        serving(metrics, watcher.say) as watcher.metrics,
        watcher.reporter.live(),
    ):
        manifest = flow.run(job, ended_if_lost(watcher.noted(job.output)), **options)
    watcher.finish(manifest)
    return manifest


def one_of(word: str, words: Sequence[str], option: str) -> str:
    """The word, if it is one that an option takes.

    Raises:
        BadParameter: it is not.
    """
    if word not in words:
        raise typer.BadParameter(f"{visible(word)} is not one of {', '.join(words)}", param_hint=option)
    return word


def _log(*, everything: bool) -> None:
    if everything:
        os.environ["GRISTMILL_VERBOSE"] = "1"
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "INFO")


def _command(job_path: Path, options: Mapping[str, str | None], again: Sequence[str], *, canary: bool) -> str:
    """What was typed, without --fresh: that would begin anew."""
    flags = [] if canary else ["--no-canary"]
    flags += [word for name, value in options.items() if value is not None for word in (name, value)]
    flags += [word for one in again for word in ("--again", one)]
    return shlex.join(["gristmill", "run", str(job_path), *flags])


def interrupted(console: Console, command: str, output: str, signalled: KeyboardInterrupt) -> int:
    """Say how to go on after Ctrl-C or SIGTERM; the exit code."""
    terminated = isinstance(signalled, Terminated)
    word = "terminated" if terminated else "interrupted"
    console.print(f"\n{word}. Documents finished so far are kept in {visible(output)}.", style="yellow")
    console.print(f"Run the same command to continue: {visible(command)}", soft_wrap=True)
    return TERMINATED if terminated else INTERRUPTED


def terminate(_signal: int, _frame: object) -> None:
    """What SIGTERM does to a command that runs a job."""
    raise Terminated


class Watcher:
    """Follows a run for the console; the flow knows only that it can be called."""

    def __init__(self, console: Console) -> None:
        from pipeline.observe.console import Reporter

        self._console = console
        self.reporter = Reporter(console)
        self._run: Any = None
        self._where = ""
        self._nothing_to_do = False
        self.metrics: Any = None

    def say(self, words: str) -> None:
        self._console.print(visible(words), soft_wrap=True)

    def noted(self, output: str) -> Any:
        """This watcher, which notes the run in the output where the job was submitted to a job server."""
        from pipeline.runtime.submission.receipt import noting

        return noting(self, output, self.say)

    def __call__(self, event: str, value: Any) -> None:
        if event == "opened":
            self._run, self._where = value, value.where
        elif event == "done":
            self._where, self._nothing_to_do = value, True
        elif event == "compared":
            if told := value.told():
                self.say(told)
        elif event == "planned":
            self._planned(value)
        elif event == "scanned":
            self._scanned(value)
        elif event == "asking":
            self.reporter.asking(value)
        elif event == "numbers":
            self.metrics.show(value)
        elif event == "warned":
            self._console.print(f"warning: {visible(value)}", style="yellow", soft_wrap=True)
        elif event == "progress":
            self.reporter.update(value)

    def _planned(self, plans: Any) -> None:
        from pipeline.compile.report import short_form
        from pipeline.observe.checked import line

        for brief in short_form(plans):
            self._console.print(line(brief), soft_wrap=True)

    def _scanned(self, found: Any) -> None:
        done = self._run.committed_units()
        left = sum(unit.rows for unit in found.units if unit.id not in done)
        schemas = ", ".join(
            f"{count} {name or 'without a schema'}" for name, count in sorted(found.schema_counts.items())
        )
        self._console.print(f"{found.documents} documents: {visible(schemas)}")
        if found.duplicate_count:
            examples = ", ".join(map(visible_id, found.duplicate_examples))
            self._console.print(
                f"{found.duplicate_count} rows repeat an earlier id ({examples}): the first row of an id is extracted, "
                "later ones are rejected as duplicate_id.",
                style="yellow",
            )
        if done:
            where = visible(self._run.where)
            self._console.print(f"resuming {where}: {found.documents - left} documents are committed already")
        self.reporter.expect(left)

    def finish(self, manifest: Manifest) -> None:
        from pipeline.observe.console import summary

        if self._nothing_to_do:
            self._console.print(f"nothing to do: this run was committed on {visible(manifest.committed)}.")
        self._console.print(summary(manifest, self._where))
        commands_report.after_run(self._console, self._where, keep=self._nothing_to_do)


def screen(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or wide enough for a log file."""
    console = console_on(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console
