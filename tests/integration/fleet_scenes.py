"""What a fleet of engines goes through, in a Ray of its own with declared GPUs: prints what happened as JSON.

A process of its own, because a process has one Ray, and the other tests share theirs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeline.compile.plans import plans_of
from pipeline.engines.faults import FaultPicker
from pipeline.engines.pool import PoolEngine
from pipeline.job import Fault, JobConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.runtime.cluster import is_alive
from pipeline.runtime.fleet import Fleet
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from pipeline.runtime.supervise.control import Control

ROOT = Path(__file__).resolve().parents[2]
FAULTS = (Fault(kind="die", share=0.1), Fault(kind="stick", share=0.1))
PATIENCE = 60.0
GPUS = 4
PATIENT = {"RAY_raylet_start_wait_time_s": "120", "RAY_agent_register_timeout_ms": "120000"}
"""For Ray's start on a machine that is busy with other tests: a raylet ends itself if its agent, which is a Python
process, takes longer than 15 s to start."""


def job_of(folder: Path, engine: dict[str, Any], placement: dict[str, Any]) -> JobConfig:
    faults = [fault.model_dump() for fault in FAULTS]
    return JobConfig.model_validate(
        {
            "name": "fleet",
            "input": {"path": str(folder / "input.jsonl"), "schema": "package@1"},
            "output": str(folder / "out"),
            "schemas": str(ROOT / "schemas"),
            "engine": {"engine": "sampler", "num_gpus": 1, "max_num_seqs": 8, "faults": faults, **engine},
            "placement": {"kind": "actors", "start_seconds": PATIENCE, **placement},
            "safety": {"engine_stall_seconds": 2},
            "pilot": {"documents": 0},
        }
    )


def setup_of(job: JobConfig) -> Setup:
    async def unused(*_arguments: Any) -> Any: ...

    return Setup(job, plans_of(job, ["package@1"]).by_name, open_store(job.output), "run", None, unused)


def texts(kind: str, count: int) -> list[str]:
    """User messages of documents that a fault strikes, or none ("")."""
    found: list[str] = []
    number = 0
    while len(found) < count:
        text = f"<<<{number}>>>\n{kind} document {number}"
        fault = FaultPicker(FAULTS, 0).pick(text)
        number += 1
        if (fault.kind if fault else "") == kind:
            found.append(text)
    return found


class Holder:
    """Somebody else's actor, which has the GPUs that the fleet waits for."""

    def there(self) -> bool:
        return True


class Scenes:
    """A fleet on a cluster, and a caller of it in this process."""

    def __init__(self, folder: Path, holder: Any, control: Any) -> None:
        self.holder = holder
        self.control = control
        placement = {"min_engines": 1, "max_engines": 3, "idle_seconds": 1}
        self.setup = setup_of(job_of(folder, {}, placement))
        [self.plan] = self.setup.plans.values()
        self.fleet = Fleet(self.setup, self.plan.backend, control)
        self.pool: PoolEngine = self.fleet.pool()

    async def until(self, true: Callable[[], bool]) -> None:
        """Tend the fleet until something is so."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < PATIENCE, (self.fleet.looks, self.pool.loads)
            await asyncio.to_thread(self.fleet.tend, tail=True)
            await asyncio.sleep(0.1)

    async def ask(self, users: Sequence[str]) -> list[Completion]:
        asked = [self.pool.generate(Prompt(self.plan.prefix, user), self.plan, Sampling(120)) for user in users]
        return await asyncio.gather(*asked)

    async def begin(self) -> dict[str, Any]:
        await self.pool.start([self.plan])
        await self.until(lambda: len(self.pool.loads) == 2 and len(self.fleet.looks) == 2)
        import ray

        free = ray.available_resources().get("GPU", 0)
        return {"places": [look.place for look in self.fleet.looks.values()], "free_gpus": free}

    async def late(self) -> dict[str, Any]:
        before = await self.ask(texts("", 40))
        import ray

        ray.kill(self.holder)
        await self.until(lambda: len(self.pool.loads) == 3 and len(self.fleet.looks) == 3)
        await self.ask(texts("", 60))
        late = f"engine-{self.plan.backend}-2"
        await self.until(lambda: self.fleet.looks[late].answered > 0)
        places = [look.place for look in self.fleet.looks.values()]
        return {"errors": [one.error for one in before if one.error], "places": places}

    async def death(self) -> dict[str, Any]:
        victim, look = next(iter(self.fleet.looks.items()))
        asking = asyncio.create_task(self.ask(texts("", 200)))
        await self.until(lambda: self.pool.loads.get(victim, 0) > 0)
        os.kill(look.pid, signal.SIGKILL)
        answers = await asking
        await self.until(lambda: self.fleet.looks.get(victim, look).pid != look.pid and victim in self.pool.loads)
        return {"answers": len(answers), "errors": [one.error for one in answers if one.error]}

    async def poison(self, kind: str) -> dict[str, Any]:
        answers = await self.ask([*texts("", 20), *texts(kind, 1), *texts("", 30)[20:]])
        return {"errors": {number: one.error for number, one in enumerate(answers) if one.error}}

    async def leave(self) -> dict[str, Any]:
        there = len(self.fleet.looks)  # although some were idle for long, since a pilot is out
        self.control.report.remote("caller", {"package@1": {"documents": 1}}, pilot=True)
        await self.until(lambda: len(self.fleet.looks) == 1)
        answers = await self.ask(texts("", 10))
        return {"before": there, "after": len(self.fleet.looks), "errors": [one.error for one in answers if one.error]}


async def wide(folder: Path, control: Any) -> dict[str, Any]:
    """Two by two GPUs."""
    import ray

    setup = setup_of(job_of(folder, {"tensor_parallel": 2, "pipeline_parallel": 2}, {}))
    [plan] = setup.plans.values()
    fleet = Fleet(setup, plan.backend, control)
    pool = fleet.pool()
    await pool.start([plan])
    [group] = [one for one in ray.util.placement_group_table().values() if one["state"] == "CREATED"]
    fleet.close()
    return {"bundles": list(group["bundles"].values()), "strategy": group["strategy"]}


async def play(folder: Path) -> dict[str, Any]:
    import ray

    control = ray.remote(num_cpus=0)(Control).remote(job_of(folder, {}, {}).stop_if, {"package@1": 1}, is_alive)
    holder = ray.remote(num_cpus=0, num_gpus=2)(Holder).remote()
    ray.get(holder.there.remote())
    scenes = Scenes(folder, holder, control)
    told: dict[str, Any] = {}
    try:
        for name, scene in {
            "begin": scenes.begin,
            "late": scenes.late,
            "death": scenes.death,
            "die": lambda: scenes.poison("die"),
            "stick": lambda: scenes.poison("stick"),
            "leave": scenes.leave,
        }.items():
            began = time.monotonic()
            told[name] = await scene()
            took = round(time.monotonic() - began, 1)
            print(name, took, told[name], scenes.fleet.looks, file=sys.stderr)
    finally:
        scenes.fleet.close()
    told["poison"] = ray.get(control.look.remote()).poison
    told["wide"] = await wide(folder, control)
    return told


def main() -> None:
    """`python -m tests.integration.fleet_scenes FOLDER`"""
    os.environ.update(PATIENT)
    import ray

    size = {"num_cpus": 2, "num_gpus": GPUS, "object_store_memory": 100_000_000}
    ray.init(address="local", include_dashboard=False, logging_level="ERROR", log_to_driver=False, **size)
    try:
        print(json.dumps(asyncio.run(play(Path(sys.argv[1])))))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
