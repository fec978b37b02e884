"""The pool in motion: callers who know of each other by what replicas tell, stragglers, deaths at any moment."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from pipeline.engines.pool import KNOWN_SECONDS, PoolEngine
from pipeline.engines.replica import ReplicaGone
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

pytestmark = pytest.mark.asyncio
SAMPLING = Sampling(10)


class Fake:
    """An engine elsewhere. `wait` is how long an answer takes in the mean; None: for ever.
    `others` is what it has in flight for callers who are not there."""

    def __init__(self, name: str, *, up: bool = True, wait: float | None = 0.0) -> None:
        self.name = name
        self.wait = wait
        self.served: list[str] = []
        self.missed_keys: list[str] = []
        self.loads: list[int] = []
        self.worked = False
        self.others = 0
        self.gone_for_good = False
        self.failure: Exception | None = None
        self._up = up
        self._open: set[asyncio.Future[None]] = set()
        self._draw = random.Random(name)

    async def ready(self) -> bool:
        while not self._up:
            if self.failure is not None:
                raise self.failure
            if self.gone_for_good:
                raise ReplicaGone(self.name)
            await asyncio.sleep(0.002)
        return self.worked

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int]:
        if not self._up:
            raise ReplicaGone(self.name)
        loop = asyncio.get_running_loop()
        end: asyncio.Future[None] = loop.create_future()
        self._open.add(end)
        self.loads.append(len(self._open))
        try:
            if self.wait is not None:
                loop.call_later(self.wait * self._draw.uniform(0.2, 1.8), lambda: end.done() or end.set_result(None))
            await end
        finally:
            self._open.discard(end)
        self.served.append(prompt.user)
        return Completion(self.name, "stop", True, plan_digest=plan), self.others + len(self._open)

    async def missed(self, key: str) -> None:
        self.missed_keys.append(key)

    @property
    def in_flight(self) -> int:
        return len(self._open)

    def die(self, *, for_good: bool = False) -> None:
        self._up, self.gone_for_good = False, for_good
        for end in self._open:
            if not end.done():
                end.set_exception(ReplicaGone(self.name))

    def revive(self) -> None:
        self._up = True


def pool_of(*fakes: Fake, **values: Any) -> PoolEngine:
    return PoolEngine(fakes, **{"most": 8, "share": 8, "start_seconds": 5.0, **values})


def ask(pool: PoolEngine, user: str, plan: DecodingPlan) -> asyncio.Task[Completion]:
    return asyncio.create_task(pool.generate(Prompt("s", user), plan, SAMPLING))


async def until(true: Any) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.002)


async def test_callers_together_keep_to_the_limit_and_each_has_its_share(plan_of: Any) -> None:
    fake = Fake("a", wait=0.005)
    pools = [pool_of(fake, share=2) for _ in range(4)]
    for pool in pools:
        await pool.start([])
    greedy = [ask(pools[0], f"0-{number}", plan_of()) for number in range(300)]
    await asyncio.sleep(0.01)
    others = [
        ask(pool, f"{turn}-{number}", plan_of()) for turn, pool in enumerate(pools[1:], 1) for number in range(40)
    ]
    await until(lambda: len(fake.served) > 90)
    fake.loads.clear()  # by now they know of each other, and what was too much has ended
    await asyncio.gather(*others)
    assert not all(task.done() for task in greedy)  # those who came late did not wait for all that was there before
    assert sum(fake.loads) / len(fake.loads) < 12  # a limit that each keeps by what it last heard is no sharp one
    await asyncio.gather(*greedy)


async def test_what_others_had_in_flight_long_ago_keeps_nobody_away_from_an_idle_engine(plan_of: Any) -> None:
    idle, used = Fake("a"), Fake("b")
    idle.others = 16
    pool = pool_of(idle, used, most=16, share=16, first=2)
    await pool.start([])
    plans = [plan_of(name=f"kind-{number}@1") for number in range(12)]  # some belong to this engine, some to that
    await asyncio.gather(*(ask(pool, plan.name, plan) for plan in plans))
    assert idle.served
    assert used.served
    await asyncio.sleep(KNOWN_SECONDS)
    idle.wait = used.wait = None
    tail = [ask(pool, f"tail {number}", plans[0]) for number in range(12)]
    await until(lambda: idle.in_flight + used.in_flight == 12)
    assert min(idle.in_flight, used.in_flight) >= 4
    for task in tail:
        task.cancel()


async def test_a_straggler_holds_nothing_back(plan_of: Any) -> None:
    fake = Fake("a", wait=None)
    pool = pool_of(fake)
    await pool.start([])
    straggler = ask(pool, "slow", plan_of())
    await until(lambda: fake.in_flight == 1)
    fake.wait = 0.0
    await asyncio.gather(*(ask(pool, str(number), plan_of()) for number in range(200)))
    assert not straggler.done()
    straggler.cancel()
    await asyncio.wait([straggler])
    assert pool.loads == {"a": 0}


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_dies_and_returns_every_request_has_one_answer(plan_of: Any, seed: int) -> None:
    draw = random.Random(seed)
    fakes = [Fake(f"e{number}", up=number < 2, wait=0.003) for number in range(3)]
    pools = [pool_of(*fakes, most=6, share=3) for _ in range(2)]
    plans = [plan_of(name=f"kind-{number}@1") for number in range(4)]
    asked = [ask(pools[number % 2], str(number), plans[number % 4]) for number in range(200)]

    async def trouble() -> None:
        while True:
            await asyncio.sleep(0.004)
            draw.choice(fakes).die()
            draw.choice(fakes).revive()

    troubled = asyncio.create_task(trouble())
    answers = await asyncio.wait_for(asyncio.gather(*asked), 20)
    troubled.cancel()
    assert all(one.error == "" for one in answers)
    assert Counter(user for fake in fakes for user in fake.served) == Counter(map(str, range(200)))
    assert all(load >= 0 for pool in pools for load in pool.loads.values())
