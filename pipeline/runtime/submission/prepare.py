"""What is submitted: the command for the cluster, its environment, and the id by which it is known again."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pipeline.errors import GristmillError, JobFileError
from pipeline.job import JobConfig
from pipeline.jobfile import load_job
from pipeline.runtime.known import KnownRun, input_bytes, known_run
from pipeline.runtime.output.secrets import without_credentials
from pipeline.runtime.submission.names import id_by_job, id_by_run
from pipeline.runtime.submission.package import Package, package_of, path_in
from pipeline.runtime.submission.receipt import VARIABLE
from pipeline.runtime.submission.server import DRAIN, JOB, OUTPUT, RUN, Request

LOOK_BYTES = 256 << 20
"""An input that has more bytes is not read just to find the run's id, unless that is asked for."""

STOP_WAIT = "RAY_JOB_STOP_WAIT_TIME_S"
"""How long Ray waits after SIGTERM before it kills a driver: 3 s unless this says otherwise. The process that stops the
driver is started with the job's own environment (ray/dashboard/modules/job/job_supervisor.py)."""

SAVE_SECONDS = 30
"""Beyond `safety.drain_seconds`, for saving what was drained and ending Ray's workers."""

_RESERVED = (STOP_WAIT, VARIABLE)

By = Literal["auto", "run", "job"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `gristmill run` on the cluster."""

    again: tuple[str, ...] = ()
    fresh: bool = False
    slot: str | None = None
    overlap: str | None = None

    def words(self) -> list[str]:
        """Them as they are typed."""
        given = {"--slot": self.slot, "--overlap": self.overlap}
        words = [*(["--fresh"] if self.fresh else []), *(word for one in self.again for word in ("--again", one))]
        return words + [word for name, value in given.items() if value is not None for word in (name, value)]


@dataclass(frozen=True, slots=True)
class Options:
    """What may be said about a submission. `env` names variables of this process; `command` is how the cluster calls
    gristmill; `by` is what the id is made from."""

    working_dir: Path = Path()
    excludes: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    command: str = "gristmill"
    run: RunOptions = RunOptions()
    by: By = "auto"


@dataclass(frozen=True, slots=True)
class Prepared:
    """`request.id` is that of the first attempt. `known`: the run, if the input was read; `why_not`: else."""

    job: JobConfig
    package: Package
    request: Request
    known: KnownRun | None
    why_not: str = ""

    def attempt(self, job_id: str) -> Request:
        """The request under the id of one attempt, which its driver is told."""
        return replace(self.request, id=job_id, env={**self.request.env, VARIABLE: job_id})


def prepare(job_path: Path, options: Options) -> Prepared:
    """Read and check all that goes into a submission, without asking a server.

    Raises:
        GristmillError: the job cannot be used, or something it needs would be missing on the cluster; with `by="run"`
            also what `known_run` raises.
    """
    job = load_job(job_path, options.run.slot)
    package = package_of(options.working_dir, options.excludes)
    command = [*_words(options.command), "run", path_in(package, job_path), *options.run.words()]
    taken = _taken(options.env, os.environ)
    known, why_not = _known(job, options)
    base = id_by_run(job, known.run_id) if known else id_by_job(job, options.run.again)
    metadata = {JOB: job.name, OUTPUT: without_credentials(job.output), DRAIN: f"{job.safety.drain_seconds:g}"}
    request = Request(
        id=base,
        entrypoint=shlex.join(command),
        working_dir=str(package.folder),
        excludes=package.excludes,
        env={**taken, STOP_WAIT: str(math.ceil(job.safety.drain_seconds) + SAVE_SECONDS)},
        metadata={**metadata, **({RUN: known.run_id} if known else {})},
    )
    return Prepared(job, package, request, known, why_not)


def _known(job: JobConfig, options: Options) -> tuple[KnownRun | None, str]:
    """The run, or why it is not known."""
    if options.by == "job":
        return None, "--id-by job"
    if options.by == "run":
        return known_run(job, options.run.again), ""
    try:
        size = input_bytes(job)
        if size > LOOK_BYTES:
            return None, f"the input has {size >> 20} MiB, and more than {LOOK_BYTES >> 20} are not read for an id"
        return known_run(job, options.run.again), ""
    except JobFileError:  # what was asked for makes no sense, there as here
        raise
    except GristmillError as error:
        return None, str(error).partition("\n")[0]


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise JobFileError(f"--command: {command} is no command of a shell: {error}.") from error
    if not words:
        raise JobFileError("--command: give what the cluster calls gristmill, such as /opt/gristmill/bin/gristmill.")
    return words


def _taken(names: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, str]:
    for name in names:
        if "=" in name:  # whatever stands behind it may be secret
            raise JobFileError("--env takes the name of a variable of this shell, without a value: --env NAME.")
        if name in _RESERVED:
            raise JobFileError(f"--env: {name} is set by `gristmill submit` itself.")
        if name not in environment:
            raise JobFileError(f"--env: {name} is not set in this shell.")
    return {name: environment[name] for name in names}
