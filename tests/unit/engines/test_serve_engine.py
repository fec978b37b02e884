"""The shared pool as an engine: who waits, who is told, what becomes of a request that kills replicas."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeline.engines.busy import EngineBusyError
from pipeline.engines.patience import counted, in_time
from pipeline.engines.replica import ReplicaGone
from pipeline.engines.serve import (
    LOSSES,
    ONLINE_LOSSES,
    ONLINE_TRIES,
    PASSING_TRIES,
    SUSPECTS,
    UNPROVEN,
    Ask,
    LostAlone,
    ServeEngine,
    place_of,
)
from pipeline.errors import EngineError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, literal_plan

PLAN = literal_plan("word", "x")
GOOD = Completion('{"answer": "x"}', "stop", True)


class Pool:
    """Answers as `act` says, which sees the document's fence; counts what is under way."""

    def __init__(self, act: Callable[[str], Any]) -> None:
        self.act = act
        self.tells = True
        """Whether a caller hears that its request was alone when the replica died."""
        self.sessions: list[str] = []
        self.asked: Counter[str] = Counter()
        self.under_way: set[str] = set()
        self.together: list[frozenset[str]] = []

    async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
        name = ask.prompt.user.partition("\n")[0]
        self.sessions.append(session)
        self.asked[name] += 1
        self.under_way.add(name)
        self.together.append(frozenset(self.under_way))
        try:
            await asyncio.sleep(0)
            answer = self.act(name)
        finally:
            self.under_way.discard(name)
        if isinstance(answer, ReplicaGone) and ask.alone and self.tells:
            raise LostAlone(str(answer))
        if isinstance(answer, Exception):
            raise answer
        return answer or GOOD


def engine(pool: Pool, *, online: bool = False) -> ServeEngine:
    return ServeEngine(pool, online=online, return_seconds=0.0)


def prompt(name: str, more: str = "") -> Prompt:
    return Prompt("system", f"{name}\ntext\n{name}\n{more}")


async def ask(one: ServeEngine, name: str, more: str = "") -> Completion:
    return await one.generate(prompt(name, more), PLAN, Sampling(max_tokens=8))


@pytest.mark.asyncio
async def test_a_job_waits_for_room_and_asks_all_around_the_ring() -> None:
    full = iter([EngineBusyError("full", 0.0)] * 20)
    pool = Pool(lambda _: next(full, None))
    assert await ask(engine(pool), "a") == GOOD
    assert len(set(pool.sessions)) == 8


@pytest.mark.asyncio
async def test_a_job_takes_a_free_place_elsewhere_before_it_waits_in_line() -> None:
    """Two engines, one of them full: its line is not joined while the other has room."""

    passing: list[bool] = []

    class Halves(Pool):
        async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
            passing.append(ask.passing)
            if self.full(int(session.rpartition(":")[2])) and ask.passing:
                raise EngineBusyError("no place is free", 60.0)
            return await super().generate(session, ask, plan)

        def full(self, place: int) -> bool:
            return place != (place_of(prompt("a")) + 2) % 8

    pool = Halves(lambda _: None)
    assert await ask(engine(pool), "a") == GOOD
    assert passing == [True] * 3
    passing.clear()
    pool.full = lambda _: True  # type: ignore[method-assign]
    assert await ask(engine(pool), "a") == GOOD
    assert passing == [True] * PASSING_TRIES + [False]


@pytest.mark.asyncio
async def test_an_online_caller_is_told_when_to_come_again() -> None:
    pool = Pool(lambda _: EngineBusyError("full", 7.0))
    with pytest.raises(EngineBusyError) as caught:
        await ask(engine(pool, online=True), "a")
    assert caught.value.retry_after == 7.0
    assert len(set(pool.sessions)) == ONLINE_TRIES


@pytest.mark.asyncio
async def test_equal_documents_go_the_same_way_and_others_spread() -> None:
    pool = Pool(lambda _: None)
    one = engine(pool)
    for _ in range(2):
        await ask(one, "a")
    await ask(one, "a", "feedback of a retry")
    assert len(set(pool.sessions)) == 1
    assert len({place_of(prompt(f"document {n}")) for n in range(200)}) == 8


@pytest.mark.asyncio
async def test_who_lost_a_replica_by_chance_is_answered() -> None:
    lost = iter([ReplicaGone("gone")])
    one = engine(pool := Pool(lambda _: next(lost, None)))
    assert await ask(one, "a") == GOOD
    assert await ask(one, "a") == GOOD
    assert pool.asked["a"] == 3


