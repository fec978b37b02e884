"""The guard: marks come before work, suspects run apart, nobody waits for ever, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from slow_line import Line, idle, run, settle

from pipeline.errors import EngineError
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.supervise.ledger import Verdict


def test_an_end_and_the_beginning_that_follows_share_a_call() -> None:
    async def body(guard: Guard, line: Line) -> None:
        room = asyncio.Semaphore(1)

        async def one(key: int) -> None:
            async with room, guard.open(str(key)):
                await settle()

        await asyncio.gather(*map(one, range(20)))
        await settle()
        assert line.calls == 21

    run(body)


def test_all_that_ask_in_one_tick_share_a_call() -> None:
    async def body(guard: Guard, line: Line) -> None:
        async def one(key: int) -> None:
            async with guard.open(str(key)):
                await asyncio.sleep(0.01)

        await asyncio.gather(*map(one, range(64)))
        await settle()
        assert line.calls <= 3

    run(body)


def test_an_ordinary_document_waits_for_no_suspect_that_came_later() -> None:
    """With a stream of either kind, the other one gets its turn."""

    async def body(guard: Guard, line: Line) -> None:
        order: list[str] = []

        async def one(key: str) -> None:
            async with guard.open(key):
                order.append(key)
                await settle()

        tasks = []
        for number in range(8):
            tasks += [asyncio.create_task(one(f"s{number}")), asyncio.create_task(one(f"o{number}"))]
            await settle()
        await asyncio.gather(*tasks)
        places = {key: order.index(key) for key in order}
        assert all(places[f"o{number}"] < places[f"s{number + 3}"] for number in range(5)), order
        assert all(places[f"s{number}"] < places[f"o{number + 3}"] for number in range(5)), order

    run(body, suspects=[f"s{number}" for number in range(8)])


def test_the_death_of_an_engine_leaves_what_was_open_on_the_ledger_and_lets_nobody_in() -> None:
    async def body(guard: Guard, line: Line) -> None:
        async def die() -> None:
            async with guard.open("x"):
                await settle()
                raise EngineError("the engine core died")

        async def go_on(key: str) -> None:
            async with guard.open(key):
                await asyncio.Event().wait()

        others = [asyncio.create_task(go_on(key)) for key in ("a", "b")]
        with pytest.raises(EngineError, match="core died"):
            await die()
        late = asyncio.create_task(go_on("late"))
        others[0].cancel()
        await settle()
        assert line.control.open_in("p") == {"x", "a", "b"}
        with pytest.raises(EngineError, match="core died"):
            await late

    run(body)


def test_a_call_that_was_under_way_when_the_engine_died_lets_nobody_in() -> None:
    async def body(guard: Guard, line: Line) -> None:
        async def one(key: str, *, dies: bool = False) -> None:
            async with guard.open(key):
                assert dies, "it is too late to begin"
                late.append(asyncio.create_task(one("late")))
                while not line.busy:
                    await asyncio.sleep(0)
                raise EngineError("the engine core died")

        late: list[asyncio.Task[None]] = []
        line.ticks = 4
        with pytest.raises(EngineError, match="core died"):
            await one("x", dies=True)
        with pytest.raises(EngineError, match="core died"):
            await late[0]
        await settle()
        assert line.control.open_in("p") == {"x"}

    run(body)


def test_a_group_that_has_to_be_smaller_than_it_was_told_goes_on_in_order() -> None:
    """Another process died of some of them in between."""

    async def body(guard: Guard, line: Line) -> None:
        control = line.control
        assert control.begin("p", ["s0"]) == {"s0": ("suspect", 8)}
        order: list[str] = []

        async def one(key: str) -> None:
            async with guard.open(key):
                order.append(key)
                await settle()

        async with guard.open("ordinary"):
            tasks = [asyncio.create_task(one(f"s{number}")) for number in range(4)]
            await settle()
            control.begin("other", [f"s{number}" for number in range(4)], together=True)
            control.born("other", "node")
            tasks.append(asyncio.create_task(one("after")))
        await asyncio.gather(*tasks)
        assert order == ["s0", "s1", "s2", "s3", "after"]

    run(body, suspects=[f"s{number}" for number in range(64)])


def test_a_group_is_apart_until_the_last_of_it_is_through() -> None:
    async def body(guard: Guard, line: Line) -> None:
        ends = asyncio.Event()
        order: list[str] = []

        async def one(key: str) -> None:
            async with guard.open(key):
                order.append(key)
                if key == "s1":
                    await ends.wait()

        tasks = [asyncio.create_task(one(key)) for key in ("s0", "s1")]
        await settle()
        tasks += [asyncio.create_task(one(key)) for key in ("ordinary", "s2")]
        await settle()
        assert order == ["s0", "s1"]
        assert line.control.open_in("p") == {"s1"}
        ends.set()
        await asyncio.gather(*tasks)
        assert order[2:] == ["ordinary", "s2"]

    run(body, suspects=[f"s{number}" for number in range(64)])


def test_who_waits_for_nobody_any_more_goes_on() -> None:
    async def body(guard: Guard, line: Line) -> None:
        ran: list[tuple[str, bool]] = []

        async def one(key: str) -> None:
            async with guard.open(key) as healthy:
                ran.append((key, healthy))

        async with guard.open("ordinary"):
            suspect = asyncio.create_task(one("s0"))
            await settle()
            behind = asyncio.create_task(one("behind"))
            await settle()
            assert not ran
            suspect.cancel()
            await settle()
            assert ran == [("behind", True)]
            suspect = asyncio.create_task(one("s0"))
            await settle()
            line.control.begin("other", ["s0"], together=True)
            line.control.born("other", "node")  # it is poison
            behind = asyncio.create_task(one("late"))
        await asyncio.gather(suspect, behind)
        assert ran[1:] == [("s0", False), ("late", True)]

    run(body, suspects=["s0"])


def test_cancelled_and_ended_documents_leave_no_mark_in_whatever_state_they_are() -> None:
    async def body(guard: Guard, line: Line) -> None:
        async def one(key: str) -> None:
            async with guard.open(key):
                await asyncio.sleep(0.001)

        for delay in range(12):
            tasks = [asyncio.create_task(one(key)) for key in ("s0", "s1", "o", "o")]
            for _ in range(delay):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await settle()
            assert line.control.open_in("p") == frozenset(), delay
        await one("s0")

    run(body, suspects=["s0", "s1"])


def test_a_control_that_is_gone_is_told_to_all_who_wait() -> None:
    class Gone(Line):
        async def begin(
            self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
        ) -> Mapping[str, tuple[Verdict, int]]:
            if "first" in keys:
                return await super().begin(process, keys, ended, together)
            await asyncio.sleep(0)
            raise EngineError("the control is gone")

    async def body(_guard: Guard, line: Line) -> None:
        guard = Guard("p", Gone(line.control, line.dice), sleep=idle)

        async def one(key: str) -> None:
            async with guard.open(key):
                await settle()

        first = asyncio.create_task(one("first"))
        await settle()
        found = await asyncio.gather(*map(one, "abc"), first, return_exceptions=True)
        assert [type(error) for error in found] == [EngineError] * 3 + [type(None)]
        with pytest.raises(EngineError, match="is gone"):
            await one("late")

    run(body)
