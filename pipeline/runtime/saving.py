"""Saving: what finished of units that are not committed yet is saved now and then, so that a kill loses little.

A document counts as unsaved from when it finished until it is in the journal, or its unit is committed: writing a unit
may take minutes, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import EngineError, OutputError
from pipeline.jobplacement import SafetyConfig
from pipeline.records import Document, Outcome
from pipeline.runtime.input import Unit
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.supervise.reports import Reports

Offload = Callable[..., Awaitable[Any]]
"""Runs a blocking function elsewhere, as `asyncio.to_thread` does."""

LOOK_SECONDS = 1.0


class EngineLostError(Exception):
    """The engine died or is stuck: this process cannot go on, another one can."""


@dataclass
class Batch:
    """A unit at work: its documents, and the outcomes so far by row. `asked`: all rows have come to an end; `writing`:
    the unit is being written."""

    unit: Unit
    documents: Sequence[Document]
    journal: Journal
    finished: dict[int, Outcome]
    unsaved: set[int] = field(default_factory=set)
    since: float = 0.0
    """When the first of the unsaved ones finished (the loop's clock)."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    saving: asyncio.Task[None] | None = None
    asked: bool = False
    writing: bool = False
    over: bool = False


class Saving:
    """The batches of one process, which works on `in_flight` documents at a time. With the unsaved ones they are at
    most `save_documents`: half-way there they are saved, and if storage is too slow for that, nothing new begins."""

    def __init__(self, safety: SafetyConfig, in_flight: int, reports: Reports, offload: Offload) -> None:
        self._seconds = safety.save_seconds
        self._most = max(1, safety.save_documents - in_flight)
        self._less = asyncio.Event()
        self._reports = reports
        self._offload = offload
        self._batches: list[Batch] = []

    @property
    def at_work(self) -> bool:
        """Whether some batch has rows that have not come to an end."""
        return any(not batch.asked for batch in self._batches)

    @contextlib.asynccontextmanager
    async def of(self, batch: Batch) -> AsyncIterator[None]:
        """What finishes inside is saved now and then, also while the unit is written, and what is not at its end,
        however that comes. What fails inside comes out alone: the worst of several."""
        self._batches.append(batch)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep(batch))
                yield
                batch.over = True
                batch.wake.set()
        except BaseExceptionGroup as failures:
            raise _worst(failures) from None
        finally:
            batch.over = True
            try:
                await self._settled(batch)
                if not batch.writing:  # else it is committed, or storage failed just now
                    await self._save(batch)
            finally:
                self._batches.remove(batch)
                self._less.set()

    async def room(self) -> None:
        """Wait until another document may begin."""
        while self._unsaved() >= self._most:
            self._less.clear()
            await self._less.wait()

    async def begin_writing(self, batch: Batch) -> None:
        """The unit is to be written. A save that is under way ends first.

        Raises:
            OutputError: it failed.
        """
        if batch.saving is not None:
            await asyncio.shield(batch.saving)
        batch.writing = True

    def committed(self, batch: Batch) -> None:
        """Nothing of it can be lost any more."""
        batch.unsaved.clear()
        self._less.set()

    def add(self, batch: Batch, row: int) -> None:
        """A row finished."""
        if not batch.unsaved:
            batch.since = asyncio.get_running_loop().time()
        batch.unsaved.add(row)
        if 2 * self._unsaved() >= self._most:
            for one in self._batches:
                one.wake.set()

    async def _keep(self, batch: Batch) -> None:
        """Until the batch is over; keeps the orders fresh, too."""
        clock = asyncio.get_running_loop().time
        while not batch.over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOK_SECONDS, self._seconds)):
                    await batch.wake.wait()
            try:
                await self._reports.add(())
                # While it is written, only if that takes long: others wait meanwhile, if there are too many.
                due = self._reports.orders.drain or (batch.wake.is_set() and not batch.writing)
                batch.wake.clear()
                if batch.unsaved and not batch.over and (due or clock() - batch.since >= self._seconds):
                    await self._save(batch)
            except (OutputError, EngineError):
                if not batch.writing:  # a write that is under way tells by itself what is wrong, and is not broken off
                    raise

    async def _save(self, batch: Batch) -> None:
        """Whoever waits for it may be cancelled; the save goes on."""
        if batch.unsaved:
            batch.saving = asyncio.create_task(self._write(batch), name="saving finished documents")
            await asyncio.shield(batch.saving)

    async def _write(self, batch: Batch) -> None:
        rows = sorted(batch.unsaved)
        await self._offload(batch.journal.save, {row: batch.finished[row] for row in rows})
        batch.unsaved.difference_update(rows)
        batch.since = asyncio.get_running_loop().time()
        self._less.set()

    async def _settled(self, batch: Batch) -> None:
        """Wait for a save that nobody waits for any more. What it failed of is tried again, and told then."""
        if batch.saving is not None:
            await asyncio.wait([batch.saving])
            if not batch.saving.cancelled():
                batch.saving.exception()

    def _unsaved(self) -> int:
        return sum(len(batch.unsaved) for batch in self._batches)


def _worst(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """What to tell of several: the engine's loss last, since any other one ends the job."""
    leaves = list(_leaves(failures))
    return next((error for error in leaves if not isinstance(error, EngineLostError)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
