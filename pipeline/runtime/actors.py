"""ExtractActor: a process of a run, in a Ray Data actor. All that it does is in `work.UnitWorker`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from pipeline.engines import Engine
from pipeline.engines.several import build_all
from pipeline.engines.watch import watched
from pipeline.observe.events.log import OFF, Log
from pipeline.runtime.input import Unit
from pipeline.runtime.lookups import load_lookups
from pipeline.runtime.saving import EngineLostError
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control_calls import RayControl
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.work import UnitWorker
from pipeline.steps.judge import check_formats

if TYPE_CHECKING:
    import pyarrow as pa

ENGINE_LOST = 70
"""Exit status of a process that gives up because its engine is gone (EX_SOFTWARE). Ray starts another in its place."""


class ExtractActor:
    """Works on the units that it is given, several at once. `pool` is what leads to engines in other processes; without
    it, the engine starts here, with the first document that needs one rather than in the constructor: an exception
    there would reach the driver as the death of an actor, and the reason only as text.
    """

    def __init__(self, setup: Setup, backend: str, control: Any, pool: Engine | None) -> None:
        import ray

        context = ray.get_runtime_context()
        self._process = f"extract-{context.get_actor_id()}"
        self._setup = setup
        self._backend = backend
        self._pool = pool
        self._calls = RayControl(control)
        self._node = str(context.get_node_id())
        self._worker: asyncio.Task[UnitWorker] | None = None
        self._engine: asyncio.Task[Engine] | None = None
        self._events = OFF

    async def __call__(self, batch: pa.Table) -> AsyncIterator[pa.Table]:
        import pyarrow as pa

        if self._worker is None:
            self._worker = asyncio.create_task(self._begin())
        worker = await asyncio.shield(self._worker)
        endings = []
        for item in batch.to_pylist():
            unit = Unit.from_json(json.loads(item["unit"]))
            try:
                if item["rows"]:
                    await worker.pilot(unit, json.loads(item["rows"]))
                else:
                    endings.append(await worker.work(unit))
            except EngineLostError as error:
                kind, text = self._setup.job.engine.engine, {"message": str(error)}
                self._events.write("engine_lost", text, engine=kind, error=type(error.__cause__ or error).__name__)
                await self._calls.report(self._process, {}, reason=str(error))
                await asyncio.to_thread(self._events.flush)
                leave()
        yield pa.table({"ending": pa.array(endings, pa.string())})

    async def _begin(self) -> UnitWorker:
        """The worker, announced to the job's control: what this process had open before it died is charged there."""
        await self._calls.born(self._process, self._node)
        check_formats()
        setup = self._setup
        if setup.job.lookups:
            lookups = await asyncio.to_thread(load_lookups, setup.job, setup.lookups or None)
            setup = dataclasses.replace(setup, extract=partial(setup.extract, lookups=lookups))
        worker = UnitWorker(setup, self._started, Guard(self._process, self._calls), self._calls, setup.in_flight)
        self._events = worker.events
        return worker

    async def _started(self) -> Engine:
        if self._engine is None:
            self._engine = asyncio.create_task(self._start())
        return await asyncio.shield(self._engine)

    async def _start(self) -> Engine:
        setup = self._setup
        engine = self._pool or watched(build_all(setup.job, self._backend), setup.job.safety.engine_stall_seconds)
        if setup.record:
            from pipeline.engines.recorded import RecordingEngine

            engine = RecordingEngine(engine, setup.record)
        with starting(OFF if self._pool else self._events, setup.job.engine.engine, self._backend):
            await engine.start(setup.plans_for(self._backend))
        return engine


@contextmanager
def starting(events: Log, engine: str, backend: str) -> Iterator[None]:
    """Tells whether an engine started, which happens inside."""
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        text = {"message": str(error)}
        events.write("engine_failed", text, engine=engine, backend=backend, error=type(error).__name__)
        raise
    seconds = round(time.monotonic() - began, 3)
    events.write("engine_started", engine=engine, backend=backend, seconds=seconds)


def leave() -> NoReturn:
    """End this process and those that it started, at once: the engine's own may be stuck and hear nothing."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(ENGINE_LOST)
