"""ServeEngine: an engine pool that is shared with others, behind the one seam.

    generate ─▶ [a suspect waits for its turn] ─▶ the pool's router ─▶ a replica's gate ─▶ answer
                   ▲                                          │
                   └── the replica is gone ── no room (jobs) ─┘

A caller does not see which replica answers, and a pool that serves strangers keeps no ledger. So a request that loses
its replica is suspect, and goes on with few others; one that loses a second one is put before an engine alone, with
nothing of anybody else in it, and if that dies, too, it is poison. A loss counts that last time only if the request was
alone inside: others who are waited for may have their own killers. How the pool is reached is the runtime's matter.

Of a job, only the time in the engine counts against the document's deadline, and the replica sees to that.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pipeline.engines.busy import EngineBusyError
from pipeline.engines.patience import count, seconds_left, uncounted
from pipeline.engines.replica import ReplicaGone, request_key
from pipeline.engines.startup import prove_and_warm
from pipeline.errors import EngineError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

LOSSES = 3
"""So many replicas may be lost under one request: one in company, one among few, one alone."""

UNPROVEN = 6
"""So many losses under one call, if it was not proven that the request was alone. Then it failed, and is not poison."""

SUSPECTS = 4
"""So many suspects of this caller are under way at a time."""

ONLINE_LOSSES = 2
"""So many of them while an online caller waits. The next call goes on counting."""

ONLINE_TRIES = 3
"""At so many places of the ring an online request asks for room."""

PASSING_TRIES = 4
"""At so many places of the ring a job's request asks for a place that is free now, before it waits in line at the next:
documents do not fall evenly on the ring."""

REMEMBERED = 10_000
"""Requests of which it is known that they lost a replica."""

SPREAD = 8
"""A schema's documents go by their hash to so many places of the router's ring, that a schema is warm on some replicas
and none has all of it."""

POISON = f"{LOSSES} engines died while they worked on this request, the last of them on nothing else"


class LostAlone(ReplicaGone):  # an event, as its base
    """The replica died while this request was alone in its engine."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the pool, under the plan of this digest. `seconds` bound its time in the engine; `alone`: nothing
    else may be in the engine then; `passing`: it does not wait for a place there."""

    prompt: Prompt
    plan: str
    sampling: Sampling
    online: bool
    seconds: float | None = None
    alone: bool = False
    passing: bool = False


class SharedPool(Protocol):
    """An engine pool elsewhere, as one caller reaches it."""

    async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
        """The answer of some replica, for equal sessions of the same one while it can be. The plan itself travels only
        if that does not know it.

        Raises:
            LostAlone: it was lost while the request was alone in its engine.
            ReplicaGone: it was lost meanwhile.
            EngineBusyError: there is no room.
            EngineError: the pool is gone for good.
        """
        ...


class ServeEngine:
    """`online` requests go before those of jobs, and are told when there is no room; those of jobs wait. After a loss,
    up to `return_seconds` pass until the next try. Who does not ask under a constraint need not have it proven."""

    def __init__(
        self, pool: SharedPool, *, online: bool, return_seconds: float = 1.0, constrained: bool = True
    ) -> None:
        self._pool = pool
        self._online = online
        self._constrained = constrained
        self._return_seconds = return_seconds
        self._losses: OrderedDict[str, int] = OrderedDict()
        self._few: asyncio.Semaphore | None = None

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Make the plans known, and prove that the constraint, if one is used, is in force on the way there.

        Raises:
            EngineError, SchemaError: as `prove_and_warm`.
        """
        await prove_and_warm(self, plans, constrained=self._constrained)

    async def close(self) -> None:
        """The pool belongs to others."""

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt.

        Raises:
            EngineBusyError: an online request, and there is no room.
            EngineError: the pool is gone; of an online request also: replicas were lost while they worked on it.
        """
        if self._online:
            return await self._asked(prompt, plan, sampling, None)
        left = seconds_left()
        with uncounted():
            completion = await self._asked(prompt, plan, sampling, left)
            count(completion.seconds + completion.audit_seconds)
        return completion

    async def _asked(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling, seconds: float | None) -> Completion:
        key, losses = request_key(prompt, plan.digest, sampling), 0
        while (lost := self._losses.get(key, 0)) < LOSSES:
            ask = Ask(prompt, plan.digest, sampling, self._online, seconds, alone=lost == LOSSES - 1)
            try:
                async with self._turn(lost):
                    answer = await self._patiently(ask, plan)
                self._losses.pop(key, None)
                return answer
            except ReplicaGone as gone:
                losses += 1
                if not ask.alone or isinstance(gone, LostAlone):
                    self._lost(key)
                elif losses > UNPROVEN:
                    detail = f"{losses} engines were lost under it, and nobody can tell whether it was the cause"
                    return Completion("", "error", False, plan_digest=plan.digest, error="engine_failed", detail=detail)
                if self._online and losses == ONLINE_LOSSES:
                    words = f"engines were lost while they worked on this ({gone}). Try again."
                    raise EngineError(words) from gone
                await asyncio.sleep(self._return_seconds * random.random())
        return Completion("", "error", False, plan_digest=plan.digest, error="poison", detail=POISON)

    async def _patiently(self, ask: Ask, plan: DecodingPlan) -> Completion:
        """Where there is no room, ask at the next places of the ring: at some of them while an online caller waits,
        which is told then; of a job for as long as it takes, at first for a place that is free."""
        first = place_of(ask.prompt)
        for tries in itertools.count():
            passing = not self._online and not ask.alone and tries < PASSING_TRIES
            here = replace(ask, passing=passing)
            try:
                return await self._pool.generate(f"{plan.name}:{(first + tries) % SPREAD}", here, plan)
            except EngineBusyError as busy:
                if self._online and tries + 1 == ONLINE_TRIES:
                    raise
                if not self._online and not passing:
                    await asyncio.sleep(busy.retry_after * (0.5 + random.random()))
        raise AssertionError

    @contextlib.asynccontextmanager
    async def _turn(self, losses: int) -> AsyncIterator[None]:
        """At once; of a suspect, among few."""
        if not losses:
            yield
            return
        if self._few is None:
            self._few = asyncio.Semaphore(SUSPECTS)  # not before: this object travels to the process that uses it
        async with self._few:
            yield

    def _lost(self, key: str) -> None:
        self._losses[key] = self._losses.pop(key, 0) + 1
        if len(self._losses) > REMEMBERED:
            self._losses.popitem(last=False)


def place_of(prompt: Prompt) -> int:
    """One of `SPREAD` places, by the document. A retry begins as the document's first prompt did, and so goes to the
    replica that holds that."""
    first = prompt.user.partition("\n")[0].encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(first, digest_size=4).digest(), "big") % SPREAD
