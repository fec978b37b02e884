"""Stream: units through Ray Data. One block is one unit from reading to writing, so a unit is committed as a whole.

    units ── read (CPU tasks) ──▶ documents ── ExtractActor (owns an engine) ──▶ outcomes ── write (CPU tasks)

Reading and writing take a CPU each and actors none: engines are bounded by the size of their pool. A fraction of a
CPU for the tasks looks kinder to a small machine and is not: Ray then keeps starting and killing workers
(bench/README.md has the numbers).
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import EngineError, GristmillError, ResourceError
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally
from pipeline.records import Outcome
from pipeline.runtime.actors import ExtractActor, documents_in_flight, gpus_of
from pipeline.runtime.exchange import outcomes_of, to_table, unit_of
from pipeline.runtime.input import Unit, read_unit
from pipeline.runtime.lookups import Digests
from pipeline.runtime.progress import Progress
from pipeline.runtime.write import write_unit
from pipeline.schema.plan import DecodingPlan

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data

TASK_CPUS = 1
POLL_SECONDS = 1.0
MAX_DEATHS = 3
"""Ray restarts a dead actor for ever. This many deaths without a finished unit between them end the job."""

Extract = Callable[..., Coroutine[Any, Any, Outcome]]
"""Called with a document, its plan, an engine and the job; `lookups` by name."""


@dataclass(frozen=True)
class Setup:
    """What every stage of a run needs. It travels to workers once per task, so it holds no documents, and of `lookups`
    only the digests, by which actors check what they load."""

    job: JobConfig
    plans: Mapping[str, DecodingPlan]
    directory: Path
    run_id: str
    record: str | None
    extract: Extract
    lookups: Digests = field(default_factory=dict)

    @property
    def backends(self) -> tuple[str, ...]:
        """The grammar back ends that the plans use; one engine a back end and actor. Documents without any plan need
        none, but somebody has to say so of them."""
        used = sorted({plan.backend for plan in self.plans.values() if plan.backend})
        return tuple(used) or ("xgrammar",)


def stream(units: Sequence[Unit], setup: Setup) -> Iterator[Tally]:
    """Process units; yields the tally so far, about once a second and at the end.

    Raises:
        GristmillError: whatever stopped a stage, as it was raised there.
    """
    if not units:
        return
    import ray

    start_ray()
    _check_gpus(setup)
    progress = ray.remote(num_cpus=0)(Progress).remote()
    pipeline = _dataset(units, setup, progress)
    finished = threading.Event()
    failure: list[BaseException] = []

    def drive() -> None:
        try:
            for _ in pipeline.iter_internal_ref_bundles():
                pass
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)
        finally:
            finished.set()

    threading.Thread(target=drive, name="ray-data", daemon=True).start()
    while not finished.wait(POLL_SECONDS):
        tally, starts = ray.get(progress.look.remote())
        deaths = starts - setup.job.placement.actors * len(setup.backends)
        if deaths > MAX_DEATHS:
            raise EngineError(
                f"the process of an engine died {deaths} times without finishing a unit. "
                "Is the machine out of memory, or does one document kill it? --verbose shows the log; what was "
                "committed is kept."
            )
        yield Tally.from_json(tally)
    if failure:
        raise _job_failure(failure[0]) from failure[0]
    yield Tally.from_json(ray.get(progress.look.remote())[0])


def _dataset(units: Sequence[Unit], setup: Setup, progress: Any) -> ray.data.Dataset:
    """The three stages. `batch_size=None` hands a stage whole blocks, and a block is a unit."""
    import ray.data

    in_flight = documents_in_flight(setup.job.engine.max_num_seqs)
    pool = ray.data.ActorPoolStrategy(
        size=setup.job.placement.actors,
        # One unit more than fills the engine, so that the next one starts while the last documents of one finish.
        max_concurrent_calls_per_actor=math.ceil(in_flight / setup.job.placement.unit_documents) + 1,
    )
    rows = [{"unit": json.dumps(unit.to_json())} for unit in units]
    documents = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _read, batch_size=None, batch_format="pyarrow", num_cpus=TASK_CPUS, fn_args=[setup]
    )
    for backend in setup.backends:
        # `map_batches` refuses whole blocks for actors with GPUs; this is the same without that check.
        documents = documents.map_batches_internal(
            ExtractActor,
            fn_constructor_args=[setup, progress, backend],
            batch_size=None,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=0,
            num_gpus=gpus_of(setup.job),
        )
    return documents.map_batches(_write, batch_size=None, batch_format="pyarrow", num_cpus=TASK_CPUS, fn_args=[setup])


def _check_gpus(setup: Setup) -> None:
    """Raises ResourceError if the cluster lacks the GPUs: Ray would wait for them for ever."""
    import ray

    engines, each = setup.job.placement.actors * len(setup.backends), gpus_of(setup.job)
    needed, there = engines * each, ray.cluster_resources().get("GPU", 0)
    if needed > there:
        raise ResourceError(
            f"{engines} engine(s) of {each:g} GPU(s) need {needed:g}, and the cluster has {there:g}. Lower "
            "`placement.actors`, name one grammar back end, or choose an engine config for this machine."
        )


def _read(batch: pa.Table, setup: Setup) -> pa.Table:
    """The documents of a unit, those of one schema next to each other."""
    text = unit_of(batch)
    documents = read_unit(Unit.from_json(json.loads(text)), setup.job.input)
    return to_table(text, sorted(documents, key=lambda document: document.schema))


def _write(batch: pa.Table, setup: Setup) -> pa.Table:
    import pyarrow as pa

    text = unit_of(batch)
    unit = Unit.from_json(json.loads(text))
    write_unit(unit, outcomes_of(batch), setup.plans, setup.directory, setup.run_id)
    return pa.table({"unit": [unit.id]})


def start_ray() -> None:
    """Use the Ray that is there (in this process, or at RAY_ADDRESS), or start one on this machine."""
    import ray
    from ray.data import DataContext

    verbose = bool(os.environ.get("GRISTMILL_VERBOSE"))
    if not ray.is_initialized():
        _init_ray(verbose)
    if not verbose:
        # A failed stage is raised here; Ray Data would print its stack three times besides.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.raise_original_map_exception = True  # wrapped exceptions lose their cause on the way here
    context.target_max_block_size = None  # a unit is never cut in two


def _init_ray(verbose: bool) -> None:
    import ray

    local = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
    if not verbose:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for last in (False, True):
        try:
            ray.init(logging_level="ERROR", log_to_driver=verbose, **local)
            return
        except Exception as error:  # plain Exception if a node is not up in 30 s, as on a busy small machine
            ray.shutdown()
            if last:
                hint = "Is RAY_ADDRESS right, if it is set? Is the machine out of CPU or memory?"
                raise ResourceError(f"Ray did not start: {error} {hint}") from error


def _job_failure(error: BaseException) -> GristmillError:
    """The exception of a stage without what Ray wrapped around it; anything that is not ours is told as it is.

    Ray's wrapper also claims the class of what it wraps, so `cause` is looked at before the class is.
    """
    cause: BaseException = error
    while isinstance(inner := getattr(cause, "cause", None), BaseException):
        cause = inner
    if isinstance(cause, GristmillError):
        return cause
    return EngineError(
        f"a worker failed: {type(cause).__name__}: {cause}\n"
        "What was committed is kept; run the same command to continue. --verbose shows the worker's log."
    )
