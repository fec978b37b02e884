"""One life of a worker process: the real UnitWorker and Guard, with an engine that plays what the seed says."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.engines.watch import WatchedEngine
from pipeline.errors import EngineError
from pipeline.records import Completion, Document, Outcome, Prompt, Sampling
from pipeline.runtime.input import Unit
from pipeline.runtime.saving import EngineLostError
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control_calls import ControlCalls
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.work import UnitWorker
from pipeline.schema.plan import DecodingPlan
from tests.simulation.material import extract
from tests.simulation.strands import DeadError, offload
from tests.simulation.weather import STALL_SECONDS

if TYPE_CHECKING:
    from tests.simulation.driver import Driver
    from tests.simulation.world import World

Item = tuple[Unit, tuple[int, ...]]
"""A unit to be worked on; with rows: its part in the pilot."""

_begun: contextvars.ContextVar[float] = contextvars.ContextVar("begun")
CALL_SECONDS, LOST_SECONDS = 0.005, 30.0


class Calls(ControlCalls):
    """The way to the control of a driver."""

    def __init__(self, world: World, driver: Driver, process: Process) -> None:
        self._world, self._driver, self._process = world, driver, process

    async def ask(self, name: str, *arguments: Any) -> Any:
        await self._way()
        made = getattr(self._driver.control, name)(*arguments)
        await self._way()
        return made

    async def _way(self) -> None:
        seconds = LOST_SECONDS if self._process.detached else CALL_SECONDS
        await asyncio.sleep(self._world.dice.expovariate(1 / seconds))
        if self._process.dead:
            raise DeadError
        if self._driver.gone or self._process.detached:
            raise EngineError("the job's control is gone")


class Process:
    """Dead means: nothing of it does anything any more. Detached: all take it for dead, while it goes on by itself."""

    def __init__(self, world: World, driver: Driver, name: str, node: str) -> None:
        self.world, self.driver, self.name, self.node = world, driver, name, node
        self.dead = self.detached = False
        self.died_at = float("inf")
        self.ended = asyncio.Event()
        self.items: set[asyncio.Task[Any]] = set()
        self.calls = Calls(world, driver, self)
        self._engine = Engine(self)
        self._watched = WatchedEngine(self._engine, STALL_SECONDS, clock=world.loop.time)
        job = driver.job
        setup = Setup(job, world.material.plans, driver.store, world.material.identity.run_id, None, self._extract)
        guard = Guard(name, self.calls)
        in_flight = world.weather.in_flight
        self._worker = UnitWorker(setup, self._start, guard, self.calls, in_flight, offload=partial(offload, self))

    async def do(self, item: Item) -> None:
        """Work on an item, as ExtractActor does."""
        unit, rows = item
        _begun.set(self.world.loop.time())
        try:
            await (self._worker.pilot(unit, rows) if rows else self._worker.work(unit))
        except EngineLostError as error:
            await self.calls.report(self.name, {}, reason=str(error))
            if self._engine.faulty:
                self.world.charge(self, self.world.blamed)
            self.die()
            raise DeadError from error

    def die(self, *, with_node: bool = False) -> None:
        """At once, and for good. What it had sent to the storage may still arrive."""
        if self.dead:
            return
        if not (with_node or self.detached):
            self.world.charge(self, self.world.deaths)
        self.dead = True
        self.died_at = min(self.died_at, self.world.loop.time())
        self.ended.set()
        for task in self.items:
            task.cancel()

    def detach(self) -> None:
        """Nobody hears of it any more, but the storage, until it dies indeed."""
        self.world.charge(self, self.world.deaths)
        self.detached = True
        self.died_at = self.world.loop.time()
        self.ended.set()
        self.world.loop.call_later(self.world.dice.random() * 60, self.die)

    async def _start(self) -> WatchedEngine:
        return self._watched

    async def _extract(self, document: Document, plan: DecodingPlan, engine: Any, config: Any) -> Outcome:
        outcome = self.world.outcome_of(await extract(document, plan, engine, config))
        if self.dead:
            raise DeadError
        self.world.history.append((document.source, self, _begun.get(), self.world.loop.time(), outcome))
        return outcome


class Engine:
    """Answers after a while; dies, sticks, aborts; some documents kill it or make it stick, whenever it has them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lost = self._stuck = False
        self.faulty = False
        """It failed by itself, whatever document it had."""

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        world, text = self._process.world, prompt.user
        # One that takes as long as a stuck one is taken for it, as it should be.
        await asyncio.sleep(min(STALL_SECONDS / 2, world.dice.expovariate(1 / world.weather.answer_seconds)))
        if self._process.dead:
            raise DeadError
        if text in world.poison:
            self._process.die()
            raise DeadError
        chance = world.dice.random()
        if chance < world.weather.engine_deaths:
            self.faulty = True
            if world.dice.random() < 0.7:
                self._lost = True
            else:
                self._stuck = True
        if self._stuck or text in world.sticky:
            self._stuck = True
            await asyncio.Event().wait()
        if self._lost:
            raise EngineError("the engine died")
        if world.dice.random() < world.weather.aborts:
            return Completion("", world.dice.choice(["abort", "length"]), constrained=False)
        return Completion(text, "stop", constrained=False)
