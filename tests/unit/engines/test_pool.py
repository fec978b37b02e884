"""The pool over replicas that come late, die, return, leave, and are busy with others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pipeline.engines.pool import REQUEUES, PoolEngine
from pipeline.engines.replica import ReplicaGone
from pipeline.errors import EngineError, ResourceError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

SAMPLING = Sampling(10)


def plan(name: str = "person@1") -> DecodingPlan:
    return DecodingPlan(name, {}, "{}", "Extract.", "s", "g", f"digest of {name}")


class Fake:
    """A replica in this process. Requests wait until they are released; `others` is what it says of other callers."""

    def __init__(self, name: str, *, up: bool = True, worked: bool = False) -> None:
        self.name = name
        self.up = asyncio.Event()
        self.worked = worked
        self.failure: Exception | None = None
        self.others = 0
        self.open: list[tuple[str, asyncio.Future[None]]] = []
        self.most = 0
        self.told: list[str] = []
        if up:
            self.up.set()

    async def ready(self) -> bool:
        await self.up.wait()
        if self.failure is not None:
            raise self.failure
        return self.worked

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int]:
        if self.failure is not None:
            raise self.failure
        future = asyncio.get_running_loop().create_future()
        entry = (key, future)
        self.open.append(entry)
        self.most = max(self.most, len(self.open))
        try:
            await future
        finally:
            self.open.remove(entry)
        return Completion("{}", "stop", True, engine=self.name), self.others + len(self.open)

    async def missed(self, key: str) -> None:
        self.told.append(key)

    def release(self, count: int | None = None) -> None:
        for _, future in self.open[:count]:
            if not future.done():
                future.set_result(None)

    def die(self) -> None:
        self.up.clear()
        for _, future in list(self.open):
            future.set_exception(ReplicaGone("killed"))

    def leave(self) -> None:
        self.failure = ReplicaGone("left")
        for _, future in list(self.open):
            future.set_exception(ReplicaGone("left"))


def pool_of(*replicas: Fake, **values: Any) -> PoolEngine:
    return PoolEngine(replicas, **{"most": 8, "share": 8, "start_seconds": 5.0, **values})


def ask(pool: PoolEngine, user: str, name: str = "person@1") -> asyncio.Task[Completion]:
    return asyncio.create_task(pool.generate(Prompt("Extract.", user), plan(name), SAMPLING))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def finish(tasks: list[asyncio.Task[Completion]], *replicas: Fake) -> list[Completion]:
    while not all(task.done() for task in tasks):
        for replica in replicas:
            replica.release()
        await settle()
    return [task.result() for task in tasks]


@pytest.mark.asyncio
async def test_what_is_more_than_the_replicas_take_waits_and_all_are_answered() -> None:
    one, two = Fake("one"), Fake("two")
    pool = pool_of(one, two)
    tasks = [ask(pool, f"{n}\ntext") for n in range(100)]
    await settle()
    assert len(one.open) == len(two.open) == 8
    answers = await finish(tasks, one, two)
    assert len(answers) == 100
    assert (one.most, two.most) == (8, 8)
    assert set(pool.loads.values()) == {0}


@pytest.mark.asyncio
async def test_a_retry_goes_to_the_replica_that_answered_before() -> None:
    replicas = [Fake(f"r{n}") for n in range(4)]
    pool = pool_of(*replicas)
    first = await finish([ask(pool, f"fence-{n}\ntext") for n in range(24)], *replicas)
    assert len({answer.engine for answer in first}) > 1
    again = [ask(pool, f"fence-{n}\ntext\nAn earlier answer was not accepted") for n in range(24)]
    second = await finish(again, *replicas)
    assert [answer.engine for answer in first] == [answer.engine for answer in second]


@pytest.mark.asyncio
async def test_lost_requests_are_reported_first_and_then_answered_by_others() -> None:
    one, two = Fake("one"), Fake("two", up=False)
    pool = pool_of(one, two)
    tasks = [ask(pool, f"{n}\ntext") for n in range(12)]
    await settle()
    lost = sorted(key for key, _ in one.open)
    assert len(lost) == 8
    one.die()
    await settle()
    assert sorted(one.told) == lost
    assert pool.loads == {}
    two.up.set()
    await settle()
    # What was lost goes before what was never begun.
    assert {key for key, _ in two.open} == set(lost)
    answers = await finish(tasks, two)
    assert {answer.engine for answer in answers} == {"two"}
    one.up.set()
    await settle()
    assert set(pool.loads) == {"one", "two"}


@pytest.mark.asyncio
async def test_a_late_replica_is_used_and_one_that_leaves_is_forgotten() -> None:
    one, late = Fake("one"), Fake("late", up=False)
    pool = pool_of(one, late)
    await pool.start([plan()])
    tasks = [ask(pool, f"{n}\ntext") for n in range(20)]
    await settle()
    late.up.set()
    await settle()
    assert len(late.open) == 8
    late.leave()
    await settle()
    assert len(await finish(tasks, one)) == 20
    assert set(pool.loads) == {"one"}
    one.leave()
    with pytest.raises(EngineError, match="no engine is left"):
        await asyncio.wait_for(ask(pool, "x\ntext"), 5)
        await asyncio.wait_for(ask(pool, "y\ntext"), 5)


@pytest.mark.asyncio
async def test_nobody_serves_for_too_long() -> None:
    one = Fake("one")
    pool = pool_of(one, Fake("never", up=False), start_seconds=0.1)
    await pool.start([plan()])
    waiting = ask(pool, "x\ntext")
    await settle()
    one.die()
    with pytest.raises(EngineError, match=r"0 of 1 engines serve after 0\.1 s"):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(EngineError, match="serve after"):
        await asyncio.wait_for(ask(pool, "y\ntext"), 1)


@pytest.mark.asyncio
async def test_a_start_waits_for_the_first_replicas_unless_the_job_is_under_way() -> None:
    with pytest.raises(EngineError, match="1 of 2 engines serve"):
        await pool_of(Fake("one"), Fake("never", up=False), first=2, start_seconds=0.2).start([plan()])
    later = pool_of(Fake("one", worked=True), Fake("never", up=False), first=2)
    await asyncio.wait_for(later.start([plan()]), 1)
    one = Fake("one")
    while_waiting = asyncio.create_task(pool_of(one, Fake("never", up=False), first=2).start([plan()]))
    await asyncio.sleep(0.15)
    one.worked = True
    await asyncio.wait_for(while_waiting, 1)


@pytest.mark.asyncio
async def test_a_replica_that_cannot_start_ends_the_job_with_its_own_words() -> None:
    broken = Fake("broken")
    broken.failure = ResourceError("too little memory")
    with pytest.raises(ResourceError, match="too little memory"):
        await pool_of(broken, Fake("never", up=False)).start([plan()])
    with pytest.raises(EngineError, match="too little memory"):  # as the seam has it
        await asyncio.wait_for(ask(pool_of(broken), "x\ntext"), 1)


@pytest.mark.asyncio
async def test_a_request_under_which_everything_dies_is_given_up() -> None:
    class Fragile(Fake):
        async def generate(self, *arguments: Any) -> tuple[Completion, int]:
            raise ReplicaGone("died")

    fragile = Fragile("fragile")
    answer = await asyncio.wait_for(ask(pool_of(fragile), "x\ntext"), 5)
    assert (answer.error, len(fragile.told)) == ("engine_failed", REQUEUES)


@pytest.mark.asyncio
async def test_a_caller_leaves_room_for_others_and_keeps_its_share() -> None:
    one = Fake("one")
    one.others = 6  # of other callers, of 8 that it may have in flight
    pool = pool_of(one, share=3)
    tasks = [ask(pool, f"{n}\ntext") for n in range(12)]
    await settle()
    assert len(one.open) == 8  # nothing is known of others yet
    one.release(1)
    await settle()
    one.release(7)
    await settle()
    assert len(one.open) in (3, 4)  # the report does not know of requests on their way
    await finish(tasks, one)


@pytest.mark.asyncio
async def test_cancelled_requests_give_their_places_back() -> None:
    one = Fake("one")
    pool = pool_of(one)
    tasks = [ask(pool, f"{n}\ntext") for n in range(30)]
    await settle()
    for task in tasks[4:20]:  # some in flight, some waiting
        task.cancel()
    await settle()
    left = [task for task in tasks if not task.cancelled()]
    assert len(one.open) == 8
    assert len(await finish(left, one)) == 14
    assert pool.loads == {"one": 0}
    # Cancelled in the moment between the offer of a place and the taking of it.
    first = ask(pool, "x\ntext")
    await asyncio.sleep(0)
    first.cancel()
    await settle()
    assert pool.loads == {"one": 0}
