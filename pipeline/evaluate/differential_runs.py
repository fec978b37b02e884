"""The two runs of a differential: made for it from a job, or there already."""

from __future__ import annotations

from pipeline.evaluate.arms import arm_of, constrained_or_not, run_arm
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.differential import CONSTRAINED, FREE, Differential, differential
from pipeline.flow import Observer
from pipeline.jobfile import load_job
from pipeline.runtime.output.browse import Browsed

FOLDER = "differential"
"""Where the runs lie in the job's output."""


def from_job(path: str, limit: int | None, most: int, observe: Observer) -> tuple[str, Differential]:
    """Run a job in both ways, and hold the runs against each other; also the job's name.

    Raises:
        GristmillError: as for `flow.run`.
    """
    job = load_job(path)
    arms = [
        arm_of(job, FOLDER, name, limit, **constrained_or_not(job, constrained=name == CONSTRAINED))
        for name in (CONSTRAINED, FREE)
    ]
    constrained, free = (run_arm(arm, observe) for arm in arms)
    return job.name, _found(constrained, free, job.schemas, most)


def from_runs(paths: tuple[str, str], schemas: str | None, most: int) -> tuple[str, Differential]:
    """Hold a constrained run against a free one, both given as for `gristmill evaluate`; also the job's name.

    Raises:
        OutputError: there is no committed run, one cannot be read, or no document is in both.
    """
    (constrained, place), (free, _) = run_of(paths[0]), run_of(paths[1])
    return constrained.manifest.job, _found(constrained, free, schemas or place, most)


def _found(constrained: Browsed, free: Browsed, schemas: str | None, most: int) -> Differential:
    notes: list[str] = []
    bodies = bodies_of(constrained, schemas, sorted(constrained.manifest.schemas), notes)
    return differential(constrained, free, bodies, most=most, notes=notes)
