"""EngineReplica: an engine in a Ray actor of its own, and RayReplica, which is what its callers hold.

Requests are on the job's ledger while the engine works on them, as documents are in the processes that own them: one
that kills its engine is found, and never put before another one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

from pipeline.engines import Engine
from pipeline.engines.replica import ReplicaGone
from pipeline.engines.several import build_all
from pipeline.engines.watch import watched
from pipeline.errors import EngineError, GristmillError, ResourceError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.runtime.actors import leave, starting
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control_calls import RayControl
from pipeline.runtime.supervise.guard import Guard

RETURN_SECONDS = 0.5
"""How often is asked whether a process that died is there again."""
LAST_TRIES = 3
"""So often Ray has to say that a process is dead for good."""
LAG_STEP = 0.1
LAG_STEPS = 600
POISON = "the engine died while it worked on this request, and died again while it worked on nothing else"


@dataclass(frozen=True, slots=True)
class ReplicaLook:
    """What the driver sees of a replica. `place` is its node and the GPUs that it has there; `idle_seconds` pass since
    its last request, or since it serves; `answered` counts requests of this process; `lag` is the mean and the most,
    in seconds, by which its event loop was late in the last minute."""

    place: tuple[str, ...]
    pid: int

    in_flight: int
    idle_seconds: float
    answered: int
    lag: tuple[float, float]


class EngineReplica:
    """The actor. `process` is its name on the ledger, the same for the process that Ray starts when this one died."""

    def __init__(self, setup: Setup, backend: str, control: Any, process: str) -> None:
        self._setup = setup
        self._backend = backend
        self._process = process
        self._calls = RayControl(control)
        self._events = setup.log(process)
        self._guard = Guard(process, self._calls)
        self._plans = {plan.digest: plan for plan in setup.plans_for(backend)}
        self._started: asyncio.Task[Engine] | None = None
        self._in_flight = 0
        self._answered = 0
        self._last = time.monotonic()
        self._retired = False
        self._lag = LoopLag()
        self._place: tuple[str, ...] = ()

    async def ready(self) -> bool | None:
        """Wait for the engine; whether it answered before, None if it is leaving.

        Raises:
            GristmillError: it cannot start.
        """
        await self._engine()
        return None if self._retired else self._answered > 0

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int] | None:
        """As `Replica.generate`; None if it is leaving. This process ends if the engine is gone."""
        if self._retired:
            return None
        self._in_flight += 1
        try:
            engine = await self._engine()
            async with self._guard.open(key) as healthy:
                if healthy:
                    completion = await engine.generate(prompt, self._plans[plan], sampling)
                else:
                    completion = Completion("", "error", False, plan_digest=plan, error="poison", detail=POISON)
        except Exception as error:  # the guard lets nobody in any more
            await self._give_up(error)
            raise
        finally:
            self._in_flight -= 1
            self._last = time.monotonic()
        self._answered += 1
        return completion, self._in_flight

    async def look(self) -> ReplicaLook:
        """How it does."""
        idle = 0.0 if self._in_flight else time.monotonic() - self._last
        return ReplicaLook(self._place, os.getpid(), self._in_flight, idle, self._answered, self._lag.seen())

    async def retire(self) -> bool:
        """Take no more requests, if none is in flight."""
        self._retired = self._retired or not self._in_flight
        return self._retired

    async def close(self) -> None:
        """Free what the engine holds."""
        self._retired = True
        if self._started is not None and self._started.done() and not self._started.exception():
            await self._started.result().close()
        await asyncio.to_thread(self._events.close)

    async def _engine(self) -> Engine:
        if self._started is None:
            self._started = asyncio.create_task(self._start())
        return await asyncio.shield(self._started)

    async def _start(self) -> Engine:
        import ray

        context = ray.get_runtime_context()
        node = str(context.get_node_id())
        self._place = (node, *map(str, context.get_accelerator_ids().get("GPU", ())))
        await self._calls.born(self._process, node)
        try:
            built = build_all(self._setup.job, self._backend)
            engine = watched(built, self._setup.job.safety.engine_stall_seconds)
            with starting(self._events, self._setup.job.engine.engine, self._backend):
                await engine.start(self._setup.plans_for(self._backend))
        except (EngineError, ResourceError) as error:
            # It did start before: what its predecessor held may not be free yet, or its new node may be a bad one.
            if context.was_current_actor_reconstructed:
                await self._give_up(error)
            raise
        self._lag.begin()
        self._last = time.monotonic()
        return engine

    async def _give_up(self, error: Exception) -> None:
        """Tell why, and end this process, so that Ray starts another."""
        words = str(error) if isinstance(error, GristmillError) else repr(error)
        kind, text = self._setup.job.engine.engine, {"message": words}
        self._events.write("engine_lost", text, engine=kind, error=type(error).__name__)
        try:
            await asyncio.to_thread(self._events.flush)
            await self._calls.report(self._process, {}, reason=f"{self._process}: {words}")
        finally:
            leave()


class RayReplica:
    """A caller's side. `handle` is the actor's."""

    def __init__(self, handle: Any, process: str, control: Any) -> None:
        self.name = process
        self._handle = handle
        self._calls = RayControl(control)

    async def ready(self) -> bool:
        """As `Replica.ready`."""
        from ray.exceptions import ActorDiedError

        dead = 0
        while True:
            try:
                worked: bool | None = await _answer(self._handle.ready.remote())
                if worked is not None:
                    return worked
            except ReplicaGone as gone:
                dead = dead + 1 if isinstance(gone.__cause__, ActorDiedError) else 0
                if dead >= LAST_TRIES:
                    raise
            await asyncio.sleep(RETURN_SECONDS)

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int]:
        """As `Replica.generate`. Cancellation ends the request there, too."""
        import ray

        reference = self._handle.generate.remote(key, prompt, plan, sampling)
        try:
            answer: tuple[Completion, int] | None = await _answer(reference)
        except asyncio.CancelledError:
            ray.cancel(reference)
            raise
        if answer is None:
            raise ReplicaGone(f"{self.name} left")
        return answer

    async def missed(self, key: str) -> None:
        """As `Replica.missed`.

        Raises:
            EngineError: the job's control does not answer.
        """
        await self._calls.missed(self.name, key)


class LoopLag:
    """How late an event loop is: by how much more than it was to take a short sleep takes."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=LAG_STEPS)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Measure from now on, in the running loop."""
        self._task = asyncio.create_task(self._measure(), name="lag of the event loop")

    def seen(self) -> tuple[float, float]:
        """Mean and maximum of the last minute, in seconds."""
        return (sum(self._late) / len(self._late), max(self._late)) if self._late else (0.0, 0.0)

    async def _measure(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await asyncio.sleep(LAG_STEP)
            self._late.append(clock() - began - LAG_STEP)


async def _answer(call: Awaitable[Any]) -> Any:
    """Raises ReplicaGone if the process is, and what it raised without what Ray wraps around it."""
    from ray.exceptions import RayError, RayTaskError

    try:
        return await call
    except RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, Exception) else EngineError(str(error)) from None
    except RayError as error:
        raise ReplicaGone(f"{type(error).__name__}: {error}".splitlines()[0]) from error
