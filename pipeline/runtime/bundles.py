"""Bundles: the GPUs of an engine that runs in a process of its own, of a job or of an application.

An engine over several GPUs has a placement group:

    pipeline_parallel = 1   one bundle with all its GPUs, so on one node; vLLM's workers are processes there
    pipeline_parallel > 1   one bundle a GPU, on as few nodes as there is room; vLLM's workers are Ray actors in them
"""

from __future__ import annotations

from typing import Any, TypeVar

from pipeline.errors import JobFileError
from pipeline.job import VllmConfig, WorkConfig

Work = TypeVar("Work", bound=WorkConfig)


def all_gpus(work: WorkConfig) -> float:
    """GPUs of an engine. Several engines in one process share them: vLLM takes the first ones that it sees."""
    return float(max(engine.num_gpus * _workers(engine) for engine in _engines(work)))


def own_gpus(work: WorkConfig) -> float:
    """GPUs of the process of an engine. Over several bundles, vLLM's workers take them; the process only leads."""
    bundles, _ = bundles_of(work)
    return 0.0 if len(bundles) > 1 else all_gpus(work)


def bundles_of(work: WorkConfig) -> tuple[list[dict[str, float]], str]:
    """The bundles of an engine's placement group, and Ray's strategy for it; none for an engine of one GPU, or of none:
    without GPUs, its workers are processes beside it."""
    engine = max(_engines(work), key=_workers)
    workers, gpus = _workers(engine), float(engine.num_gpus)
    if workers == 1 or not gpus:
        return [], ""
    if engine.pipeline_parallel == 1:
        return [{"GPU": gpus * workers}], "STRICT_PACK"
    return [{"GPU": gpus}] * workers, "PACK"


def stages_of(work: WorkConfig) -> int:
    """Over how many nodes an engine can lie: its pipeline stages, of which each wants its GPUs on one node."""
    bundles, _ = bundles_of(work)
    return int(max(_engines(work), key=_workers).pipeline_parallel) if len(bundles) > 1 else 1


def with_executor(work: Work) -> Work:
    """The work with what vLLM has to know of where its workers are; left to itself, it takes any placement group for
    one whose bundles are its workers'.

    Raises:
        JobFileError: an engine over several GPUs shares its process with another engine that needs one.
    """
    engines = _engines(work)
    wide = [engine for engine in engines if _workers(engine) > 1 and engine.num_gpus]
    if not wide:
        return work
    if any(engine != wide[0] for engine in engines if engine.num_gpus):
        raise JobFileError(
            "`engines`: an engine with `tensor_parallel` or `pipeline_parallel` above 1 takes all GPUs of its process, "
            "and another engine of the job needs one there. Take it out of `retry.ladder`, or give both one GPU."
        )
    if not isinstance(wide[0], VllmConfig):
        return work
    executor = "ray" if wide[0].pipeline_parallel > 1 else "mp"
    arguments = {"distributed_executor_backend": executor, **wide[0].engine_args}
    update = {"engine_args": arguments}
    others = {name: one.model_copy(update=update) if one == wide[0] else one for name, one in work.engines.items()}
    main = work.engine.model_copy(update=update) if work.engine == wide[0] else work.engine
    return work.model_copy(update={"engine": main, "engines": others})


def _engines(work: WorkConfig) -> list[Any]:
    return [work.engine, *work.other_engines().values()]


def _workers(engine: Any) -> int:
    return int(getattr(engine, "tensor_parallel", 1) * getattr(engine, "pipeline_parallel", 1))
