"""Stream: units through Ray Data. A row is one unit's description; an ExtractActor does all the rest of it.

    pilot rows, units by schema ──▶ ExtractActor × n: read, extract, write, commit ──▶ how each unit ended
                                        │ placement `actors`: engines in a Fleet of their own
    driver ◀── look ── Control (one actor): progress, open documents, deaths, stop rule, orders to drain

No document passes through Ray's object store, so a node that dies takes nothing with it but what was in flight there.
Back ends take turns, because an engine has one.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeline.engines import Engine
from pipeline.errors import EngineError, StalledError, StoppedError
from pipeline.observe.tally import Tally
from pipeline.runtime.actors import ExtractActor
from pipeline.runtime.cluster import check_gpus, has_choice, is_alive, job_failure, room, start_ray
from pipeline.runtime.fleet import Fleet
from pipeline.runtime.input import Unit
from pipeline.runtime.live import Live
from pipeline.runtime.served import shared_pool
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control import Control, Look
from pipeline.runtime.supervise.pilot import Pilot, choose
from pipeline.runtime.supervise.stop import stop_message

if TYPE_CHECKING:
    import ray.data

POLL_SECONDS = 1.0
CONTROL_SECONDS = 60.0
MAX_DEATHS = 3
"""Ray restarts a dead process for ever. This many deaths without a document that lives through end the job."""
MAX_UNIT_DEATHS = 200
"""Deaths since a unit was last committed. A unit of 1,000 documents may hold some poison, at three deaths each."""
_Watched: TypeAlias = tuple[Any, Callable[[Look], None]]
"""The job's control, and who is shown what it tells."""

MAX_CALLS = 64
"""Units that a process works on at once, however small they are."""


def stream(
    units: Sequence[Unit], setup: Setup, see: Callable[[Look], None] = lambda _look: None, live: Live | None = None
) -> Generator[Tally, None, None]:
    """Process units; yields the tally so far, about once a second and at the end. `see` is shown all that is known of
    the job as often, also when it ends with an error; `live` hears of it by schema, now and then.

    When it is interrupted or closed, documents in flight get `safety.drain_seconds`, and what is finished is saved.

    Raises:
        StoppedError: `stop_if` stopped documents of some schema; all others are committed.
        StalledError: no document finished for `safety.stall_seconds`.
        GristmillError: whatever stopped a stage, as it was raised there.
    """
    if not units:
        return
    import ray

    start_ray()
    pilots = choose(units, setup.job.pilot.documents, setup.job.pilot.seed)
    control = _control(pilots, setup, live)

    def shown(look: Look, *, last: bool = False) -> None:
        see(look)
        if live is not None:
            live.show(look, partial(_ask, control, "by_label"), now=last)

    try:
        for backend in sorted({setup.backend_of(unit.schema) for unit in units}):
            share = [unit for unit in units if setup.backend_of(unit.schema) == backend]
            tried = [pilot for pilot in pilots if setup.backend_of(pilot[0].schema) == backend]
            control.turn.remote()
            yield from _turn(_rows(share, tried), share, setup, backend, (control, shown))
        shown(look := _look(control), last=True)
    finally:
        ray.kill(control)
    yield Tally.from_json(look.total)
    if look.stopped:
        raise StoppedError(stop_message(look.stopped))


def _turn(
    rows: Sequence[dict[str, str]], units: Sequence[Unit], setup: Setup, backend: str, watched: _Watched
) -> Iterator[Tally]:
    """The units of one back end."""
    control, _ = watched
    fleet: Fleet | None = None
    pool: Engine | None = None
    if backend and setup.job.placement.kind == "actors":
        fleet = Fleet(setup, backend, control)
        pool = fleet.pool()
    elif backend and setup.job.placement.kind == "serve":
        pool = shared_pool(setup)
    else:
        check_gpus(setup)
    try:
        running = _Running(_dataset(rows, units, setup, backend, (control, pool)))
        yield from _follow(running, setup, watched, fleet, len(units))
    finally:
        if fleet is not None:
            fleet.close()


def _follow(running: _Running, setup: Setup, watched: _Watched, fleet: Fleet | None, units: int) -> Iterator[Tally]:
    control, see = watched
    before = _look(control).done_units
    try:
        while not running.finished.wait(POLL_SECONDS):
            see(look := _look(control))
            _check(look, setup)
            if fleet is not None:
                fleet.tend(tail=units - (look.done_units - before) <= 2 * setup.processes)
            yield Tally.from_json(look.total)
    except (KeyboardInterrupt, GeneratorExit):
        control.drain.remote()
        running.finished.wait(setup.job.safety.drain_seconds)
        raise
    if running.failure:
        with contextlib.suppress(EngineError):
            see(_look(control))
        raise job_failure(running.failure[0]) from running.failure[0]