@pytest.mark.asyncio
async def test_a_killer_is_found_and_all_others_are_answered() -> None:
    """A replica takes all that is under way along, whoever killed it."""
    died = [False]

    def act(name: str) -> Any:
        if name == "killer":
            died[0] = True
            return ReplicaGone("killed")
        return None

    class Fragile(Pool):
        async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
            died[0] = False
            answer = await super().generate(session, ask, plan)
            if died[0]:
                assert not ask.alone, "nothing else is in the engine then"
                raise ReplicaGone("killed with another one")
            return answer

    pool = Fragile(act)
    one = engine(pool)
    names = [f"d{n}" for n in range(20)] + ["killer"]
    answers = dict(zip(names, await asyncio.gather(*(ask(one, name) for name in names)), strict=True))
    assert answers.pop("killer").error == "poison"
    assert set(answers.values()) == {GOOD}
    assert pool.asked["killer"] == LOSSES
    assert (await ask(one, "killer")).error == "poison"
    assert pool.asked["killer"] == LOSSES  # it is known


@pytest.mark.asyncio
async def test_suspects_go_few_at_a_time() -> None:
    first = Counter[str]()

    def act(name: str) -> Any:
        first[name] += 1
        return ReplicaGone("gone") if first[name] == 1 else None

    pool = Pool(act)
    one = engine(pool)
    await asyncio.gather(*(ask(one, f"d{n}") for n in range(20)))
    again = pool.together[20:]
    assert len(again) == 20 and max(map(len, again)) == SUSPECTS


@pytest.mark.asyncio
async def test_whoever_cannot_be_proven_to_be_the_cause_is_not_called_poison() -> None:
    pool = Pool(lambda _: ReplicaGone("gone, for reasons of others"))
    pool.tells = False
    answer = await ask(engine(pool), "unlucky")
    assert (answer.error, pool.asked["unlucky"]) == ("engine_failed", UNPROVEN + 1)


@pytest.mark.asyncio
async def test_of_a_job_only_the_time_in_the_engine_counts() -> None:
    class Late(Pool):
        async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
            assert ask.seconds is not None and 0.3 < ask.seconds <= 0.5
            await asyncio.sleep(0.8)  # in line
            return replace(GOOD, seconds=0.1)

    async with asyncio.timeout(0.5) as scope:
        with counted(scope) as clock:
            assert (await ask(engine(Late(lambda _: None)), "a")).text == GOOD.text
            assert 0.6 < clock.waited < 0.9
            assert clock.left is not None and 0.2 < clock.left < 0.45
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5) as scope:
            with counted(scope):
                await ask(engine(Slow(lambda _: None), online=True), "b")


@pytest.mark.asyncio
async def test_an_audit_at_a_replica_is_no_time_of_the_document() -> None:
    class Auditing(Pool):
        async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
            await asyncio.sleep(0.6)  # 0.2 in line, then the answer, then its audit
            return replace(GOOD, seconds=0.1, audit="done", audit_seconds=0.3)

    shared, sampling = engine(Auditing(lambda _: None)), Sampling(5, audit=9)
    answer, waited = await in_time(shared, prompt("a"), PLAN, sampling, time.monotonic() + 0.4)
    assert answer.audit == "done"
    assert 0.45 < waited < 0.6  # all but the answer


class Slow(Pool):
    """Answers later than callers here wait."""

    async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
        await asyncio.sleep(5)
        return GOOD


@pytest.mark.asyncio
async def test_an_online_killer_costs_few_replicas_however_often_it_is_sent() -> None:
    pool = Pool(lambda _: ReplicaGone("killed"))
    one = engine(pool, online=True)
    with pytest.raises(EngineError, match="Try again"):
        await ask(one, "killer")
    assert pool.asked["killer"] == ONLINE_LOSSES
    answers = [await ask(one, "killer") for _ in range(5)]
    assert {answer.error for answer in answers} == {"poison"}
    assert pool.asked["killer"] == LOSSES


@pytest.mark.asyncio
async def test_the_constraint_is_proven_on_the_way_to_the_pool() -> None:
    with pytest.raises(EngineError, match="does not obey"):
        await engine(Pool(lambda _: Completion("a poem", "stop", True))).start([])
