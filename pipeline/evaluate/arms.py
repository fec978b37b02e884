"""Arms: the runs of an experiment, each the job itself but for one thing, apart from the job's own runs.

Each arm is a job with a name and an output of its own, and `flow.run` runs it as any other: a killed one is resumed, a
finished one is found again and nothing is asked twice.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pipeline import flow
from pipeline.errors import JobFileError
from pipeline.job import JobConfig
from pipeline.jobplacement import PilotConfig, StopConfig
from pipeline.runtime.output.browse import Browsed, browse
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.store import open_store

_LONGEST = 64
"""Characters that a job's name may have."""
_OF_ARM = 24
"""Those that the arm's name may take of them; runs of equal names that differ in anything else are other runs."""
_EVERY = 2**63


def arm_of(job: JobConfig, folder: str, name: str, limit: int | None = None, **changes: Any) -> JobConfig:
    """The job of an arm: `changes` replace keys of the job, `limit` bounds its documents, `folder` in the job's output
    takes its runs. Nothing stops it early: that many answers fail is what is to be found out.

    Raises:
        JobFileError: the job does not go with what is changed.
    """
    bounds = [one for one in (job.input.limit, limit) if one is not None]
    never = StopConfig(truncation=None, first_pass=None, semantic=None, rejection=None)
    changed = {
        "name": f"{job.name[: _LONGEST - _OF_ARM - 1]}.{name[:_OF_ARM]}",
        "output": f"{job.output.rstrip('/')}/{folder}",
        "input": job.input.model_copy(update={"since": None, "limit": min(bounds) if bounds else None}),
        "canary": None,
        "stop_if": never,
        "pilot": PilotConfig(documents=0),
        **changes,
    }
    arm = job.model_copy(update=changed)
    try:
        return JobConfig.model_validate(arm.model_dump(by_alias=True))
    except ValidationError as error:
        told = "; ".join(str(one["msg"]) for one in error.errors())
        raise JobFileError(f"the job cannot be run as `{name}`: {told}") from error


def constrained_or_not(job: JobConfig, *, constrained: bool) -> dict[str, Any]:
    """The change that switches a job's constraint on or off, and leaves its prompt as it is."""
    return {"sampling": job.sampling.model_copy(update={"constrained": constrained})}


def run_arm(arm: JobConfig, observe: flow.Observer) -> Browsed:
    """Run an arm, or go on with it, or find that it is done; its committed run, all of whose files are to be read.

    Raises:
        GristmillError: as for `flow.run`.
    """
    manifest = flow.run(arm, observe, fresh=True)
    run = open_store(arm.output).at(f"run={manifest.run_id}")
    assert read_manifest(run) is not None
    return browse(run.where, _EVERY)
