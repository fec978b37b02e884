"""The runs of a differential: made for it from a job, or there already; and those of the order of choices."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import OutputError
from pipeline.evaluate.arms import arm_of, constrained_or_not, run_arm
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.differential import CONSTRAINED, FREE, Differential, differential
from pipeline.evaluate.order import Ordered, ordered, write_reordered
from pipeline.flow import Observer
from pipeline.job import JobConfig
from pipeline.jobfile import load_job
from pipeline.runtime.output.browse import Browsed

FOLDER = "differential"
"""Where the runs lie in the job's output."""


def from_job(
    path: str, limit: int | None, most: int, observe: Observer, orders: int = 0
) -> tuple[str, Differential, Ordered | None]:
    """Run a job in both ways, and hold the runs against each other; also the job's name. With `orders`, run it as often
    under other orders of choices, and once again as it is.

    Raises:
        OutputError: the schemas in another order cannot be written.
        GristmillError: as for `flow.run`.
    """
    job = load_job(path)
    arms = [
        arm_of(job, FOLDER, name, limit, **constrained_or_not(job, constrained=name == CONSTRAINED))
        for name in (CONSTRAINED, FREE)
    ]
    constrained, free = (run_arm(arm, observe) for arm in arms)
    bodies, notes = _bodies(constrained, job.schemas)
    found = differential(constrained, free, bodies, most=most, notes=notes)
    return job.name, found, _ordered(arms[0], constrained, bodies, (orders, most), observe) if orders else None


def _ordered(
    arm: JobConfig,
    base: Browsed,
    bodies: Mapping[str, Mapping[str, Any]],
    sizes: tuple[int, int],
    observe: Observer,
) -> Ordered:
    orders, most = sizes
    again = run_arm(arm.model_copy(update={"slot": f"{arm.slot} again"}), observe)
    runs, enums = [], 0
    for seed in range(orders):
        with _written(arm, bodies, seed) as (schemas, changed):
            runs.append(
                run_arm(arm.model_copy(update={"schemas": schemas, "slot": f"{arm.slot} order {seed}"}), observe)
            )
        enums = changed
    return ordered((base, again), runs, bodies, enums=enums, most=most)


@contextmanager
def _written(arm: JobConfig, names: Mapping[str, Any], seed: int) -> Iterator[tuple[str, int]]:
    """A directory of the schemas in another order: beside the runs if they are on disk, so that they can be looked at
    and replayed, else for the time of the run."""
    with tempfile.TemporaryDirectory() as passing:
        root = Path(passing) if "://" in arm.output else Path(arm.output, "_schemas")
        target = root / f"order-{seed}"
        try:
            enums = write_reordered(arm.schemas, names, seed, target)
        except OSError as error:
            raise OutputError(f"cannot write schemas to {target}: {error.strerror or error}.") from error
        yield str(target), enums


def from_runs(paths: tuple[str, str], schemas: str | None, most: int) -> tuple[str, Differential]:
    """Hold a constrained run against a free one, both given as for `gristmill evaluate`; also the job's name.

    Raises:
        OutputError: there is no committed run, one cannot be read, or no document is in both.
    """
    (constrained, place), (free, _) = run_of(paths[0]), run_of(paths[1])
    bodies, notes = _bodies(constrained, schemas or place)
    return constrained.manifest.job, differential(constrained, free, bodies, most=most, notes=notes)


def _bodies(run: Browsed, schemas: str | None) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """A run's schemas by name, and what is to be said of them."""
    notes: list[str] = []
    return bodies_of(run, schemas, sorted(run.manifest.schemas), notes), notes
