"""Waiting for an engine to return costs a document nothing of its time; waiting for its answer does."""

from __future__ import annotations

import asyncio

import pytest
from test_pool import SAMPLING, Fake, plan, pool_of

from pipeline.engines.patience import counted
from pipeline.records import Completion, Prompt


@pytest.mark.asyncio
async def test_what_waits_for_a_replica_to_return_does_not_lose_its_documents_time() -> None:
    """Else an engine that returns after the deadline of the documents in flight would reject all of them."""
    one = Fake("one")
    pool = pool_of(one)

    async def within(seconds: float) -> Completion:
        async with asyncio.timeout(seconds) as scope:
            with counted(scope):
                return await pool.generate(Prompt("Extract.", "a"), plan(), SAMPLING)

    task = asyncio.create_task(within(0.3))
    while not one.open:
        await asyncio.sleep(0)
    one.die()
    await asyncio.sleep(0.6)
    assert not task.done()
    one.up.set()
    while not one.open:
        await asyncio.sleep(0.01)
    one.release()
    assert (await task).engine == "one"
    busy = asyncio.create_task(within(0.1))  # it is at work on this one: that is the document's time
    with pytest.raises(TimeoutError):
        await busy
    await pool.close()
