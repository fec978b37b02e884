"""How many pods of which kind a job or an application needs, with how many GPUs each; from its own config alone.

    local, or a pool without GPUs     one pod, the head's, with room for all its engines
    actors, or a pool with GPUs       a head without work, pods of engines (as many as it may have), pods of CPU work

A job's pods of engines are added when it asks for them: one that finds nothing to do, or is refused, takes no GPU.

An engine over several GPUs has a pod of its own; with `pipeline_parallel` above 1, a pod for each stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.deploy.values import Values
from pipeline.errors import JobFileError
from pipeline.job import JobConfig, WorkConfig
from pipeline.runtime.bundles import all_gpus, stages_of
from pipeline.serve_app.settings import AppConfig


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that are alike. `ray_cpus` are what Ray is told that each has, None for its true number; `memory` is in
    MiB; `name` is the field of `Values` that says where they may be scheduled, `role` what the group is called."""

    role: str
    name: str
    cpu: int
    memory: int
    gpus: int = 0
    ray_cpus: int | None = None
    fewest: int = 1
    most: int = 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster. With groups, the head's pod does no work."""

    head: Group
    groups: tuple[Group, ...] = ()

    @property
    def grows(self) -> bool:
        """Whether an autoscaler has something to do."""
        return any(group.fewest < group.most for group in self.groups)


def cluster_of(work: JobConfig | AppConfig, values: Values) -> Cluster:
    """The cluster that this work runs on.

    Raises:
        JobFileError: engines that nothing keeps off the head's pod.
    """
    fewest, most = _engines(work)
    gpus = all_gpus(work)
    if not _is_spread(work, gpus):
        return Cluster(_single(most, gpus, values))
    head = Group("head", "head", values.head.cpu, mebibytes(values.head.memory), ray_cpus=0)
    groups = (_engine_group(work, fewest, most, values),) if gpus else ()
    return Cluster(head, (*groups, *_workers(work, values)))


def mebibytes(size: str) -> int:
    """The MiB of a size such as 16Gi."""
    return int(size[:-2]) * (1024 if size.endswith("Gi") else 1)


def _engines(work: JobConfig | AppConfig) -> tuple[int, int]:
    if isinstance(work, AppConfig):
        return work.pool.min_replicas, work.pool.max_replicas
    placement = work.placement
    return (placement.actors,) * 2 if placement.kind == "local" else (0, placement.max_engines)


def _is_spread(work: JobConfig | AppConfig, gpus: float) -> bool:
    if isinstance(work, AppConfig):
        return gpus > 0
    if work.placement.kind == "actors" and not gpus and work.engine.engine == "vllm":
        raise JobFileError(
            "placement.kind: actors with engines that need no GPU: Ray could put all of them into the head's pod. Use "
            "`kind: local`, which is one pod with room for `placement.actors` engines, or an engine with `num_gpus`."
        )
    return work.placement.kind == "actors"


def _single(engines: int, gpus: float, values: Values) -> Group:
    """The head's pod with everything in it: it is scheduled as engines are."""
    memory = mebibytes(values.head.memory) + engines * mebibytes(values.engines.memory)
    cpu = values.head.cpu + engines * values.engines.cpu
    return Group("head", "engines", cpu, memory, gpus=math.ceil(engines * gpus))


def _engine_group(work: WorkConfig, fewest: int, most: int, values: Values) -> Group:
    stages = stages_of(work)
    each = all_gpus(work) / stages
    together = math.floor(1 / each) if each < 1 else 1  # engines that share one GPU, and so a pod
    pods = (math.ceil(fewest * stages / together), math.ceil(most * stages / together))
    cpu, memory = values.engines.cpu * together, mebibytes(values.engines.memory) * together
    # Ray is told of no CPUs, or it would put CPU work there that slows an engine's front end down.
    return Group("engines", "engines", cpu, memory, math.ceil(each), 0, *pods)


def _workers(work: JobConfig | AppConfig, values: Values) -> tuple[Group, ...]:
    """All of them from the start: a job looks at the cluster's CPUs once, when it begins, and wants one more than it
    has processes to spread them over."""
    workers = values.workers
    processes = 0 if isinstance(work, AppConfig) else work.placement.cpu_actors or work.placement.max_engines
    needed = math.ceil((processes + 1) / workers.cpu) if processes else 0
    pods = needed if workers.replicas is None else workers.replicas
    if not pods:
        return ()
    return (Group("workers", "workers", workers.cpu, mebibytes(workers.memory), fewest=pods, most=pods),)
