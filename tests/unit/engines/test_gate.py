"""The gate of a shared engine: online requests overtake jobs, jobs keep to their share, nothing leaks."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from pipeline.engines.gate import PATIENCE, Gate, GateFullError


class Visitor:
    """One request: `inside` while it holds a place, until it is told to leave."""

    def __init__(self, gate: Gate, *, online: bool) -> None:
        self.online = online
        self.inside = False
        self._go = asyncio.Event()
        self.task = asyncio.create_task(self._visit(gate))

    async def _visit(self, gate: Gate) -> None:
        async with gate.place(online=self.online):
            self.inside = True
            try:
                await self._go.wait()
            finally:
                self.inside = False

    async def leave(self) -> None:
        self._go.set()
        await self.task


async def come(gate: Gate, *kinds: bool) -> list[Visitor]:
    found = [Visitor(gate, online=online) for online in kinds]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return found


async def settle(*visitors: Visitor) -> None:
    for visitor in visitors:
        visitor.task.cancel()
    await asyncio.gather(*(visitor.task for visitor in visitors), return_exceptions=True)


@pytest.mark.asyncio
async def test_an_online_request_goes_before_all_jobs_that_wait() -> None:
    gate = Gate(2, 1.0, 100)
    first, second, waiting, online = await come(gate, False, False, False, True)
    assert (first.inside, second.inside, waiting.inside, online.inside) == (True, True, False, False)
    await first.leave()
    await asyncio.sleep(0)
    assert online.inside and not waiting.inside
    await online.leave()
    await asyncio.sleep(0)
    assert waiting.inside
    await settle(second, waiting)


@pytest.mark.asyncio
async def test_jobs_leave_places_free_and_online_callers_may_take_all() -> None:
    gate = Gate(4, 0.5, 100)
    jobs = await come(gate, *[False] * 4)
    assert [job.inside for job in jobs] == [True, True, False, False]
    online = await come(gate, True, True)
    assert all(one.inside for one in online)
    await settle(*jobs, *online)
    online = await come(gate, *[True] * 4)
    assert all(one.inside for one in online)
    await settle(*online)


@pytest.mark.asyncio
async def test_jobs_get_one_place_however_small_their_share() -> None:
    gate = Gate(4, 0.0, 100)
    (job,) = await come(gate, False)
    assert job.inside
    await settle(job)


@pytest.mark.asyncio
async def test_who_would_wait_too_long_is_told_at_once_and_each_kind_has_its_own_line() -> None:
    gate = Gate(1, 1.0, 1)
    inside, waiting, refused, online = await come(gate, False, False, False, True)
    with pytest.raises(GateFullError):
        await refused.task
    assert gate.waiting == 2
    await settle(inside, waiting, online)
    assert gate.waiting == 0


@pytest.mark.asyncio
async def test_a_job_has_its_turn_however_many_callers_come() -> None:
    gate = Gate(2, 0.5, 10**6)
    callers = await come(gate, True, True)
    (job,) = await come(gate, False)
    for _ in range(3 * PATIENCE):
        callers += await come(gate, True)
        await callers.pop(0).leave()
        await asyncio.sleep(0)
        if job.inside:
            break
    assert job.inside
    await settle(job, *callers)


@pytest.mark.asyncio
async def test_one_that_is_alone_waits_for_all_and_keeps_all_out() -> None:
    gate = Gate(3, 1.0, 100)
    first, second = await come(gate, True, False)
    inside = asyncio.Event()
    go = asyncio.Event()

    async def alone() -> None:
        async with gate.alone():
            inside.set()
            await go.wait()

    task = asyncio.create_task(alone())
    await asyncio.sleep(0)
    (third,) = await come(gate, True)
    assert not third.inside and not inside.is_set()
    await first.leave()
    await asyncio.sleep(0)
    assert not inside.is_set()
    await second.leave()
    await asyncio.wait_for(inside.wait(), 20)
    assert not third.inside and gate.held
    go.set()
    await task
    await asyncio.sleep(0)
    assert third.inside
    await settle(third)
    assert gate.held == 0


@pytest.mark.asyncio
async def test_one_that_gives_up_waiting_alone_keeps_nobody_out() -> None:
    gate = Gate(1, 1.0, 100)
    (first,) = await come(gate, True)

    async def alone() -> None:
        async with gate.alone():
            raise AssertionError

    task = asyncio.create_task(alone())
    await asyncio.sleep(0)
    (second,) = await come(gate, True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await first.leave()
    await asyncio.sleep(0)
    assert second.inside
    await settle(second)


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(30))
async def test_whatever_comes_goes_and_is_cancelled_no_place_is_lost_or_given_twice(seed: int) -> None:
    dice = random.Random(seed)
    places, share = dice.randint(1, 5), dice.random()
    gate = Gate(places, share, 10**6)
    jobs_most = max(1, int(places * share))
    visitors: list[Visitor] = []
    for _ in range(300):
        what = dice.random()
        if what < 0.5 or not visitors:
            visitors.append(Visitor(gate, online=dice.random() < 0.5))
        elif what < 0.75:
            visitors.pop(dice.randrange(len(visitors))).task.cancel()
        else:
            inside = [one for one in visitors if one.inside]
            if inside:
                visitors.remove(leaver := dice.choice(inside))
                await leaver.leave()
        for _ in range(dice.randint(0, 3)):
            await asyncio.sleep(0)
        held = [one for one in visitors if one.inside]
        assert len(held) <= places
        assert sum(not one.online for one in held) <= jobs_most
    for visitor in visitors:
        visitor.task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(one.task for one in visitors), return_exceptions=True)
    whole = await come(gate, *[True] * places)
    assert all(one.inside for one in whole)
    assert gate.waiting == 0
    await settle(*whole)
    jobs = await come(gate, *[False] * jobs_most)
    assert all(one.inside for one in jobs)
    await settle(*jobs)


@pytest.mark.asyncio
async def test_who_does_not_wait_is_told_at_once_and_leaves_no_trace() -> None:
    gate = Gate(2, 0.5, 100)
    async with gate.place(online=False, wait=False):
        with pytest.raises(GateFullError):
            async with gate.place(online=False, wait=False):
                pass
        assert gate.waiting == 0
        async with gate.place(online=True, wait=False):
            assert gate.held == 2
    async with gate.place(online=False, wait=False):
        assert gate.held == 1
