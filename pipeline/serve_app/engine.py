"""The engine deployment: one engine a replica, for the endpoint and for jobs with placement `serve`.

    router (by schema and document) ─▶ replica: gate ⟨online first, jobs to their share⟩ ─▶ watched engine

A replica whose engine is dead or stuck ends its process, and Serve starts another. What is under way there is lost to
its callers, who ask again (`engines/serve.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from pipeline.engines.gate import Gate, GateFullError
from pipeline.engines.serve import Ask
from pipeline.engines.several import build_all
from pipeline.engines.startup import prove_constraint, warm
from pipeline.engines.watch import watched
from pipeline.errors import EngineError
from pipeline.records import Completion
from pipeline.runtime.actors import leave
from pipeline.runtime.bundles import with_executor
from pipeline.runtime.output.identity import decoding_of
from pipeline.runtime.served import PoolReply
from pipeline.schema.plan import DecodingPlan
from pipeline.serve_app.settings import AppConfig

KEPT_PLANS = 256
"""Plans of jobs and of inline schemas that a replica remembers, besides those of the application."""

REFRESH = 32
"""After so many turns to a plan that is not the application's, its own are used again, so that a library which keeps
the most recent grammars keeps these."""

TOLD_SECONDS = 0.1
"""What a caller has to hear before the engine dies has this long to get there."""

LATE = "the document's time ran out while the engine was answering"

PROOF_SECONDS = 60.0
"""How long the proof of an idle engine may take."""


class EngineDeployment:
    """See the module. Serve calls what has no underscore."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, config: AppConfig, plans: Sequence[DecodingPlan]
    ) -> None:
        """Start the engine, warm the plans, prove the constraint.

        Raises:
            GristmillError: it cannot start. Serve tries again, and shows why in the end.
        """
        self._config = config
        self._own = {plan.digest: plan for plan in plans}
        self._others: OrderedDict[str, DecodingPlan] = OrderedDict()
        self._stranger = ""
        self._strangers = 0
        """How often a request came under another plan that is not the application's than the one before."""
        self._refreshing: asyncio.Task[None] | None = None
        self._gate = Gate(config.engine.max_num_seqs, config.pool.job_share, config.pool.waiting)
        self._answered = time.monotonic()
        self._seconds = 1.0
        """How long an answer took of late, by an exponential mean."""
        built = build_all(with_executor(config), config.engine.backend, shared=True)
        self._engine = watched(built, config.pool.stall_seconds, "pool.stall_seconds")
        await self._engine.start(plans)

    async def generate(self, ask: Ask, plan: DecodingPlan | None = None) -> PoolReply:
        """Answer one prompt, or say why not (`PoolReply`). This process ends if the engine is gone."""
        known = plan or self._own.get(ask.plan) or self._others.get(ask.plan)
        if known is None:
            return PoolReply()
        self._remember(known)
        try:
            async with self._gate.place(online=ask.online, wait=not ask.passing):
                return PoolReply(await self._generate(ask, known))
        except GateFullError:
            return PoolReply(retry_after=self._until_room())

    async def generate_alone(self, ask: Ask, plan: DecodingPlan) -> AsyncIterator[PoolReply | None]:
        """As `generate`, with nothing else in the engine: None when that is so, then the reply."""
        self._remember(plan)
        try:
            async with self._gate.alone():
                yield None
                await asyncio.sleep(TOLD_SECONDS)
                yield PoolReply(await self._generate(ask, plan))
        except GateFullError:
            yield PoolReply(retry_after=self._until_room())

    async def _generate(self, ask: Ask, plan: DecodingPlan) -> Completion:
        began = time.monotonic()
        try:
            async with asyncio.timeout(ask.seconds) as scope:
                completion = await self._engine.generate(ask.prompt, plan, ask.sampling)
        except TimeoutError:
            if not scope.expired():
                raise
            late = Completion("", "error", constrained=False, plan_digest=plan.digest, error="deadline", detail=LATE)
            return replace(late, seconds=time.monotonic() - began)
        except EngineError:
            leave()
        self._answered = time.monotonic()
        self._seconds += 0.1 * (self._answered - began - self._seconds)
        return completion

    async def facts(self) -> dict[str, Any]:
        """What the engine config says of the decoding."""
        return decoding_of(self._config.engine)

    async def check_health(self) -> None:
        """Serve asks now and then. An engine that is at work is watched anyway; an idle one proves its constraint.

        Raises:
            EngineError: it does not.
        """
        if time.monotonic() - self._answered < self._config.pool.stall_seconds or self._gate.held:
            return
        async with asyncio.timeout(PROOF_SECONDS):
            await prove_constraint(self._engine)
        self._answered = time.monotonic()

    def _remember(self, plan: DecodingPlan) -> None:
        if plan.digest in self._own:
            return
        if plan.digest != self._stranger:
            self._stranger = plan.digest
            self._strangers += 1
        self._others[plan.digest] = plan
        self._others.move_to_end(plan.digest)
        if len(self._others) > KEPT_PLANS:
            self._others.popitem(last=False)
        if self._strangers >= REFRESH and self._refreshing is None:
            self._strangers = 0
            self._refreshing = asyncio.create_task(self._refresh(), name="refresh of the application's grammars")

    async def _refresh(self) -> None:
        """One at a time and behind callers, like a request of a job. What there is no room for has to wait."""
        try:
            for plan in self._own.values():
                with contextlib.suppress(GateFullError):
                    async with self._gate.place(online=False):
                        await warm(self._engine, [plan])
        except EngineError:
            leave()
        finally:
            self._refreshing = None

    def _until_room(self) -> float:
        """Seconds until the line is likely to be half as long."""
        return max(0.1, self._seconds * self._gate.waiting / (2 * self._config.engine.max_num_seqs))
