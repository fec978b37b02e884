"""`gristmill status` and `cancel`: what became of submissions, and ending them. `cli.py` registers them."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pipeline.errors import JobFileError, NotReachedError, SubmissionError
from pipeline.observe.visible import cell, console_on, visible

if TYPE_CHECKING:
    from pipeline.runtime.submission.server import JobServer, Submitted

LOG_WIDTH = 160
"""Columns of a table in a log file."""

SHOWN = 5
"""How many submissions of a job `status` lists."""

Which = Annotated[str, typer.Argument(help="A job file, or the id of a submission.", metavar="JOB.yaml|ID")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray's job server, the address of its dashboard.",
        show_default="RAY_API_SERVER_ADDRESS, RAY_ADDRESS, a cluster of this machine",
        metavar="http://HOST:8265",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/submit.md lists its keys.")]
WaitForIt = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the job has ended.")]


def status(which: Which, *, address: Address = None, as_json: AsJson = False) -> None:
    """Show the submissions of a job, latest first, or one submission: Ray's word, and whether the run is committed.

    Exit codes: 0 told, 2 job file, 12 the job server refuses, does not answer, or knows no such submission.
    """
    from pipeline.runtime.submission.ray_jobs import RayJobs

    server = RayJobs(address)
    rows = [_row(server, one) for one in _named(server, which)[:SHOWN]]
    if as_json:
        # ASCII, so that no character of a message acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
        return
    console = _console()
    if not rows:
        console.print(f"{visible(server.address)} knows no submission of this job.")
        return
    table = Table("submission", "Ray says", "started", "ended", "exit code", "output")
    for row in rows:
        code = "" if row["exit_code"] is None else str(row["exit_code"])
        words = (row["id"], row["status"], row["started"] or "", row["ended"] or "", code, row["output"])
        table.add_row(*map(cell, words))
    console.print(table)
    for row in rows:
        console.print(visible(f"{row['id']}: {row['told']}"), soft_wrap=True)


def cancel(which: Which, *, address: Address = None, wait: WaitForIt = True) -> None:
    """End a submission: its driver is told to finish what is in flight (`safety.drain_seconds`) and to save it.

    `gristmill submit` with the same job goes on from there.

    Exit codes: 0 it has ended, or (--no-wait) was told to; 2 job file, or several are under way; 12 the job server
    refuses, does not answer, or knows no such submission.
    """
    from pipeline.runtime.submission.ending import look, verdict
    from pipeline.runtime.submission.follow import until_over
    from pipeline.runtime.submission.ray_jobs import RayJobs
    from pipeline.runtime.submission.server import DRAIN, OUTPUT

    server, console = RayJobs(address), _console()
    live = [one for one in _named(server, which) if not one.over]
    if not live:
        console.print("nothing to cancel: no such submission is under way.")
        return
    if len(live) > 1:
        raise JobFileError(f"several are under way, name one: {', '.join(one.id for one in live)}.")
    job = live[0]
    server.stop(job.id)
    drain = job.metadata.get(DRAIN, "")
    console.print(f"{visible(job.id)} was told to end." + (f" It may take {visible(drain)} s." if drain else ""))
    if wait:
        ended = asyncio.run(until_over(server, job.id))
        code, words = verdict(ended, look(job.metadata.get(OUTPUT, ""), ended or job))
        console.print(visible(words), soft_wrap=True)
        raise typer.Exit(code if ended is None else 0)


def _named(server: JobServer, which: str) -> list[Submitted]:
    """The submissions that are meant, latest first.

    Raises:
        SubmissionError: the server knows no submission of this id.
    """
    from pipeline.jobfile import load_job
    from pipeline.runtime.submission.sending import of_job

    if which.endswith((".yaml", ".yml")):
        job = load_job(which)
        return of_job(server.all(), job.name, job.output)
    found = server.find(which)
    if found is None:
        raise SubmissionError(
            f"the job server at {server.address} knows no submission {which}. Name a job file to see all of a job."
        )
    return [found]


def _row(server: JobServer, job: Submitted) -> dict[str, Any]:
    """What is told of a submission; `exit_code` is what following it would have ended with, None while it runs."""
    from pipeline.runtime.submission.ending import look, verdict
    from pipeline.runtime.submission.server import OUTPUT

    output = look(job.metadata.get(OUTPUT, ""), job)
    code, words = verdict(job, output) if job.over else (None, _last_line(server, job))
    return {
        "id": job.id,
        "status": job.status,
        "started": _time(job.started),
        "ended": _time(job.ended),
        "exit_code": code,
        "output": output.seen,
        "run": output.where,
        "told": words,
    }


def _last_line(server: JobServer, job: Submitted) -> str:
    """How far a job is, by its own word."""
    lines: list[str] = []
    with suppress(NotReachedError):
        lines = server.log(job.id).rstrip().splitlines()
    return lines[-1].strip() if lines else job.message


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="seconds")


def _console() -> Console:
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console
