"""Killed, or failed by its storage, at any of its effects, a job goes on to the same end: every document once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from pipeline.errors import GristmillError
from pipeline.records import Manifest
from tests.crash.checker import committed, uncommitted
from tests.crash.core import IN_FLIGHT, Oracle, drive
from tests.crash.effects import LOOKS, MODES, DeathError, Mode, PerilousStore, Process
from tests.crash.memory import MemoryStore
from tests.crash.small_job import SmallJob, make

DOCUMENTS, UNIT = 13, 6
LOST = IN_FLIGHT + 1
"""So many answers a death may cost, when every outcome is saved at once."""
PAIRS = 60

Fault = tuple[int, Mode]
Peace = tuple[list[str], int]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallJob:
    return make(tmp_path_factory.mktemp("effects"), DOCUMENTS, UNIT, safety={"save_documents": 1})


@pytest.fixture(scope="module")
def peace(small: SmallJob) -> tuple[list[str], int]:
    """What a process calls, and how many answers it needs, if nothing happens to it."""
    world, process = World(small), Process()
    assert world.live(process) is not None
    return process.calls, world.engine.asked


@dataclass
class World:
    """What outlives processes."""

    small: SmallJob
    output: MemoryStore = field(default_factory=MemoryStore)
    engine: Oracle = field(default_factory=Oracle)

    def live(self, process: Process) -> Manifest | None:
        """One process: None if it dies or gives up. What it leaves is as it should be at any moment."""
        try:
            manifest = drive(self.small, PerilousStore(self.output, process), self.engine)
        except (DeathError, GristmillError):
            manifest = None
        process.end()
        objects = self.objects()
        judge = committed if "manifest.json" in objects else uncommitted
        assert judge(objects, self.small.rows) == []
        assert manifest is None or "manifest.json" in objects
        return manifest

    def objects(self) -> dict[str, bytes]:
        return self.output.below(f"run={self.small.identity.run_id}")

    def finish(self) -> None:
        """Go on to the manifest; then nothing is left to do."""
        assert self.live(Process()) is not None
        before, asked = self.objects(), self.engine.asked
        assert self.live(Process()) is not None
        assert (self.objects(), self.engine.asked) == (before, asked)


def faults(calls: list[str]) -> list[Fault]:
    """All that can go wrong."""
    found: list[Fault] = []
    for point, call in enumerate(calls):
        looks = call.split(" ")[0] in LOOKS
        found += [(point, mode) for mode in MODES if not (looks and mode not in ("die before", "fail before"))]
    return found


def test_a_process_that_nothing_happens_to_does_all_that_may_go_wrong(peace: Peace) -> None:
    """Else the tests below would show little."""
    calls, asked = peace
    assert asked > 2 * LOST
    done = {(call.split(" ")[0], call.split(" ")[1].split("/")[0]) for call in calls}
    expected = {("create", place) for place in ("run.json", "_lease", "_commits", "manifest.json")}
    expected |= {("put", place) for place in ("_lease", "_journal", "duplicates.json", "metrics.prom", "status=valid")}
    assert expected | {("delete", "_journal")} <= done


def test_whatever_goes_wrong_once_a_rerun_goes_on_to_the_end(small: SmallJob, peace: Peace) -> None:
    calls, asked = peace
    for point, mode in faults(calls):
        world = World(small)
        try:
            world.live(Process(point, mode))
            world.finish()
            assert world.engine.asked <= asked + LOST
        except BaseException as error:
            raise AssertionError(f"{mode} call {point}, {calls[point]}") from error


def test_whatever_goes_wrong_twice_a_rerun_goes_on_to_the_end(small: SmallJob, peace: Peace) -> None:
    calls, asked = peace
    dice = random.Random(5)
    for _ in range(PAIRS):
        first, second = (dice.choice(faults(calls)) for _ in range(2))
        world = World(small)
        try:
            world.live(Process(*first))
            world.live(Process(*second))
            world.finish()
            assert world.engine.asked <= asked + 2 * LOST
        except BaseException as error:
            raise AssertionError(f"{first}, {calls[first[0]]}, then {second}") from error
