"""One process that works a small job off, without Ray: the units one after the other, then the manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pipeline.engines import Engine
from pipeline.records import Completion, Manifest, Prompt, Sampling
from pipeline.runtime.lease import Lease
from pipeline.runtime.store import Store
from pipeline.runtime.supervise.control import Control
from pipeline.runtime.supervise.control_calls import DirectControl
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.work import UnitWorker
from pipeline.schema.plan import DecodingPlan
from tests.crash.small_job import SmallJob, answer_to

IN_FLIGHT = 2


class Oracle:
    """An engine that answers at once, and always the same; it counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.asked += 1
        return answer_to(prompt, plan, sampling)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


async def at_once(function: Any, *arguments: Any) -> Any:
    """Where a process has a single thread."""
    return function(*arguments)


def drive(small: SmallJob, output: Store, engine: Engine) -> Manifest:
    """What `flow.run` and its processes do to a job, in one process, from the lease to the manifest."""
    run = small.open(output)
    if (manifest := run.manifest()) is not None:
        run.sweep_late()
        return manifest
    clock = Clock()
    lease = Lease.acquire(run.store, sleep=clock.sleep, monotonic=clock.monotonic)
    try:
        done = run.committed_units()
        asyncio.run(_work(small, run.store, engine, done))
        return small.commit(run)
    finally:
        lease.release()


async def _work(small: SmallJob, store: Store, engine: Engine, done: set[str]) -> None:
    calls = DirectControl(Control(small.job.stop_if))
    await calls.born("p", "node")

    async def started() -> Engine:
        return engine

    guard = Guard("p", calls)
    worker = UnitWorker(small.setup(store), started, guard, calls, IN_FLIGHT, offload=at_once)
    for unit in small.found.units:
        if unit.id not in done:
            assert await worker.work(unit) == "committed"
