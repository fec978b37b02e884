"""The clock of a document's request: waits may nest, overlap, and outlive it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from pipeline.engines.patience import count, counted, seconds_left, uncounted
from pipeline.engines.watch import WatchedEngine
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import literal_plan

PLAN = literal_plan("word", "x")


@pytest.mark.asyncio
async def test_nested_and_overlapping_waits_count_once() -> None:
    async def wait(seconds: float) -> None:
        with uncounted():
            await asyncio.sleep(seconds)

    async with asyncio.timeout(10) as scope:
        with counted(scope) as clock:
            with uncounted(), uncounted():
                await asyncio.sleep(0.2)
            assert 0.19 < clock.waited < 0.35
            await asyncio.gather(wait(0.3), wait(0.2))
            assert 0.48 < clock.waited < 0.75
            left = seconds_left()
            assert left is not None and 9.5 < left <= 10.01


@pytest.mark.asyncio
async def test_a_deadline_passes_as_ever_outside_of_waits() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2) as scope:
            with counted(scope):
                with uncounted():
                    await asyncio.sleep(0.4)
                await asyncio.sleep(20)


@pytest.mark.asyncio
async def test_what_was_spent_on_the_document_in_a_wait_counts() -> None:
    async with asyncio.timeout(5) as scope:
        with counted(scope) as clock:
            with uncounted():
                await asyncio.sleep(0.4)
                count(0.3)
            assert 0.05 < clock.waited < 0.25
    with uncounted():  # of nobody's request
        count(1)
        assert seconds_left() is None


@pytest.mark.asyncio
async def test_a_wait_that_outlives_its_request_moves_nothing() -> None:
    """As behind a watched engine, whose work goes on for a moment when its caller has left."""

    class Waits:
        async def start(self, plans: object) -> None: ...

        async def close(self) -> None: ...

        async def generate(self, prompt: Prompt, plan: object, sampling: Sampling) -> Completion:
            with uncounted():
                await asyncio.sleep(30)
            return Completion("", "stop", True)

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
    engine = WatchedEngine(Waits(), 300.0)  # type: ignore[arg-type]

    async def ask() -> None:
        async with asyncio.timeout(0.2) as scope:
            with counted(scope):
                await engine.generate(Prompt("", ""), PLAN, Sampling(max_tokens=1))

    task = asyncio.create_task(ask())
    await asyncio.sleep(0.4)
    assert not task.done(), "it only waits"
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    assert failures == []
