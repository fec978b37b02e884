"""The pool over replicas that come late, die, return, leave, or never answer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from pipeline.engines.pool import PoolEngine
from pipeline.engines.replica import ReplicaGone, request_key
from pipeline.errors import EngineError, ResourceError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

pytestmark = pytest.mark.asyncio
SAMPLING = Sampling(10)


class Fake:
    """An engine elsewhere. `wait` is how long an answer takes; None: for ever."""

    def __init__(self, name: str, *, up: bool = True, wait: float | None = 0.0) -> None:
        self.name = name
        self.wait = wait
        self.served: list[str] = []
        self.missed_keys: list[str] = []
        self.most = 0
        self.worked = False
        self.gone_for_good = False
        self.failure: Exception | None = None
        self._up = up
        self._open: set[asyncio.Future[None]] = set()

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
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.add(end)
        self.most = max(self.most, len(self._open))
        try:
            if self.wait is not None:
                asyncio.get_running_loop().call_later(self.wait, lambda: end.done() or end.set_result(None))
            await end
        finally:
            self._open.discard(end)
        self.served.append(prompt.user)
        return Completion(self.name, "stop", True, plan_digest=plan), len(self._open)

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


async def test_documents_of_a_schema_keep_together_and_schemas_apart(plan_of: Any) -> None:
    fakes = [Fake(f"e{number}") for number in range(3)]
    pool = pool_of(*fakes)
    await pool.start([])
    plans = [plan_of(name=f"kind-{number}@1") for number in range(30)]
    for plan in plans:
        answers = [(await ask(pool, f"document {plan.name} {number}", plan)).text for number in range(5)]
        assert len(set(answers)) == 1
    assert all(len(fake.served) >= 15 for fake in fakes)  # of 150


async def test_an_engine_that_is_full_gets_help_and_none_has_much_more_than_its_share(plan_of: Any) -> None:
    fakes = [Fake("a", wait=None), Fake("b", wait=None)]
    pool = pool_of(*fakes)
    await pool.start([])
    asked = [ask(pool, str(number), plan_of()) for number in range(10)]
    await until(lambda: sum(fake.in_flight for fake in fakes) == 10)
    assert max(fake.in_flight for fake in fakes) <= 7  # 1.25 times an even share
    for task in asked:
        task.cancel()


async def test_a_retry_goes_to_the_engine_that_answered_before(plan_of: Any) -> None:
    fakes = [Fake("a", wait=0.01), Fake("b", wait=0.01)]
    pool = pool_of(*fakes)
    await pool.start([])
    firsts = await asyncio.gather(*(ask(pool, f"fence {number}\ntext", plan_of()) for number in range(8)))
    assert {one.text for one in firsts} == {"a", "b"}
    again = [(await ask(pool, f"fence {number}\ntext\nfeedback", plan_of())).text for number in range(8)]
    assert again == [one.text for one in firsts]


async def test_callers_together_keep_to_the_limit_and_each_has_its_share(plan_of: Any) -> None:
    fake = Fake("a", wait=0.002)
    pools = [pool_of(fake, share=2) for _ in range(4)]
    for pool in pools:
        await pool.start([])
    greedy = [ask(pools[0], f"0-{number}", plan_of()) for number in range(300)]
    await asyncio.sleep(0.01)
    others = [
        ask(pool, f"{turn}-{number}", plan_of()) for turn, pool in enumerate(pools[1:], 1) for number in range(20)
    ]
    await asyncio.gather(*others)
    assert not all(task.done() for task in greedy)  # those who came late did not wait for all that was there before
    await asyncio.gather(*greedy)
    assert fake.most <= 8 + 3 * 2  # the others' shares come on top until the greedy one has heard of them


async def test_what_others_had_in_flight_long_ago_keeps_nobody_away_from_an_idle_engine(plan_of: Any) -> None:
    fakes = {name: Fake(name, wait=0.05) for name in "ab"}
    mine, other = pool_of(*fakes.values(), most=16), pool_of(*fakes.values(), most=16)
    await mine.start([])
    await other.start([])
    busy = [ask(other, f"other {number}", plan_of()) for number in range(16)]
    await asyncio.sleep(0.01)
    await asyncio.gather(*(ask(mine, f"mine {number}", plan_of()) for number in range(4)))
    await asyncio.gather(*busy)
    await asyncio.sleep(1.2)
    for fake in fakes.values():
        fake.served.clear()
    tail = [ask(mine, f"tail {number}", plan_of()) for number in range(12)]
    await asyncio.sleep(0.01)
    assert max(fake.in_flight for fake in fakes.values()) <= 8
    await asyncio.gather(*tail)


async def test_a_death_costs_no_request_and_is_told_before_it_goes_elsewhere(plan_of: Any) -> None:
    fakes = [Fake("a", wait=None), Fake("b", wait=None)]
    pool = pool_of(*fakes)
    await pool.start([])
    plan = plan_of()
    asked = [ask(pool, str(number), plan) for number in range(8)]
    await until(lambda: sum(fake.in_flight for fake in fakes) == 8)
    victim, other = sorted(fakes, key=lambda fake: -fake.in_flight)
    lost = victim.in_flight
    other.wait = 0.0
    victim.die()
    other.die()
    await until(lambda: len(victim.missed_keys) == lost)
    other.revive()
    assert {one.text for one in await asyncio.gather(*asked)} == {other.name}
    assert len(set(victim.missed_keys)) == lost
    assert set(victim.missed_keys) <= {request_key(Prompt("s", str(n)), plan.digest, SAMPLING) for n in range(8)}
    victim.wait = 0.0
    victim.revive()
    await until(lambda: len(pool.loads) == 2)
    await asyncio.gather(*(ask(pool, f"later {number}", plan) for number in range(16)))
    assert any(user.startswith("later") for user in victim.served)


async def test_one_that_joins_late_takes_over_what_waits(plan_of: Any) -> None:
    early, late = Fake("a", wait=None), Fake("b", up=False, wait=0.0)
    pool = pool_of(early, late)
    await pool.start([])
    asked = [ask(pool, str(number), plan_of()) for number in range(20)]
    await until(lambda: early.in_flight == 8)
    late.revive()
    await until(lambda: len(late.served) == 12)
    for task in asked:
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


async def test_a_request_that_is_cancelled_gives_its_place_back_wherever_it_is(plan_of: Any) -> None:
    fake = Fake("a", wait=None)
    pool = pool_of(fake, most=2, share=2)
    await pool.start([])
    asked = [ask(pool, str(number), plan_of()) for number in range(6)]
    await until(lambda: fake.in_flight == 2)
    for task in (asked[0], asked[4], asked[3]):
        task.cancel()
    await until(lambda: fake.in_flight == 2)
    for task in asked:
        task.cancel()
    await asyncio.wait(asked)
    assert pool.loads == {"a": 0}
    fake.wait = 0.0
    assert (await ask(pool, "next", plan_of())).text == "a"


async def test_start_waits_for_the_first_engines_and_says_what_is_missing() -> None:
    present, absent = Fake("a"), Fake("b", up=False)
    with pytest.raises(EngineError, match=r"1 of 2 engines.*min_engines"):
        await pool_of(present, absent, first=2, start_seconds=0.1).start([])
    present.worked = True  # the job has begun, and this caller's process is a new one
    await pool_of(present, absent, first=2, start_seconds=0.1).start([])


async def test_why_an_engine_cannot_start_is_told_as_it_is() -> None:
    fake = Fake("a", up=False)
    fake.failure = ResourceError("no memory")
    with pytest.raises(ResourceError, match="no memory"):
        await pool_of(fake).start([])


@pytest.mark.parametrize("for_good", [True, False])
async def test_without_engines_nobody_waits_for_ever(plan_of: Any, for_good: bool) -> None:
    fakes = [Fake("a", wait=None), Fake("b", wait=None)]
    pool = pool_of(*fakes, start_seconds=0.2)
    await pool.start([])
    asked = ask(pool, "0", plan_of())
    await until(lambda: sum(fake.in_flight for fake in fakes) == 1)
    for fake in fakes:
        fake.die(for_good=for_good)
    with pytest.raises(EngineError, match=r"engine"):
        await asyncio.wait_for(asked, 5)
    with pytest.raises(EngineError):
        await asyncio.wait_for(ask(pool, "1", plan_of()), 5)


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
