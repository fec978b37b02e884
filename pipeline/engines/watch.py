"""Watch: an engine that neither answers nor moves is stuck, and waiting for it would take for ever.

An engine may have `progress() -> float`, the time of `time.monotonic` of its last sign of life: one that decodes long
answers is not stuck although none ends. Without it, only answers count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from pipeline.engines import Engine
from pipeline.engines.several import SeveralEngines
from pipeline.errors import EngineError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

LOOKS = 20
"""How often the time that may pass is looked at while it passes."""

Answer = asyncio.Future[Completion]


def watched(engine: Engine, stall_seconds: float, key: str = "safety.engine_stall_seconds") -> Engine:
    """The engine, with calls that raise EngineError when it is stuck for so long. Several engines are watched each on
    its own: one of them may be stuck while the others work. `key` is where a user sets the time."""
    if isinstance(engine, SeveralEngines):
        return engine.each(lambda one: WatchedEngine(one, stall_seconds, key))
    return WatchedEngine(engine, stall_seconds, key)


class WatchedEngine:
    """Counts the time that passes with requests open and without a sign of life.

    Time in which nothing is open does not count, nor does time in which this process itself stood still, as while
    it was stopped: it is counted in small steps, and a late one counts as two at most. `clock` is `time.monotonic`'s.
    """

    def __init__(
        self,
        engine: Engine,
        stall_seconds: float,
        key: str = "safety.engine_stall_seconds",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._limit = stall_seconds
        self._key = key
        self._clock = clock
        self._open: set[Answer] = set()
        self._idle = 0.0
        self._moved = float("-inf")
        self._stuck = ""
        self._watch: asyncio.Task[None] | None = None

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt.

        Raises:
            EngineError: from the engine, or it is stuck; then for every later call, too.
        """
        if self._stuck:
            raise EngineError(self._stuck)
        answer: Answer = asyncio.get_running_loop().create_future()
        asked = asyncio.ensure_future(self._engine.generate(prompt, plan, sampling))
        asked.add_done_callback(lambda done: self._pass_on(done, answer))
        self._open.add(answer)
        if self._watch is None:
            self._watch = asyncio.create_task(self._look(), name="watch of the engine")
        try:
            return await answer
        finally:
            self._open.discard(answer)
            asked.cancel()  # of one that is done, this does nothing

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Start the engine, which takes the time that it takes."""
        await self._engine.start(plans)

    async def close(self) -> None:
        """Close the engine."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        await self._engine.close()

    def _pass_on(self, done: asyncio.Future[Completion], answer: Answer) -> None:
        if done.cancelled():
            answer.cancel()
            return
        error = done.exception()
        self._idle = 0.0
        if answer.done():
            return
        if error is None:
            answer.set_result(done.result())
        else:
            answer.set_exception(error)

    async def _look(self) -> None:
        """While requests are open. What was cancelled is no sign of life, so the count goes on with the next one."""
        step = self._limit / LOOKS
        try:
            while self._open:
                before = self._clock()
                await asyncio.sleep(step)
                self._idle = 0.0 if self._has_moved() else self._idle + min(self._clock() - before, 2 * step)
                if self._open and self._idle >= self._limit:
                    self._give_up()
                    return
        finally:
            self._watch = None

    def _has_moved(self) -> bool:
        progress: Callable[[], float] | None = getattr(self._engine, "progress", None)
        last, self._moved = self._moved, progress() if progress is not None else self._moved
        return self._moved > last

    def _give_up(self) -> None:
        self._stuck = (
            f"the engine is stuck: {len(self._open)} requests are open, and for {self._limit:g} s "
            f"(`{self._key}`) it gave neither an answer nor another sign of life"
        )
        for answer in self._open:
            if not answer.done():
                answer.set_exception(EngineError(self._stuck))
