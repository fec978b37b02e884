"""Pool: engines in other processes, which come late, die, return and leave, behind the one seam.

    generate ─▶ waiting (first come, first served) ─▶ a replica with room, chosen by affinity ─▶ answer
                   ▲                                       │
                   └────────── its replica is gone ────────┘

Knows nothing of how replicas are reached. Each caller's process has a pool of its own; what they know of each other is
the load that replicas report.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engines.affinity import Affinity
from pipeline.engines.patience import uncounted
from pipeline.engines.replica import Replica, ReplicaGone, request_key
from pipeline.errors import EngineError, GristmillError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

REQUEUES = 64
"""So many replicas may be lost under one request. Its document's deadline ends it before, in general."""

LOOK_SECONDS = 1.0

KNOWN_SECONDS = 2.0
"""How long what a replica told of other callers counts. Without an answer from it for longer, it may be idle by now."""


@dataclass(slots=True)
class _Member:
    """A replica as this pool sees it. `life` counts how often it was lost, `heard` is when it told of `others`."""

    replica: Replica
    serves: bool = False
    life: int = 0
    own: int = 0
    others: int = 0
    heard: float = float("-inf")

    @property
    def load(self) -> int:
        return self.own + (self.others if time.monotonic() - self.heard < KNOWN_SECONDS else 0)


@dataclass(slots=True, eq=False)
class _Waiter:
    schema: str
    document: str
    turn: asyncio.Future[_Member] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class PoolEngine:
    """`most` requests may be in flight at a replica, of which `share` are this caller's whatever the others do.
    `first` replicas must serve before the first document; if none does for `start_seconds`, the pool gives up.

    It may travel to another process until it is used.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        *,
        most: int,
        share: int,
        first: int = 1,
        start_seconds: float,
    ) -> None:
        self._members = {replica.name: _Member(replica) for replica in replicas}
        self._most = most
        self._share = max(1, min(share, most))
        self._first = first
        self._start_seconds = start_seconds
        self._affinity = Affinity(most)
        self._waiting: deque[_Waiter] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: GristmillError | None = None
        self._working = False
        """Some replica was at work before this caller came."""
        self._begun = False
        self._joined = 0

    @property
    def loads(self) -> Mapping[str, int]:
        """Requests in flight by replica that serves, as far as this caller knows."""
        return {name: member.load for name, member in self._members.items() if member.serves}

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Wait for the first replicas; they were given the plans. A caller that comes later, after the death of its
        process, goes on with those that serve.

        Raises:
            EngineError: they do not serve within `start_seconds`.
            GristmillError: one of them cannot start.
        """
        self._begin()
        clock = asyncio.get_running_loop().time
        until = clock() + self._start_seconds
        while (serving := len(self.loads)) < self._first and not (serving and self._working):
            if self._failure is not None:
                raise self._failure
            if clock() >= until:
                raise EngineError(self._missing())
            await asyncio.sleep(min(LOOK_SECONDS, self._start_seconds) / 10)
            await self._ask_for_work()

    async def close(self) -> None:
        """Stop waiting for replicas. They belong to somebody else."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt, however many replicas are lost meanwhile.

        Raises:
            EngineError: no replica served for `start_seconds`, or one cannot start, or all have left.
        """
        self._begin()
        key, document = request_key(prompt, plan.digest, sampling), prompt.user.partition("\n")[0]
        for lost in range(REQUEUES):
            member = await self._turn(_Waiter(plan.name, document), again=lost > 0)
            life = member.life
            try:
                completion, others = await member.replica.generate(key, prompt, plan.digest, sampling)
                member.others, member.heard = max(0, others - (member.own - 1)), time.monotonic()
                self._affinity.answered(document, member.replica.name)
                return completion
            except ReplicaGone:
                self._lose(member, life)
                await member.replica.missed(key)
            finally:
                member.own -= 1
                self._dispatch()
        detail = f"{REQUEUES} engines were lost while they worked on it"
        return Completion("", "error", False, plan_digest=plan.digest, error="engine_failed", detail=detail)

    async def _turn(self, waiter: _Waiter, *, again: bool) -> _Member:
        """A replica with room; a request that lost one goes first."""
        if self._failure is not None:
            raise EngineError(str(self._failure)) from self._failure
        (self._waiting.appendleft if again else self._waiting.append)(waiter)
        self._dispatch()
        try:
            with uncounted():
                return await waiter.turn
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.turn.cancelled() and waiter.turn.exception() is None:
                waiter.turn.result().own -= 1  # it was given a place, and cancelled before it noticed
                self._dispatch()
            raise

    def _dispatch(self) -> None:
        """Give places to those that wait, in their order."""
        while self._waiting:
            room = {name: m.load for name, m in self._members.items() if m.serves and self._has_room(m)}
            if not room:
                return
            waiter = self._waiting.popleft()
            if waiter.turn.done():
                continue
            member = self._members[self._affinity.choose(waiter.schema, waiter.document, room)]
            member.own += 1
            waiter.turn.set_result(member)

    def _has_room(self, member: _Member) -> bool:
        return member.own < self._share or member.load < self._most

    def _begin(self) -> None:
        """Wait for all replicas in the background, from the first call on."""
        if self._begun:
            return
        self._begun = True
        for member in self._members.values():
            self._go(self._join(member))
        self._go(self._be_patient())

    async def _join(self, member: _Member) -> None:
        """Wait for a replica, once more each time it was lost."""
        try:
            worked = await member.replica.ready()
        except ReplicaGone:
            del self._members[member.replica.name]
            if not self._members:
                self._fail(EngineError("no engine is left: all of them ended for good. Run the same command again."))
            return
        except Exception as error:
            if self.loads:  # others serve: its node is not ours to mend
                del self._members[member.replica.name]
                return
            self._fail(error if isinstance(error, GristmillError) else EngineError(f"{member.replica.name}: {error!r}"))
            return
        self._joined += 1
        self._working = self._working or worked
        member.others = 0
        member.serves = True
        self._dispatch()

    def _lose(self, member: _Member, life: int) -> None:
        """A request failed for want of its replica, in this life of it."""
        if member.life != life or not member.serves:
            return
        member.life += 1
        member.serves = False
        self._go(self._join(member))
        if not self.loads:
            self._go(self._be_patient())

    async def _be_patient(self) -> None:
        """Give up if nobody serves for too long."""
        joined = self._joined
        await asyncio.sleep(self._start_seconds)
        if not self.loads and self._joined == joined:
            self._fail(EngineError(self._missing()))

    async def _ask_for_work(self) -> None:
        for member in list(self._members.values()):
            if member.serves and not self._working:
                with contextlib.suppress(ReplicaGone, TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        self._working = await member.replica.ready()

    def _missing(self) -> str:
        return (
            f"{len(self.loads)} of {self._first} engines serve after {self._start_seconds:g} s "
            "(`placement.min_engines`, `placement.start_seconds`). Does the cluster have the GPUs for them, and do its "
            "nodes live? What was committed and saved is kept: run the same command to continue."
        )

    def _fail(self, error: GristmillError) -> None:
        self._failure = self._failure or error
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.turn.done():
                waiter.turn.set_exception(EngineError(str(error)))

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="pool of engines")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
