"""How a submission ended: by the manifest, which is the commit. Ray's word counts where no manifest can be seen."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import GristmillError, OutputError, SubmissionError
from pipeline.records import Manifest
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.store import open_store
from pipeline.runtime.submission.receipt import run_of
from pipeline.runtime.submission.server import RUN, Submitted

TERMINATED = 143
"""As `gristmill run` ends after SIGTERM."""


@dataclass(frozen=True, slots=True)
class Output:
    """What can be seen of a submission's output from here. `absent`: the output can be read, and holds no manifest of
    this submission; `unknown`: it cannot be read. `where` is the run, or the output if no run is known."""

    seen: Literal["committed", "absent", "unknown"]
    where: str
    manifest: Manifest | None = None


def look(output: str, job: Submitted) -> Output:
    """Find the manifest of a submission: of the run in its receipt, else of the run that was known when it was
    submitted."""
    try:
        store = open_store(output)
        run = run_of(store, job.id) or job.metadata.get(RUN, "")
        at = store.at(f"run={run}") if run else store
        manifest = read_manifest(at) if run else None
    except (GristmillError, OSError, ValueError):
        return Output("unknown", output)
    if manifest is not None:
        return Output("committed", at.where, manifest)
    # A path of the cluster's own disks is nothing here.
    here = "://" in output or os.path.isdir(output)
    return Output("absent" if here else "unknown", at.where)


def verdict(job: Submitted | None, output: Output) -> tuple[int, str]:
    """The exit code of a submission that is over (None: lost), and what to say. 0 means committed: by the manifest, or
    where none can be seen, by a driver that ended with 0."""
    if output.seen == "committed":
        return 0, f"committed: {output.where}/manifest.json"
    if job is None:
        return SubmissionError.exit_code, (
            "the job server does not answer, or no longer knows the job, and no manifest is to be seen. "
            "Submit it again: a run that was committed is found, one that was not goes on."
        )
    if job.status == "STOPPED":
        return TERMINATED, "stopped. What was finished is kept; submit the job again to go on."
    code = job.exit_code
    if code is None:
        return SubmissionError.exit_code, f"the driver did not run to its end: {job.message or job.status}"
    if code != 0:
        return (code if code > 0 else 128 - code), f"the driver ended with exit code {code}; its log says why."
    if output.seen == "absent":
        return OutputError.exit_code, (
            f"the driver ended with 0, and {output.where} holds no manifest of it, as seen from here. If this machine "
            "has another disk under that path than the cluster, look there."
        )
    return 0, f"the driver ended with 0; {output.where} cannot be read from here, so its manifest was not seen."
