"""Fleet: the engines of one back end, each in an actor of its own, from the first request for GPUs to their release.

All of them are asked for at once. A job begins when `min_engines` serve; the others join when the cluster has room, be
it hours later. One that dies is started again by Ray, wherever there is room, and one that has nothing to do at the end
leaves. How an engine over several GPUs lies is told in `bundles.py`.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

from pipeline.engines.pool import PoolEngine
from pipeline.runtime.bundles import bundles_of, own_gpus, with_executor
from pipeline.runtime.replica import EngineReplica, RayReplica, ReplicaLook
from pipeline.runtime.setup import Setup

CALL_SECONDS = 5.0
CLOSE_SECONDS = 10.0
CALLS = 10_000
"""Requests that wait in a replica are bounded by its callers."""


@dataclasses.dataclass(slots=True)
class _Seat:
    """A replica as the driver sees it. `call` is what it was asked last: `ready` until it serves, then `look`."""

    process: str
    handle: Any
    group: Any
    call: Any = None
    called: float = 0.0
    serves: bool = False
    broken: bool = False
    look: ReplicaLook | None = None


class Fleet:
    """Made and closed by the driver, which also has to `tend` it about once a second."""

    def __init__(self, setup: Setup, backend: str, control: Any) -> None:
        """Ask for the engines; waits for none of them.

        Raises:
            JobFileError: an engine over several GPUs shares its process with another engine that needs one.
        """
        import ray

        self._setup = dataclasses.replace(setup, job=with_executor(setup.job))
        self._backend = backend
        self._control = control
        self._seats: list[_Seat] = []
        self._worked = False
        # Held here: Ray starts a dead replica again from what its constructor was given.
        self._given = ray.put(self._setup)
        try:
            for number in range(setup.job.placement.max_engines):
                self._seats.append(self._seat(f"engine-{backend}-{number}"))
        except BaseException:
            self.close()
            raise

    def pool(self) -> PoolEngine:
        """What leads to the engines, for one process of those that call them."""
        placement, most = self._setup.job.placement, 2 * self._setup.job.engine.max_num_seqs
        return PoolEngine(
            [RayReplica(seat.handle, seat.process, self._control) for seat in self._seats],
            most=most,
            share=math.ceil(most / self._setup.processes),
            first=placement.min_engines,
            start_seconds=placement.start_seconds,
        )

    @property
    def looks(self) -> Mapping[str, ReplicaLook]:
        """The latest of each replica that serves."""
        return {seat.process: seat.look for seat in self._seats if seat.serves and seat.look is not None}

    def tend(self, *, tail: bool) -> None:
        """Look after the replicas: one whose process stands still is ended, so that Ray starts it again; one that is
        idle leaves, if this is the `tail` of the work: whoever left does not come back."""
        import ray

        for seat in self._seats:
            if seat.call is None and not seat.broken:
                seat.call = seat.handle.look.remote() if seat.serves else seat.handle.ready.remote()
                seat.called = time.monotonic()
            elif seat.call is not None and ray.wait([seat.call], timeout=0)[0]:
                self._hear(seat)
            elif seat.serves and time.monotonic() - seat.called > self._setup.job.safety.engine_stall_seconds:
                ray.kill(seat.handle, no_restart=False)
                seat.call, seat.serves = None, False
        if tail:
            self._let_go()

    def close(self) -> None:
        """End all replicas and free what they hold."""
        import ray

        closing = [seat.handle.close.remote() for seat in self._seats if seat.serves]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)
        while self._seats:
            self._remove(self._seats[-1])

    def _hear(self, seat: _Seat) -> None:
        import ray

        call, seat.call = seat.call, None
        try:
            answer = ray.get(call)
        except ray.exceptions.RayTaskError:
            seat.broken = True  # its callers hear of it and end the job
        except ray.exceptions.RayError:
            seat.serves, seat.look = False, None
        else:
            seat.look = answer if seat.serves else None
            seat.serves = True

    def _let_go(self) -> None:
        placement = self._setup.job.placement
        looks = self.looks
        idle = [name for name, look in looks.items() if look.idle_seconds >= placement.idle_seconds]
        self._worked = self._worked or any(look.answered for look in looks.values())
        if not idle or not self._worked or len(self._seats) <= placement.min_engines or self._is_pilot_out():
            return
        for seat in [seat for seat in self._seats if not seat.serves]:
            if len(self._seats) > placement.min_engines:
                self._remove(seat)  # it waits for GPUs that nobody needs any more
        for seat in [seat for seat in self._seats if seat.process in idle]:
            if len(self._seats) > placement.min_engines and self._retires(seat):
                self._remove(seat)

    def _is_pilot_out(self) -> bool:
        """Whether engines are idle only because the mass has not begun."""
        import ray

        plans = self._setup.plans_for(self._backend)
        try:
            return "wait" in ray.get([self._control.gate.remote(plan.name) for plan in plans], timeout=CALL_SECONDS)
        except ray.exceptions.RayError:
            return True

    def _retires(self, seat: _Seat) -> bool:
        import ray

        try:
            return bool(ray.get(seat.handle.retire.remote(), timeout=CALL_SECONDS))
        except ray.exceptions.RayError:
            return False

    def _remove(self, seat: _Seat) -> None:
        import ray
        from ray.util import remove_placement_group

        self._seats.remove(seat)
        ray.kill(seat.handle)
        if seat.group is not None:
            remove_placement_group(seat.group)

    def _seat(self, process: str) -> _Seat:
        import ray
        from ray.util import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundles, strategy = bundles_of(self._setup.job)
        group = placement_group(bundles, strategy=strategy) if bundles else None
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0) if group else "SPREAD"
        kind = ray.remote(
            num_cpus=0,
            num_gpus=own_gpus(self._setup.job),
            max_restarts=-1,
            max_concurrency=CALLS,
            scheduling_strategy=where,
        )(EngineReplica)
        return _Seat(process, kind.remote(self._given, self._backend, self._control, process), group)
