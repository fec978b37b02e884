"""What a run took: tokens from its rows, GPU hours from its times and its job. An estimate, and told as one."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from pipeline.job import JobConfig
from pipeline.records import Manifest
from pipeline.runtime.bundles import all_gpus


@dataclass(frozen=True, slots=True)
class Cost:
    """`seconds` passed between the run's start and its commit, pauses of a resumed run included; `engines` is how many
    at most, `gpus` how many GPUs they hold together: their product is the most that the run can have used. None:
    nobody knows. `price` is that of one GPU for an hour, in the reader's currency."""

    seconds: float | None
    engines: int | None
    gpus: float | None
    price: float | None

    @property
    def gpu_hours(self) -> float | None:
        """At most: all engines for all of the time."""
        return None if self.seconds is None or self.gpus is None else self.seconds * self.gpus / 3600

    @property
    def money(self) -> float | None:
        """What the GPU hours cost at the given price."""
        return None if self.gpu_hours is None or self.price is None else self.gpu_hours * self.price


def cost_of(manifest: Manifest, job: JobConfig | None, price: float | None) -> Cost:
    """The cost of a run, by the job that it kept, if it did."""
    engines = None if job is None else _engines(job)
    gpus = None if job is None or engines is None else engines * all_gpus(job)
    return Cost(seconds_of(manifest), engines, gpus, price)


def _engines(job: JobConfig) -> int | None:
    """How many engines at most; of a shared application nobody knows from the job."""
    places = {"local": job.placement.actors, "actors": job.placement.max_engines}
    return places.get(job.placement.kind)


def seconds_of(manifest: Manifest) -> float | None:
    """From the run's start to its commit; None if its times cannot be read."""
    try:
        began = datetime.datetime.fromisoformat(manifest.started)
        ended = datetime.datetime.fromisoformat(manifest.committed)
    except ValueError:
        return None
    return max(0.0, (ended - began).total_seconds())
