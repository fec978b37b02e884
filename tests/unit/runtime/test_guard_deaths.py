"""Guard, control and ledger together: a process that dies of some documents, and is cancelled at random."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from slow_line import Line, idle, run, settle

from pipeline.jobplacement import StopConfig
from pipeline.runtime.supervise.control import Control
from pipeline.runtime.supervise.guard import Guard

SEEDS = range(200)


class Process:
    """Works on documents through a guard, some of which kill it; then another takes its place."""

    def __init__(self, name: str, control: Control, dice: random.Random, poisons: set[str]) -> None:
        self.name, self.control, self.dice, self.poisons = name, control, dice, poisons
        self.through: dict[str, str] = {}
        self.killed: Counter[str] = Counter()
        self.cancelled = 0
        self.dead: list[Guard] = []
        self.spawn()

    def spawn(self) -> None:
        self.control.born(self.name, "node")
        self.line = Line(self.control, self.dice)
        self.guard = Guard(self.name, self.line, sleep=idle)
        self.running: set[str] = set()

    async def one(self, key: str, room: asyncio.Semaphore, died: asyncio.Event) -> None:
        async with room:
            for _ in range(self.dice.randrange(4)):
                await asyncio.sleep(0)
            async with self.guard.open(key) as healthy:
                if not healthy:
                    self.through[key] = "poison"
                    return
                self.enter(key)
                try:
                    for _ in range(self.dice.randrange(6)):
                        await asyncio.sleep(0)
                    if key in self.poisons:
                        self.killed[key] += 1
                        self.line.cut = True
                        died.set()
                        await asyncio.Event().wait()
                finally:
                    self.running.discard(key)
            self.through[key] = "ended"

    def enter(self, key: str) -> None:
        assert key in self.control.open_in(self.name), "work began before its mark was there"
        apart = self.line.apart
        assert not (key in apart and self.running - apart), "a suspect began beside others"
        assert not (key not in apart and self.running & apart), "another began beside a suspect"
        self.running.add(key)

    async def live(self, keys: Sequence[str]) -> None:
        """Until it dies, or all that was not cancelled is through."""
        room, died = asyncio.Semaphore(self.dice.choice([1, 5, 40])), asyncio.Event()
        left = [key for key in keys if key not in self.through]
        tasks = [asyncio.create_task(self.one(key, room, died)) for key in left]
        end = asyncio.create_task(died.wait())
        rounds = 0
        while not died.is_set() and not all(task.done() for task in tasks):
            rounds += 1
            assert rounds < 20_000, "somebody waits for ever"
            if self.dice.random() < 0.02:
                self.cancelled += self.dice.choice(tasks).cancel()
            await asyncio.sleep(0)
        end.cancel()
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            assert found is None or isinstance(found, asyncio.CancelledError), repr(found)
        if died.is_set():
            self.dead.append(self.guard)
            self.spawn()


async def life(seed: int) -> None:
    dice = random.Random(seed)
    control = Control(StopConfig(), now=lambda: 0.0)
    keys = [f"d{number}" for number in range(dice.choice([4, 30, 90]))]
    process = Process("p", control, dice, set(dice.sample(keys, dice.randrange(4))))
    lives = 0
    while len(process.through) < len(keys):
        lives += 1
        assert lives < 60 + process.cancelled
        await process.live(keys)
    assert {key for key, how in process.through.items() if how == "poison"} == process.poisons
    for _ in range(40):
        await asyncio.sleep(0)
    assert control.open_in("p") == frozenset(), "a mark was left behind"
    if not process.cancelled:  # a poison that was cancelled in time is cleared, and begins anew
        assert all(count <= 3 for count in process.killed.values())


def test_random_interleavings_deaths_and_cancellations() -> None:
    for seed in SEEDS:
        try:
            asyncio.run(asyncio.wait_for(life(seed), 30))
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def test_what_may_just_have_killed_another_process_waits_until_that_is_known() -> None:
    async def body(guard: Guard, line: Line) -> None:
        control = line.control
        control.begin("other", ["s"], together=True)
        control.missed("other", "s")
        ran = []

        async def one() -> None:
            async with guard.open("s") as healthy:
                ran.append(healthy)

        waiting = asyncio.create_task(one())
        await settle()
        async with guard.open("ordinary"):
            assert not ran
        control.born("other", "node")
        await waiting
        assert ran == [False]

    run(body, suspects=["s"])
