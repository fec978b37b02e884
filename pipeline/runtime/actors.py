"""ExtractActor: an engine and the documents in flight on it, in one Ray Data actor (placement `local`).

An engine has one grammar back end. Where the schemas of a job use both, a unit passes through an actor of each, which
works on the documents of its own back end and hands the others on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.engines import Engine
from pipeline.engines.several import build_all
from pipeline.errors import EngineError
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally
from pipeline.records import Document, Outcome
from pipeline.runtime.exchange import rows_of, to_table, unit_of
from pipeline.runtime.lookups import load_lookups
from pipeline.schema.plan import NO_PLAN, DecodingPlan
from pipeline.steps.judge import check_formats
from pipeline.steps.route import blames_engine

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.runtime.stream import Setup

REPORT_SECONDS = 1.0
SICK_DOCUMENTS = 8
"""An engine that fails on this many documents of a unit, and on no fewer than all, is taken for broken."""


def gpus_of(job: JobConfig) -> float:
    """GPUs of an actor. Its engines share them, as vLLM in one process takes the first ones that it sees."""
    return float(max(engine.num_gpus for engine in (job.engine, *job.other_engines().values())))


def documents_in_flight(max_num_seqs: int) -> int:
    """How many documents an actor works on at once: twice what the engine decodes at a time, so that it never idles
    while documents are tokenised and parsed."""
    return 2 * max_num_seqs


class ExtractActor:
    """Calls `extract` for every document of the units it is given, many at a time, in the units' order.

    The engine starts with the first unit rather than in the constructor: an exception there would reach the driver
    as the death of an actor, and the reason only as text.
    """

    def __init__(self, setup: Setup, progress: Any, backend: str) -> None:
        self._setup = setup
        self._backend = backend
        self._progress = progress
        self._room = asyncio.Semaphore(documents_in_flight(setup.job.engine.max_num_seqs))
        self._starting: asyncio.Task[Engine] | None = None
        self._extract = setup.extract
        self._unreported = Tally()
        self._reported = time.monotonic()
        progress.started.remote()

    async def __call__(self, batch: pa.Table) -> AsyncIterator[pa.Table]:
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        engine = await asyncio.shield(self._starting)
        rows = rows_of(batch)
        mine = {number: row for number, row in enumerate(rows) if isinstance(row, Document) and self._is_mine(row)}
        outcomes = await asyncio.gather(*(self._one(document, engine) for document in mine.values()))
        _check_engine(outcomes)
        self._report(unit_done=True)
        done = dict(zip(mine, outcomes, strict=True))
        yield to_table(unit_of(batch), [done.get(number, row) for number, row in enumerate(rows)])

    def _is_mine(self, document: Document) -> bool:
        """Documents that no engine will be asked about belong to whoever comes first."""
        return self._plan(document).backend in ("", self._backend)

    def _plan(self, document: Document) -> DecodingPlan:
        return self._setup.plans[document.schema] if document.schema else NO_PLAN

    async def _start(self) -> Engine:
        check_formats()
        if self._setup.job.lookups:
            lookups = await asyncio.to_thread(load_lookups, self._setup.job, self._setup.lookups or None)
            self._extract = partial(self._setup.extract, lookups=lookups)
        engine = build_all(self._setup.job, self._backend)
        if self._setup.record:
            from pipeline.engines.recorded import RecordingEngine

            engine = RecordingEngine(engine, self._setup.record)
        await engine.start([plan for plan in self._setup.plans.values() if plan.backend == self._backend])
        return engine

    async def _one(self, document: Document, engine: Engine) -> Outcome:
        async with self._room:
            outcome = await self._extract(document, self._plan(document), engine, self._setup.job)
        self._unreported.add(outcome)
        if time.monotonic() - self._reported > REPORT_SECONDS:
            self._report()
        return outcome

    def _report(self, *, unit_done: bool = False) -> None:
        self._progress.add.remote(self._unreported.to_json(), unit_done)
        self._unreported, self._reported = Tally(), time.monotonic()


def _check_engine(outcomes: list[Outcome]) -> None:
    """Stop before a sick engine turns a whole input into rejections that a rerun would take for done.

    Raises:
        EngineError: every document that an engine was asked about, and there were some, ended in the engine's failure
            or with an answer in the reasoning channel alone.
    """
    asked = [outcome for outcome in outcomes if outcome.attempts]
    misled = sum(map(_is_misled, asked))
    others = [outcome for outcome in asked if not _is_misled(outcome)]
    if len(asked) < SICK_DOCUMENTS or not all(map(blames_engine, others)):
        return
    if misled >= SICK_DOCUMENTS or not others:
        raise EngineError(
            f"{misled} of {len(asked)} documents have no answer, but text in the reasoning channel. The engine's "
            "reasoning parser does not fit the model, or the model thinks where it should not: in the engine's config, "
            "name the parser of this model's family, or none for a model that does not reason, or switch thinking off "
            "in its chat template. Nothing of this unit was written: run the command again then, with --fresh."
        )
    last = others[-1].problems[-1]
    raise EngineError(
        f"the engine failed on every one of {len(asked)} documents, the last time with {last.code}: {last.message}. "
        "They were not written: run the same command again when the engine works."
    )


def _is_misled(outcome: Outcome) -> bool:
    return outcome.status == "rejected" and any(problem.code == "channel_mismatch" for problem in outcome.problems)
