"""`gristmill submit`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.console import Console

from pipeline.commands_run import INTERRUPTED, one_of, screen
from pipeline.errors import NotReachedError
from pipeline.observe.visible import visible

if TYPE_CHECKING:
    from pipeline.runtime.submission.prepare import Prepared
    from pipeline.runtime.submission.server import JobServer


JobPath = Annotated[Path, typer.Argument(help="A job file, such as jobs/nightly.yaml.", metavar="JOB.yaml")]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray's job server, the address of its dashboard.",
        show_default="RAY_API_SERVER_ADDRESS, RAY_ADDRESS, a cluster of this machine",
        metavar="http://HOST:8265",
    ),
]
WorkingDir = Annotated[Path, typer.Option(help="The folder that is sent: the job and all that it names lie in it.")]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Leave this out of it, as a line of .gitignore would. May be repeated.")
]
Env = Annotated[
    list[str] | None,
    typer.Option(help="Give the job this variable of this shell. May be repeated.", metavar="NAME"),
]
Command = Annotated[str, typer.Option(help="How the cluster calls gristmill.")]
Again = Annotated[list[str] | None, typer.Option(help="For `gristmill run --again`.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="For `gristmill run --fresh`.")]
Slot = Annotated[str | None, typer.Option(help="For `gristmill run --slot`.")]
Overlap = Annotated[
    str, typer.Option(help="If another run of this job is under way: refuse, queue (wait for its end) or allow.")
]
IdBy = Annotated[
    str,
    typer.Option(help="What the id is made from: run (reads the input), job, or auto: run if the input is small."),
]
Follow = Annotated[bool, typer.Option("--follow/--no-follow", help="Show the log until the job has ended.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask no server. Show what would be sent, by `ray job submit`.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    job_path: JobPath,
    *,
    address: Address = None,
    working_dir: WorkingDir = Path(),
    exclude: Exclude = None,
    env: Env = None,
    command: Command = "gristmill",
    again: Again = None,
    fresh: Fresh = False,
    slot: Slot = None,
    overlap: Overlap = "refuse",
    id_by: IdBy = "auto",
    follow: Follow = True,
    dry_run: DryRun = False,
) -> None:
    """Run a job on a Ray cluster by its job server, and follow it to its end.

    The same command again **follows** the submission that runs, **does nothing** if the run is committed, and
    **goes on** after one that ended otherwise. Ctrl-C leaves the job running. The exit code is that of `gristmill run`:
    0 means that the manifest is there. See docs/submit.md.

    Exit codes: as of `gristmill run`; 0 with --no-follow: submitted; 9 another run of this job is under way, 12 the job
    server refuses, does not answer or lost the job, 130 interrupted while following, 143 the job was stopped.
    """
    from pipeline.runtime.submission import plain, prepare, sending
    from pipeline.runtime.submission.ray_jobs import RayJobs, address_of

    one_of(overlap, get_args(sending.Overlap), "--overlap")
    one_of(id_by, get_args(prepare.By), "--id-by")
    run = prepare.RunOptions(tuple(again or ()), fresh, slot, None if overlap == "refuse" else overlap)
    options = prepare.Options(working_dir, tuple(exclude or ()), tuple(env or ()), command, run, id_by)  # type: ignore[arg-type]
    console, prepared = screen(), prepare.prepare(job_path, options)
    if _is_done(console, prepared):
        return
    if dry_run:
        first = prepared.attempt(prepared.request.id)
        console.print(visible(plain.plain_command(first, address_of(address), options.env)), soft_wrap=True)
    else:
        raise typer.Exit(_sent(console, prepared, RayJobs(address), overlap, follow))


def _sent(console: Console, prepared: Prepared, server: JobServer, overlap: Any, follow: bool) -> int:
    """Submit, or find what runs already, and follow it if that is wanted; the exit code."""
    from pipeline.runtime.submission.sending import send

    sent = send(server, prepared, overlap, lambda other: _queue(console, server, other))
    console.print(f"{'submitted' if sent.new else 'runs already'}: {visible(sent.id)}", soft_wrap=True)
    if follow:
        return _followed(console, server, sent.id, prepared.job.output)
    console.print(f"`gristmill status {visible(sent.id)}` says how it goes.", soft_wrap=True)
    return 0


def _is_done(console: Console, prepared: Prepared) -> bool:
    """Say what would be sent, of variables only the names; whether the run is committed."""
    package, request = prepared.package, prepared.request
    size = f"{len(package.files)} files, {package.size / (1 << 20):.1f} MiB before Ray packs them"
    console.print(f"working directory: {visible(str(package.folder))} ({size})", soft_wrap=True)
    console.print(f"command: {visible(request.entrypoint)}", soft_wrap=True)
    console.print(f"environment: {visible(', '.join(sorted(request.env)))}", soft_wrap=True)
    why = "by the run's id" if prepared.known else f"by job and schemas: {prepared.why_not}"
    console.print(f"id: {visible(request.id)} ({visible(why)})", soft_wrap=True)
    if prepared.known is None or prepared.known.manifest is None:
        return False
    where, when = prepared.known.where, prepared.known.manifest.committed
    console.print(f"nothing to do: {visible(where)} was committed on {visible(when)}.", soft_wrap=True)
    return True


def _queue(console: Console, server: JobServer, other: str) -> None:
    from pipeline.runtime.submission.follow import until_over

    console.print(f"waiting for {visible(other)} to end")
    if asyncio.run(until_over(server, other)) is None:
        raise NotReachedError(f"the job server at {server.address} was lost while waiting for {other}. Submit again.")


def _followed(console: Console, server: JobServer, job_id: str, output: str) -> int:
    """Show the log to its end; the exit code."""
    from pipeline.runtime.submission.ending import look, verdict
    from pipeline.runtime.submission.follow import follow
    from pipeline.runtime.submission.server import Submitted

    try:
        ended = asyncio.run(follow(server, job_id, _write))
    except KeyboardInterrupt:
        console.print(f"\n{visible(job_id)} goes on. The same command follows it again.", style="yellow")
        console.print(f"`gristmill cancel {visible(job_id)}` ends it.", soft_wrap=True)
        return INTERRUPTED
    code, words = verdict(ended, look(output, ended or Submitted(job_id, "LOST")))
    console.print(f"{visible(job_id)}: {visible(words)}", style=None if code == 0 else "red", soft_wrap=True)
    return code


def _write(text: str) -> None:
    """Text of a log, which a document may have found its way into."""
    sys.stdout.write(visible(text.replace("\r\n", "\n").replace("\r", "\n")))
    sys.stdout.flush()
