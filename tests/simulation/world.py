"""A world in which a job is worked off to its end, whatever happens; then its end is looked at."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pipeline.job import JobConfig
from pipeline.records import Outcome
from tests.simulation.checks import complaints_of
from tests.simulation.driver import Driver
from tests.simulation.loop import VirtualLoop
from tests.simulation.material import VARIANTS, material
from tests.simulation.process import Process
from tests.simulation.storage import Objects, SimulatedStore, Wire
from tests.simulation.strands import DeadError
from tests.simulation.weather import NEVER, Weather, forecast

Deaths: TypeAlias = tuple[int, str]
"""The number of a driver, and a document's key on its ledger."""

WILD = 3
"""After so many drivers nothing goes wrong any more that is not the documents' fault."""
DRIVERS = 12
QUIET_SECONDS = 400.0
MOST_SECONDS, MOST_CALLBACKS = 20_000.0, 400_000


class World:
    """`history` has (source, process, when its unit was begun there, when it was through, outcome) of documents."""

    objects_kind = Objects

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.loop = VirtualLoop(self.dice, MOST_SECONDS, MOST_CALLBACKS)
        self.material = material(self.dice.randrange(VARIANTS))
        self.weather = self.forecast = forecast(self.dice)
        texts = self.dice.sample(self.material.texts, min(3, len(self.material.texts)))
        self.poison = frozenset(texts[: self.weather.poison])
        self.sticky = frozenset(texts[self.weather.poison :][: self.weather.sticky])
        self.objects = self.objects_kind()
        self.store = SimulatedStore(self.objects, self._wire, self.dice, self._later)
        self.drivers: list[Driver] = []
        self.history: list[tuple[str, Process, float, float, Any]] = []
        self.deaths: Counter[Deaths] = Counter()
        """How often a document was open in a process that died, under which driver; not of its node's death."""
        self.blamed: Counter[Deaths] = Counter()
        """How often the process died of something that no document did."""
        self.endings: list[str] = []
        self.complaints: list[str] = []
        self._pauses: list[asyncio.Future[None]] = []
        self._nodes: Counter[int] = Counter()
        self._dead_nodes: set[str] = set()

    def complain(self, what: str) -> None:
        self.complaints.append(f"at {self.loop.time():.1f} s: {what}")

    def play(self) -> list[str]:
        """The whole story; what was wrong with it."""
        self.loop.set_exception_handler(self._unhandled)
        with _drawn(self.dice):
            try:
                self.loop.run_until_complete(self._story())
            finally:
                for driver in self.drivers:
                    driver.end()
                self.loop.end()
        return [*self.complaints, *self.objects.complaints, *complaints_of(self)]

    async def _story(self) -> None:
        troubles = [asyncio.ensure_future(self._trouble(one)) for one in self._troubles()]
        for number in range(DRIVERS):
            if number == WILD:
                self._clear_up(troubles)
            ending = await self._drive(calm=number >= WILD)
            if ending == "committed":
                break
            await asyncio.sleep(self.dice.random() * 10)
        else:
            self.complain(f"not committed after {DRIVERS} drivers: {self.endings}")
        self._clear_up(troubles)
        await asyncio.sleep(QUIET_SECONDS)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            self.complain(f"still at it: {task!r}")
        if self.complaints:
            return
        await self._rerun()

    async def _drive(self, *, calm: bool) -> str:
        driver = Driver(self, calm=calm)
        self.drivers.append(driver)
        task = driver.start()
        rivals = []
        if self.weather.rival or self.weather.pause:
            rivals = [asyncio.ensure_future(self._rival())]
        ending = await task
        self.endings.append(ending)
        for one in rivals:
            if "committed" in (other := await one):
                ending = other
        return ending

    async def _rival(self) -> str:
        await asyncio.sleep(self.dice.random() * 20)
        driver = Driver(self, calm=False)
        self.drivers.append(driver)
        self.endings.append("rival " + await driver.start())
        return self.endings[-1].removeprefix("rival ")

    async def _rerun(self) -> None:
        """What came late is swept by the first rerun; the second one finds nothing to do."""
        for number in range(2):
            before = self.objects.writes
            if (ending := await self._drive(calm=True)) != "committed":
                self.complain(f"a rerun of a committed run ends with {ending}")
            if number and self.objects.writes > before:
                self.complain("a rerun of a committed run wrote")
        await asyncio.sleep(QUIET_SECONDS)

    def job_for(self, weather: Weather) -> JobConfig:
        """The job with what the weather sets."""
        job = self.material.job
        rule = {"rejection": 0.3 if weather.stop_rule else None, "after": 3, "truncation": None, "first_pass": None}
        saving = {"save_seconds": weather.save_seconds, "save_documents": weather.save_documents}
        return job.model_copy(
            update={
                "stop_if": job.stop_if.model_copy(update=rule),
                "safety": job.safety.model_copy(update=saving),
                "pilot": job.pilot.model_copy(update={"documents": weather.pilot}),
            }
        )

    def outcome_of(self, outcome: Outcome) -> Outcome:
        """What a process makes of a document's outcome; here, nothing else."""
        return outcome

    def node(self, slot: int) -> str:
        """The node that the processes of a slot are on now."""
        return f"node {slot}.{self._nodes[slot]}"

    def node_lives(self, node: str) -> bool:
        return node not in self._dead_nodes

    def charge(self, process: Process, deaths: Counter[Deaths]) -> None:
        """A process dies: count it for all that it has open."""
        if hasattr(process.driver, "control"):
            number = self.drivers.index(process.driver)
            deaths.update((number, key) for key in process.driver.control.open_in(process.name))

    def holders(self, driver: Driver) -> None:
        """A driver has got the lease."""
        for other in self.drivers:
            fair = self.forecast.reliable and self.forecast.wire.seconds < 1 and not other.ever_paused
            if other is not driver and other.holds and not other.dead and fair:
                self.complain("two drivers hold one run")

    def _troubles(self) -> Iterator[tuple[float, Callable[[], None]]]:
        yield self.weather.kills, self._kill
        yield self.weather.node_deaths, self._kill_node
        yield self.weather.driver_deaths, self._kill_driver
        yield (15.0 if self.weather.pause else NEVER), self._pause
        yield (20.0 if self.weather.interrupt else NEVER), self._interrupt

    async def _trouble(self, trouble: tuple[float, Callable[[], None]]) -> None:
        mean, happen = trouble
        while mean < NEVER:
            await asyncio.sleep(self.dice.expovariate(1 / mean))
            happen()

    def _alive(self) -> list[Process]:
        return [process for driver in self.drivers for process in driver.processes if not process.dead]

    def _kill(self) -> None:
        if alive := self._alive():
            process = self.dice.choice(alive)
            self.charge(process, self.blamed)
            (process.detach if self.dice.random() < 0.3 and not process.detached else process.die)()

    def _kill_node(self) -> None:
        slot = self.dice.randrange(self.weather.processes)
        node = self.node(slot)
        self._dead_nodes.add(node)
        self._nodes[slot] += 1
        for process in self._alive():
            if process.node == node:
                process.die(with_node=True)

    def _kill_driver(self) -> None:
        if alive := [driver for driver in self.drivers if not driver.dead and not driver.over]:
            self.dice.choice(alive).die()

    def _pause(self) -> None:
        if alive := [driver for driver in self.drivers if not driver.dead and not driver.over]:
            pause = self.dice.choice(alive).pause(self.dice.choice([10.0, 60.0]))
            self._pauses.append(asyncio.ensure_future(pause))

    def _interrupt(self) -> None:
        for driver in self.drivers:
            driver.drains = driver.drains or not driver.over

    def _clear_up(self, troubles: list[asyncio.Task[None]]) -> None:
        self.weather = self.weather.calm()
        for task in troubles:
            task.cancel()

    def _wire(self) -> Wire:
        stalls = self.weather.stalls and self.dice.random() < self.weather.stalls
        return Wire(30.0, self.weather.wire.faults, self.weather.wire.late) if stalls else self.weather.wire

    def _later(self, seconds: float, perform: Callable[[], Any]) -> None:
        self.loop.call_later(seconds, perform)

    def _unhandled(self, loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, DeadError) and not isinstance(error, OSError | asyncio.CancelledError):
            self.complain(f"nobody was told: {context.get('message')} {error!r}")


@contextmanager
def _drawn(dice: random.Random) -> Iterator[None]:
    """Names that are unique by chance are drawn by the seed."""
    unique = uuid.uuid4
    uuid.uuid4 = lambda: uuid.UUID(int=dice.getrandbits(128), version=4)
    try:
        yield
    finally:
        uuid.uuid4 = unique