class _Running:
    """A dataset that is being executed in a thread; `failure` holds what ended it, if anything did."""

    def __init__(self, pipeline: ray.data.Dataset) -> None:
        self.finished = threading.Event()
        self.failure: list[BaseException] = []
        self._pipeline = pipeline
        threading.Thread(target=self._drive, name="ray-data", daemon=True).start()

    def _drive(self) -> None:
        try:
            for _ in self._pipeline.iter_internal_ref_bundles():
                pass
        except BaseException as error:  # handed to the caller's thread
            self.failure.append(error)
        finally:
            self.finished.set()


def _check(look: Look, setup: Setup) -> None:
    """Raises what ends a job that gets nowhere."""
    told = f" The last one's words: {look.reasons[-1]}" if look.reasons else ""
    if look.deaths > MAX_DEATHS:
        raise EngineError(
            f"one process of the job died {look.deaths} times in a row, and no document came through in between.{told} "
            "Is the machine out of memory? --verbose shows the log; what was committed is kept."
        )
    if look.unit_deaths > MAX_UNIT_DEATHS:
        raise EngineError(
            f"processes of the job died {look.unit_deaths} times since a unit was last committed.{told} What was "
            "committed and saved is kept: run the same command to continue when the cause is mended."
        )
    if look.idle_seconds > setup.job.safety.stall_seconds:
        raise StalledError(
            f"no document finished for {look.idle_seconds:.0f} s (`safety.stall_seconds`). What was committed and "
            "saved is kept: run the same command to continue. --verbose shows what the engines do."
        )


def _control(pilots: Sequence[Pilot], setup: Setup, live: Live | None) -> Any:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    expected: dict[str, int] = {}
    for unit, rows in pilots:
        expected[unit.schema] = expected.get(unit.schema, 0) + len(rows)
    # On the node of the driver, whose death ends the job anyway.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    kind = ray.remote(num_cpus=0, scheduling_strategy=here)(Control)
    return kind.remote(setup.job.stop_if, expected, is_alive, labels=live.labels if live is not None else None)


def _look(control: Any) -> Look:
    found: Look = _ask(control, "look")
    return found


def _ask(control: Any, name: str) -> Any:
    """What the control's method of this name says."""
    import ray

    try:
        return ray.get(getattr(control, name).remote(), timeout=CONTROL_SECONDS)
    except ray.exceptions.RayError as error:
        raise EngineError(
            f"the job's control process does not answer ({type(error).__name__}): is the node of the driver out of "
            "memory? What was committed and saved is kept: run the same command to continue."
        ) from error


def _rows(units: Sequence[Unit], pilots: Sequence[Pilot]) -> list[dict[str, str]]:
    """The pilot, then schema by schema the units as they lie in the input, small ones last: they even out the end."""
    most: dict[str, int] = {}
    for unit in units:
        most[unit.schema] = max(unit.rows, most.get(unit.schema, 0))
    ordered = sorted(units, key=lambda unit: (unit.schema, 2 * unit.rows < most[unit.schema], unit.id))
    tried = [{"unit": json.dumps(unit.to_json()), "rows": json.dumps(list(rows))} for unit, rows in pilots]
    return tried + [{"unit": json.dumps(unit.to_json()), "rows": ""} for unit in ordered]


def _dataset(
    rows: Sequence[dict[str, str]],
    units: Sequence[Unit],
    setup: Setup,
    backend: str,
    reached: tuple[Any, Engine | None],
) -> ray.data.Dataset:
    """One row a block, so that each unit is a task of its own. `reached` are the control and the engines elsewhere."""
    import ray.data

    mean = sum(unit.rows for unit in units) / len(units)
    calls = min(MAX_CALLS, math.ceil(setup.in_flight / mean) + 1)
    local = setup.job.placement.kind == "local"
    gpus = setup.gpus if local and backend else 0
    pool = ray.data.ActorPoolStrategy(
        size=min(setup.processes, len(units)),
        # No unit waits at a busy process while another is idle.
        max_concurrent_calls_per_actor=calls,
        max_tasks_in_flight_per_actor=calls,
    )
    # `map_batches` refuses whole blocks for actors with GPUs; this is the same without that check.
    return ray.data.from_items(list(rows), override_num_blocks=len(rows)).map_batches_internal(
        ExtractActor,
        fn_constructor_args=[setup, backend, *reached],
        batch_size=None,
        batch_format="pyarrow",
        compute=pool,
        # A GPU says where to be; a process without any would be taken by a head that is to do no work.
        num_cpus=0 if gpus or (local and not has_choice()) else _actor_cpus(setup),
        num_gpus=gpus,
        scheduling_strategy="DEFAULT" if local else "SPREAD",
    )


def _actor_cpus(setup: Setup) -> int:
    """One each, which spreads the processes over the cluster, unless it is too small to hold them so."""
    return 1 if room("CPU") > setup.processes else 0
