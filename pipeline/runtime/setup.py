"""Setup: what every process of a run is given."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.job import JobConfig
from pipeline.observe.events.line import Hook
from pipeline.observe.events.log import OFF, Log
from pipeline.observe.metrics.numbers import Speeds
from pipeline.records import Document, Outcome
from pipeline.runtime.bundles import all_gpus
from pipeline.runtime.lookups import Digests
from pipeline.runtime.store import Store
from pipeline.schema.plan import NO_PLAN, DecodingPlan

Extract = Callable[..., Coroutine[Any, Any, Outcome]]
"""Called with a document, its plan, an engine and the job; `lookups` by name."""


@dataclass(frozen=True)
class Setup:
    """It travels to workers, so it holds no documents, and of `lookups` only the digests, by which they check what they
    load. `store` is the run's directory, `record` where completions are saved, `speeds` what the trials of schemas
    measured, `session` tells this command from others that work or worked on the run. `hook` sees each event before it
    is written."""

    job: JobConfig
    plans: Mapping[str, DecodingPlan]
    store: Store
    run_id: str
    record: str | None
    extract: Extract
    lookups: Digests = field(default_factory=dict)
    speeds: Speeds = field(default_factory=dict)
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    hook: Hook | None = None

    def log(self, process: str) -> Log:
        """Where a process of the run writes events."""
        return log_of(self.job, self.run_id, process, self.hook)

    def plan_of(self, document: Document) -> DecodingPlan:
        """What a document is decoded under; one that names no schema has an empty plan."""
        return self.plans[document.schema] if document.schema else NO_PLAN

    def backend_of(self, schema: str) -> str:
        """The grammar back end of a schema's plan; "" where no engine will be asked."""
        return self.plans[schema].backend if schema else ""

    def plans_for(self, backend: str) -> list[DecodingPlan]:
        """The plans that an engine of this back end serves."""
        return [plan for plan in self.plans.values() if plan.backend == backend]

    @property
    def processes(self) -> int:
        """How many processes call `extract`."""
        placement = self.job.placement
        return placement.actors if placement.kind == "local" else placement.cpu_actors or placement.max_engines

    @property
    def in_flight(self) -> int:
        """How many documents a process works on at once: twice what its engine, or its share of the engines, decodes
        at a time, so that none idles while documents are tokenised and parsed."""
        placement, at_once = self.job.placement, self.job.engine.max_num_seqs
        if placement.kind == "serve":  # a pool grows by what is under way
            return max(1, math.ceil(at_once * placement.max_engines / self.processes))
        engines = 1 if placement.kind == "local" else placement.max_engines / self.processes
        return math.ceil(2 * at_once * max(1, engines))

    @property
    def gpus(self) -> float:
        """GPUs of an engine's process."""
        return all_gpus(self.job)


def log_of(job: JobConfig, run_id: str, process: str, hook: Hook | None = None) -> Log:
    """Where a process writes the events of a run, which has no id yet where it failed too early."""
    if job.events.path is None:
        return OFF
    return Log(job.events, {"job": job.name, "run": run_id, "process": process}, hook)
