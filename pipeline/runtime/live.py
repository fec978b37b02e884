"""Live: a run's numbers while it is under way, every few seconds, for Ray's metrics and for whoever listens.

Nothing here can end a job. What fails is told once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pipeline import __version__
from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.labels import SchemaLabels
from pipeline.observe.metrics.numbers import Info, Numbers, RunState, numbers_of
from pipeline.observe.tally import Tally
from pipeline.runtime.input import InputScan
from pipeline.runtime.ray_metrics import EXPORT_SECONDS, RayMetrics
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control import Look


class Live:
    """The numbers of one run. `done_units` are those that were committed before; `tell` is called with ("numbers",
    Numbers), and with ("warned", words)."""

    def __init__(self, setup: Setup, found: InputScan, done_units: int, tell: Callable[[str, object], object]) -> None:
        self._setup, self._found, self._done, self._tell = setup, found, done_units, tell
        self.labels = SchemaLabels.of_run(
            found.schema_counts, {name: plan.schema_digest for name, plan in setup.plans.items()}
        )
        self._began = time.monotonic()
        self._next = self._began
        self._told = False
        self._ray = RayMetrics()

    def show(self, look: Look, ask: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Make the numbers of this moment, if it is time or `now`. `ask` gives the JSON of each label's tally."""
        if not now and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EXPORT_SECONDS
        try:
            numbers = self._numbers(look, {name: Tally.from_json(one) for name, one in ask().items()})
            self._tell("numbers", numbers)
            self._ray.export(families_of(numbers))
        except Exception as error:  # a run is worth more than its metrics
            if not self._told:
                self._told = True
                self._tell("warned", f"the run's metrics are not up to date ({error!r}); the run goes on")

    def _numbers(self, look: Look, tallies: Mapping[str, Tally]) -> Numbers:
        import ray

        job = self._setup.job
        state = RunState(
            up=1,
            elapsed_seconds=time.monotonic() - self._began,
            documents=self._found.documents,
            units=len(self._found.units),
            units_done=min(self._done + look.done_units, len(self._found.units)),
            poison_documents=look.poison,
            info=Info(__version__, ray.__version__, job.engine.engine, job.placement.kind),
            idle_seconds=look.idle_seconds,
            engine_deaths=look.all_deaths,
            stopped_schemas=len(look.stopped),
        )
        return numbers_of(job.name, self.labels, tallies, self._setup.speeds, state)
