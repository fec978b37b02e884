"""UnitWorker: one unit from its description to its commit record. Knows no Ray: a simulation runs it as it is.

    committed? ── read ── saved outcomes ── extract the rest, many at a time ── save now and then ── write, commit

What a kill loses is what was not saved: `safety.save_seconds` and `safety.save_documents` bound it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from pipeline.engines import Engine
from pipeline.errors import EngineError
from pipeline.records import Completion, Document, Outcome, Prompt, Sampling
from pipeline.runtime.input import Unit, read_unit
from pipeline.runtime.output.gather import commit_key
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.output.run_record import reading
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.saving import LOOK_SECONDS, Batch, EngineLostError, Offload, Saving
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control_calls import ControlCalls
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.supervise.reports import Reports
from pipeline.runtime.supervise.sick import SICK_DOCUMENTS, check_engine, is_answer
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.route import poisoned

Ending = Literal["committed", "stopped", "drained"]
"""Of a unit: written; given up for now by `stop_if`; given up for now because the job is to end."""


class _NoEngine:
    """For documents that no engine is asked about."""

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        raise EngineError("a document without a plan was put before an engine. Please report this.")

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...


NO_ENGINE = _NoEngine()


class UnitWorker:
    """Works on units, several at once, in one process with one engine.

    `engine` gives the engine, started on its first call. `calls` and `guard` lead to the job's control.
    """

    def __init__(
        self,
        setup: Setup,
        engine: Callable[[], Awaitable[Engine]],
        guard: Guard,
        calls: ControlCalls,
        in_flight: int,
        offload: Offload = asyncio.to_thread,
    ) -> None:
        self._setup = setup
        self._engine = engine
        self._guard = guard
        self._calls = calls
        self._offload = offload
        self._room = asyncio.Semaphore(in_flight)
        self.events = setup.log(guard.process)
        self._reports = Reports(calls, guard.process, setup.plans)
        self._failures: list[Outcome] = []
        """The engine's, in a row: the latest of those since it last answered."""
        self._saving = Saving(setup.job.safety, in_flight, self._reports, offload)

    async def work(self, unit: Unit) -> Ending:
        """Extract, write and commit a unit, or as much of it as the job's control allows; the rest can be resumed.

        Raises:
            EngineLostError: the engine is gone; what finished is saved.
            GristmillError: what ends the job.
        """
        if not await self._gate(unit.schema):
            return "drained" if self._reports.orders.drain else "stopped"
        began = time.monotonic()
        if (batch := await self._begin(unit)) is None:
            return "committed"
        await self._reports.add(batch.finished[row] for row in batch.journal.news)
        rows = [row for row in range(len(batch.documents)) if row not in batch.finished]
        async with self._saving.of(batch):
            await self._extract(batch, rows)
            if len(batch.finished) < len(batch.documents):
                return "drained" if self._reports.orders.drain else "stopped"
            outcomes = [batch.finished[row] for row in range(len(batch.documents))]
            await self._doubt(outcomes)
            setup = self._setup
            await self._saving.begin_writing(batch)
            await self._offload(write_unit, unit, outcomes, setup.plans, setup.store, setup.run_id)
            self._saving.committed(batch)
        await self._offload(batch.journal.clear)
        await self._reports.flush(done_units=1)
        seconds = round(time.monotonic() - began, 3)
        self.events.write("unit_committed", unit=unit.id, schema=unit.schema, documents=unit.rows, seconds=seconds)
        await self._tell()
        return "committed"

    async def pilot(self, unit: Unit, rows: Sequence[int]) -> None:
        """Extract these rows and save them; the unit is committed by `work`.

        Raises:
            EngineLostError, GristmillError: as `work`.
        """
        if (batch := await self._begin(unit)) is None:
            return
        async with self._saving.of(batch):
            await self._extract(batch, [row for row in rows if row not in batch.finished], pilot=True)
        tried = [batch.finished[row] for row in rows if row in batch.finished]
        check_engine(tried)
        # Not before they are saved: the report may open the gate for the unit's other documents, in another process.
        await self._reports.add(tried, pilot=True)
        await self._reports.flush()
        await self._tell()

    async def _doubt(self, outcomes: Sequence[Outcome]) -> None:
        """Raises EngineError if the engine is sick. Few documents, all of which failed for it, wait for what becomes of
        the other units that this process works on."""
        asked = [outcome for outcome in outcomes if outcome.attempts]
        failed = bool(asked) and not any(map(is_answer, asked))
        while failed and self._saving.at_work and 0 < len(self._failures) < SICK_DOCUMENTS:
            await asyncio.sleep(LOOK_SECONDS)
        check_engine(outcomes)
        check_engine(self._failures if failed else ())

    async def _gate(self, schema: str) -> bool:
        """Whether documents of a schema may be worked on; waits for its pilot."""
        while not self._reports.orders.drain:
            state = await self._calls.gate(schema)
            if state != "wait":
                return state == "open"
            await self._reports.flush()  # its reply carries the order to drain
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def _committed(self, unit: Unit) -> bool:
        with reading(f"{self._setup.store.where}/{commit_key(unit.id)}"):
            return await self._offload(self._setup.store.size, commit_key(unit.id)) is not None

    async def _begin(self, unit: Unit) -> Batch | None:
        """A unit with what was saved of it; None if it is committed, which is asked last: who commits a unit clears
        what was saved afterwards."""
        documents = await self._offload(read_unit, unit, self._setup.job.input)
        journal = Journal(self._setup.store, unit, self._setup.plans, self._setup.session)
        saved = await self._offload(journal.read, documents)
        return None if await self._committed(unit) else Batch(unit, documents, journal, saved)

    async def _extract(self, batch: Batch, rows: Sequence[int], *, pilot: bool = False) -> None:
        """Bring rows of a batch to their outcomes, as far as the job's control allows. The first failure cancels the
        others."""
        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(self._one(batch, row, pilot))
        batch.asked = True

    async def _one(self, batch: Batch, row: int, pilot: bool) -> None:
        async with self._room:
            await self._saving.room()
            if self._reports.orders.drain or batch.unit.schema in self._reports.orders.stopped:
                return
            document = batch.documents[row]
            plan = self._setup.plan_of(document)
            engine = await self._engine() if plan.backend else NO_ENGINE
            async with self._guard.open(f"{batch.unit.id}/{row}") as healthy:
                outcome = await self._outcome(document, plan, engine) if healthy else poisoned(document, plan)
        self._finish(batch, row, outcome)
        await self._reports.add(() if pilot else [outcome])

    async def _outcome(self, document: Document, plan: DecodingPlan, engine: Engine) -> Outcome:
        try:
            return await self._setup.extract(document, plan, engine, self._setup.job)
        except EngineError as error:
            raise EngineLostError(str(error)) from error

    async def _tell(self) -> None:
        """See to it that events are written before this process may end, and that somebody hears of it if not."""
        if self.events.on:
            await self._offload(self.events.flush)
            if words := self.events.trouble():
                with contextlib.suppress(EngineError):  # nobody is there to hear it, which others find out
                    await self._calls.warn(words)

    def _finish(self, batch: Batch, row: int, outcome: Outcome) -> None:
        batch.finished[row] = outcome
        self.events.outcome(outcome)
        if not is_answer(outcome):
            self._failures = [*self._failures, outcome][-SICK_DOCUMENTS:]
            return
        if outcome.attempts:
            self._failures = []
        self._saving.add(batch, row)
