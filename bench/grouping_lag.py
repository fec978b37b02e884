"""How late the event loop of an engine's process is: an EngineReplica in a Ray actor, idle and under full load.

Its sampler draws every token on that loop, which vLLM does not (its core is another process), while vLLM's front end
puts together the answers there; so this is the lag of the replica and of Ray's actor with a busy engine, not vLLM's.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.grouping_parts import documents, plans
from pipeline.engines.pool import PoolEngine
from pipeline.flow import extract
from pipeline.job import JobConfig
from pipeline.records import Sampling
from pipeline.runtime.cluster import start_ray
from pipeline.runtime.fleet import Fleet
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from pipeline.runtime.supervise.control import Control

TEND_SECONDS = 0.5
IDLE_SECONDS = 10.0
SCHEMAS, DOCUMENTS, MAX_TOKENS = 8, 4096, 160
TOKEN_SECONDS = 0.01


def measure(seconds: float, sequences: int) -> dict[str, Any]:
    """The lag with nothing to do, and with twice as many requests in flight as the engine decodes at a time."""
    import ray

    start_ray()
    control = ray.remote(num_cpus=0)(Control).remote(_job("x", sequences).stop_if)
    with tempfile.TemporaryDirectory(prefix="bench-grouping-") as name:
        known = {plan.name: plan for plan in plans(SCHEMAS, "lag")}
        setup = Setup(_job(name, sequences), known, open_store(name), "lag", None, extract)
        fleet = Fleet(setup, "xgrammar", control)
        try:
            found = asyncio.run(_measured(fleet, setup, seconds))
        finally:
            fleet.close()
            ray.shutdown()
    return {**found, "in_flight": 2 * sequences, "token_seconds": TOKEN_SECONDS}


def report(lag: dict[str, Any]) -> str:
    """For a terminal."""
    told = [
        f"{name} {lag[name]['mean_ms']:.1f} ms mean, {lag[name]['max_ms']:.0f} ms at most" for name in ("idle", "busy")
    ]
    return (
        f"event loop of a replica: {told[0]}; {told[1]} with {lag['in_flight']} requests in flight, "
        f"{lag['busy']['docs_per_second']:.1f} docs/s"
    )


def _job(folder: str, sequences: int) -> JobConfig:
    return JobConfig.model_validate(
        {
            "name": "lag",
            "input": {"path": str(Path(folder, "none.jsonl")), "schema": "none@1"},
            "output": folder,
            "engine": {"engine": "sampler", "max_num_seqs": sequences, "token_seconds": TOKEN_SECONDS},
            "placement": {"kind": "actors", "idle_seconds": 3600},
        }
    )


async def _measured(fleet: Fleet, setup: Setup, seconds: float) -> dict[str, Any]:
    pool = fleet.pool()
    tending = asyncio.create_task(_tend(fleet))
    await pool.start([])
    await asyncio.sleep(IDLE_SECONDS)
    idle = _lag(fleet)
    began = time.perf_counter()
    answered = await _load(pool, setup, began + seconds)
    took = time.perf_counter() - began
    await asyncio.sleep(2 * TEND_SECONDS)  # the latest look
    busy = _lag(fleet) | {"docs_per_second": round(answered / took, 2), "seconds": round(took, 1)}
    tending.cancel()
    await pool.close()
    return {"idle": idle, "busy": busy}


async def _load(pool: PoolEngine, setup: Setup, until: float) -> int:
    waiting = iter(documents(list(setup.plans.values()), DOCUMENTS) * 100)
    answered = 0

    async def caller() -> None:
        nonlocal answered
        while time.perf_counter() < until:
            prompt, plan = next(waiting)
            await pool.generate(prompt, plan, Sampling(MAX_TOKENS))
            answered += 1

    await asyncio.gather(*(caller() for _ in range(2 * setup.job.engine.max_num_seqs)))
    return answered


async def _tend(fleet: Fleet) -> None:
    while True:
        fleet.tend(tail=True)
        await asyncio.sleep(TEND_SECONDS)


def _lag(fleet: Fleet) -> dict[str, float]:
    """Of the last minute, as the replica told."""
    (look,) = fleet.looks.values()
    return {"mean_ms": round(look.lag[0] * 1000, 2), "max_ms": round(look.lag[1] * 1000, 1)}
