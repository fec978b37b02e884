"""A driver: `flow.run` and `stream` without Ray, with processes that Ray would restart."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from pipeline.errors import EngineError, GristmillError, RunBusyError, StoppedError
from pipeline.records import Manifest
from pipeline.runtime.lease import BEAT_SECONDS, Lease
from pipeline.runtime.output.commit import Run, open_run
from pipeline.runtime.store import Store
from pipeline.runtime.supervise.control import Control
from pipeline.runtime.supervise.pilot import choose
from tests.simulation.process import Item, Process
from tests.simulation.strands import DeadError, current, offload

if TYPE_CHECKING:
    from tests.simulation.world import World

MAX_DEATHS = 3
DRAIN_SECONDS = 5.0
START_SECONDS, RESTART_SECONDS, POLL_SECONDS = 0.5, 2.0, 1.0


class InterruptError(GristmillError):
    """Ctrl-C."""


class Driver:
    """`dead`: nothing of it does anything any more. `gone`: nor does its control, which its processes outlive."""

    def __init__(self, world: World, *, calm: bool) -> None:
        self.world, self.calm = world, calm
        self.weather = world.weather
        self.job = world.job_for(self.weather)
        self.dead = self.gone = self.holds = self.lost = self.paused = self.over = False
        self.ever_paused = False
        self.drains = False
        self.store: Store
        self.control: Control
        self.processes: list[Process] = []
        self.failure: BaseException | None = None
        self._pending: deque[Item] = deque()
        self._left = 0
        self._main: asyncio.Task[str] | None = None

    def start(self) -> asyncio.Task[str]:
        """How it ends: "committed", or why not."""
        self._main = self.world.loop.create_task(self._told())
        return self._main

    def die(self) -> None:
        """At once; its control and its processes notice after a while."""
        self.dead = True
        if self._main is not None:
            self._main.cancel()
        self._bury(self.world.dice.random() * 10)

    async def pause(self, seconds: float) -> None:
        """It stands still, as in a machine that is suspended. Its processes are elsewhere, and go on."""
        self.paused = self.ever_paused = True
        await asyncio.sleep(seconds)
        self.paused = False

    def _bury(self, seconds: float) -> None:
        for process in self.processes:
            self.world.loop.call_later(seconds * self.world.dice.random(), process.die)
        self.world.loop.call_later(seconds, self._go)

    def end(self) -> None:
        """The world ends."""
        self.dead = True
        self._go()

    def _go(self) -> None:
        self.gone = self.over = True
        for process in self.processes:
            process.die()

    async def _told(self) -> str:
        try:
            await self._run()
            return "committed"
        except GristmillError as error:
            return f"{type(error).__name__}: {error}"
        except (DeadError, asyncio.CancelledError):
            return "died"
        finally:
            self.holds = False
            if not self.dead:
                self.over = True
                self._bury(2.0)

    async def _run(self) -> None:
        run: Run = await offload(self, self._open)
        manifest: Manifest | None = await offload(self, run.manifest)
        if manifest is not None:
            await offload(self, run.sweep_late)
            return
        lease: Lease = await offload(self, self._acquire, run.store)
        self.holds = True
        self.world.holders(self)
        beater = asyncio.ensure_future(self._beat(lease))
        try:
            await self._work(run)
            await self._unpaused()
            self._check_lease()
            schemas = {name: plan.schema_digest for name, plan in self.world.material.plans.items()}
            await offload(self, run.commit, self.world.material.found, schemas)
        finally:
            beater.cancel()
            if not self.dead:
                await offload(self, lease.release)

    def _open(self) -> Run:
        return open_run(self.job, self.world.material.identity, self.world.store)

    def _acquire(self, store: Store) -> Lease:
        strand = current()
        assert strand is not None
        return Lease.acquire(store, sleep=strand.wait, monotonic=self.world.loop.time)

    async def _beat(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._unpaused()
            try:
                if not await offload(self, lease.beat):
                    self.lost = True
                    return
            except OSError:
                continue
            except DeadError:
                return

    async def _unpaused(self) -> None:
        while self.paused:
            await asyncio.sleep(0.5)

    def _check_lease(self) -> None:
        if self.lost and not self.weather.stubborn:
            raise RunBusyError("another driver has the run")

    async def _work(self, run: Run) -> None:
        self.store = run.store
        done = await offload(self, run.committed_units)
        units = [unit for unit in self.world.material.found.units if unit.id not in done]
        if not units:
            return
        pilots = choose(units, self.job.pilot.documents, self.job.pilot.seed)
        expected: dict[str, int] = {}
        for unit, rows in pilots:
            expected[unit.schema] = expected.get(unit.schema, 0) + len(rows)
        self.control = Control(self.job.stop_if, expected, self.world.node_lives, self.world.loop.time)
        ordered = sorted(units, key=lambda unit: (unit.schema, -unit.rows, unit.id))
        items: list[Item] = [*pilots, *((unit, ()) for unit in ordered)]
        twice = self.weather.twice
        self._pending.extend(item for one in items for item in [one] * (1 + (self.world.dice.random() < twice)))
        self._left = len(self._pending)
        slots = [asyncio.ensure_future(self._slot(number)) for number in range(self.weather.processes)]
        try:
            await self._follow()
        finally:
            self.over = True
            if not self.dead:
                self._bury(2.0)
        del slots
        if stopped := self.control.look().stopped:
            raise StoppedError("\n".join(stopped.values()))

    async def _follow(self) -> None:
        """As `stream` does."""
        while self._left and self.failure is None:
            await asyncio.sleep(POLL_SECONDS)
            await self._unpaused()
            self._check_lease()
            look = self.control.look()
            if look.deaths > MAX_DEATHS:
                raise EngineError(f"a process died {look.deaths} times")
            if self.drains:
                self.control.drain()
                await asyncio.sleep(DRAIN_SECONDS)
                raise InterruptError("interrupted")
        if self.failure is not None:
            raise self.failure

    async def _slot(self, number: int) -> None:
        """A process, and another one whenever it has died."""
        name = f"{self.world.drivers.index(self)}/p{number}"
        while not self.over:
            process = Process(self.world, self, name, self.world.node(number))
            self.processes.append(process)
            await asyncio.sleep(START_SECONDS)
            try:
                await process.calls.born(name, process.node)
            except DeadError:
                continue
            except EngineError as error:
                self.failure = error
                return
            lanes = [asyncio.ensure_future(self._lane(process)) for _ in range(self.weather.lanes)]
            await process.ended.wait()
            await asyncio.wait(lanes)
            await asyncio.sleep(RESTART_SECONDS)

    async def _lane(self, process: Process) -> None:
        while not process.ended.is_set() and not self.over:
            await self._unpaused()
            if not self._pending:
                await asyncio.sleep(POLL_SECONDS)
                continue
            item = self._pending.popleft()
            task = asyncio.ensure_future(process.do(item))
            process.items.add(task)
            ended = asyncio.ensure_future(process.ended.wait())
            await asyncio.wait([task, ended], return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            error: Any = asyncio.CancelledError() if not task.done() or task.cancelled() else task.exception()
            if error is None:
                self._left -= 1
            elif process.ended.is_set():
                self._pending.appendleft(item)
            else:
                self.failure = error
                if not isinstance(error, GristmillError):
                    self.world.complain(f"{item[0].id} ended with {error!r}")
