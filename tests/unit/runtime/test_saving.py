"""However slow storage is, what a kill would lose stays within `safety.save_documents`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import Document, Outcome
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control import Control
from pipeline.runtime.supervise.control_calls import DirectControl
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.work import UnitWorker
from tests.crash.core import Oracle
from tests.crash.memory import MemoryStore
from tests.crash.small_job import SmallJob, make

IN_FLIGHT = 4
MOST = 12


class Trial:
    """A small job whose storage takes its time: `slow` says of a function how long, in turns of the loop."""

    def __init__(self, folder: Path, slow: Callable[[Any], float], unit: int = 10) -> None:
        self.small: SmallJob = make(folder, 30, unit, safety={"save_documents": MOST, "save_seconds": 1000})
        self.run = self.small.open(MemoryStore())
        self.slow = slow
        self.finished = 0
        self.most_lost = 0

    async def work(self) -> None:
        calls = DirectControl(Control(self.small.job.stop_if))
        await calls.born("p", "node")
        setup = Setup(self.small.job, self.small.plans, self.run.store, self.run.identity.run_id, None, self._extract)
        worker = UnitWorker(setup, _oracle, Guard("p", calls), calls, IN_FLIGHT, offload=self._offload)
        await asyncio.gather(*(worker.work(unit) for unit in self.small.found.units))

    async def _extract(self, document: Document, plan: Any, engine: Any, config: Any, **_: Any) -> Outcome:
        from pipeline.flow import extract

        outcome = await extract(document, plan, engine, config)
        self.finished += 1
        self.most_lost = max(self.most_lost, self.finished - self._safe())
        return outcome

    async def _offload(self, function: Any, *arguments: Any) -> Any:
        await asyncio.sleep(self.slow(function))
        return function(*arguments)

    def _safe(self) -> int:
        """Documents that are saved or committed."""
        done = self.run.committed_units()
        count = sum(unit.rows for unit in self.small.found.units if unit.id in done)
        for unit in self.small.found.units:
            if unit.id not in done:
                documents = read_unit(unit, self.small.job.input)
                count += len(Journal(self.run.store, unit, self.small.plans).read(documents))
        return count


async def _oracle() -> Oracle:
    return Oracle()


@pytest.mark.parametrize("what", ["writing a unit", "saving", "both"])
def test_a_kill_at_any_moment_loses_no_more(tmp_path: Path, what: str) -> None:
    def slow(function: Any) -> float:
        writes, saves = function is write_unit, getattr(function, "__name__", "") == "save"
        return 0.3 if (writes and what != "saving") or (saves and what != "writing a unit") else 0.0

    trial = Trial(tmp_path, slow)
    asyncio.run(trial.work())
    assert trial.finished == 30
    assert 1 < trial.most_lost <= MOST
    assert len(trial.run.committed_units()) == len(trial.small.found.units)
