"""An engine that stands still is told from one that is slow, and from one that nobody asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pipeline.engines.several import SeveralEngines
from pipeline.engines.watch import WatchedEngine, watched
from pipeline.errors import EngineError
from pipeline.job import Fault
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import NO_PLAN, DecodingPlan

STALL = 0.1
pytestmark = pytest.mark.asyncio


class Quiet:
    """Answers "answer" at once, and all else never, or when it is told to."""

    def __init__(self) -> None:
        self.open: list[asyncio.Future[None]] = []

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        if prompt.user == "fail":
            raise EngineError("it died")
        if prompt.user != "answer":
            self.open.append(asyncio.get_running_loop().create_future())
            await self.open[-1]
        return Completion("{}", "stop", True)

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...


class Moving(Quiet):
    """Shows progress."""

    def progress(self) -> float:
        return time.monotonic()


def ask(asked: Any, user: str, engine: str = "") -> asyncio.Task[Completion]:
    return asyncio.create_task(asked.generate(Prompt("", user), NO_PLAN, Sampling(10, engine=engine)))


async def test_all_open_calls_and_all_later_ones_raise() -> None:
    engine = watched(Quiet(), STALL)
    results = await asyncio.wait_for(asyncio.gather(*(ask(engine, "-") for _ in range(3)), return_exceptions=True), 5)
    assert [type(one) for one in results] == [EngineError] * 3
    assert "the engine is stuck: 3 requests" in str(results[0])
    with pytest.raises(EngineError, match="stuck"):
        await ask(engine, "answer")


async def test_progress_is_a_sign_of_life() -> None:
    inner = Moving()
    engine = watched(inner, STALL)
    slow = ask(engine, "-")
    await asyncio.sleep(4 * STALL)
    assert not slow.done()
    inner.open[0].set_result(None)
    assert (await slow).text == "{}"


async def test_an_answer_to_anybody_is_a_sign_of_life() -> None:
    inner = Quiet()
    engine = watched(inner, 4 * STALL)
    slow = ask(engine, "-")
    for _ in range(8):
        await asyncio.sleep(STALL)
        await ask(engine, "answer")
    assert not slow.done()


async def test_nothing_is_late_where_nothing_is_open() -> None:
    engine = watched(Quiet(), STALL)
    await ask(engine, "answer")
    await asyncio.sleep(3 * STALL)
    assert (await ask(engine, "answer")).text == "{}"


async def test_requests_given_up_one_after_the_other_do_not_hide_it() -> None:
    engine = watched(Quiet(), STALL)

    async def impatient() -> None:
        while True:
            try:
                async with asyncio.timeout(STALL / 3):
                    await ask(engine, "-")
            except TimeoutError:
                continue

    with pytest.raises(EngineError, match="stuck"):
        await asyncio.wait_for(impatient(), 5)


async def test_time_in_which_this_process_stood_still_does_not_count() -> None:
    clock = iter(range(0, 10**9, 10**6))  # every look is a million seconds late
    inner = Quiet()
    engine = WatchedEngine(inner, 1.0, clock=lambda: float(next(clock)))
    slow = ask(engine, "-")
    await asyncio.sleep(0.3)  # six of twenty looks, each counted as two at most
    assert not slow.done()
    inner.open[0].set_result(None)
    await slow


async def test_cancellation_reaches_the_engine_and_its_errors_come_through() -> None:
    inner = Quiet()
    engine = watched(inner, 5)
    slow = ask(engine, "-")
    await asyncio.sleep(0.01)
    slow.cancel()
    await asyncio.sleep(0.01)
    assert inner.open[0].cancelled()
    with pytest.raises(EngineError, match="it died"):
        await ask(engine, "fail")


async def test_each_of_several_engines_is_watched_on_its_own() -> None:
    busy = Moving()
    engine = watched(SeveralEngines({"": busy, "same": busy, "other": Quiet()}), STALL)
    slow = ask(engine, "-")
    with pytest.raises(EngineError, match="stuck"):
        await asyncio.wait_for(ask(engine, "-", engine="other"), 5)
    assert not slow.done()
    assert (await ask(engine, "answer", engine="same")).text == "{}"


async def test_the_sampler_sticks_on_demand(engine_with: Callable[..., Any], plan_of: Any) -> None:
    engine = watched(engine_with(Fault(kind="stick", share=1.0)), STALL * 3)
    plan = plan_of()
    await engine.start([plan])
    with pytest.raises(EngineError, match="stuck"):
        await engine.generate(Prompt(plan.prefix, "Ann"), plan, Sampling(20))
