"""What one call of the control actor costs, and one task of Ray Data, apart from any documents.

`python -m bench.scale_costs` prints one JSON line. Costs are CPU seconds, so that they hold whatever else runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

CALLS = 4000
IN_FLIGHT = 64
FEW, MANY = 300, 1500
"""Tasks of Ray Data: what MANY cost more than FEW is what tasks cost, the rest is what starting costs."""
ACTORS = 2
TASKS_IN_FLIGHT = 4


def measure() -> dict[str, Any]:
    """Start Ray on this machine and measure. Values are microseconds of CPU, MiB and bytes."""
    from pipeline.runtime.cluster import start_ray

    start_ray()
    return {"control": control_calls(), "ray_data": data_tasks()}


def control_calls() -> dict[str, float]:
    """CPU of the control actor's process and of the caller for a `begin` of one document and for a `report`."""
    import ray

    from pipeline.jobplacement import StopConfig
    from pipeline.runtime.supervise.control import Control
    from pipeline.runtime.supervise.control_calls import RayControl

    class Measured(Control):
        def pid(self) -> int:
            import os

            return os.getpid()

    handle = ray.remote(num_cpus=0)(Measured).remote(StopConfig(), {})
    calls = RayControl(handle)
    control = psutil.Process(ray.get(handle.pid.remote()))
    found: dict[str, float] = {}
    tally = {"receipt@1": _tally()}

    async def begin(number: int) -> None:
        await calls.begin("p", [f"k{number}"], [f"k{number - IN_FLIGHT}"])

    async def report(_number: int) -> None:
        await calls.report("p", tally)

    for name, call in (("begin", begin), ("report", report)):
        asyncio.run(_many(call, IN_FLIGHT))  # the first calls are slower
        before, mine, wall = _cpu(control), _cpu(psutil.Process()), time.perf_counter()
        asyncio.run(_many(call, CALLS))
        seconds = time.perf_counter() - wall
        found |= {
            f"{name}_control_micros": round((_cpu(control) - before) / CALLS * 1e6, 1),
            f"{name}_caller_micros": round((_cpu(psutil.Process()) - mine) / CALLS * 1e6, 1),
            f"{name}_calls_per_second": round(CALLS / seconds, 1),
        }
    ray.kill(handle)
    return found


def data_tasks() -> dict[str, float]:
    """What a unit costs the driver and Ray's daemons when nothing is done with it."""
    few, many = (_tasks(count) for count in (FEW, MANY))
    more = MANY - FEW
    slope = {key: (many[key] - few[key]) / more for key in few}
    return {
        "prepare_micros": round(slope["prepare"] * 1e6, 1),
        "driver_micros": round(slope["driver"] * 1e6, 1),
        "daemons_micros": round(slope["daemons"] * 1e6, 1),
        "wall_micros": round(slope["wall"] * 1e6, 1),
        "driver_bytes": round(slope["bytes"], 1),
    }


class Nothing:
    """An actor that does nothing with a row."""

    async def __call__(self, batch: Any) -> AsyncIterator[Any]:
        yield batch.select([])


def _tasks(count: int) -> dict[str, float]:
    """As `pipeline.runtime.stream` does it: a block a row, an actor pool, results thrown away."""
    import ray.data

    rows = [{"unit": json.dumps({"id": f"{number:06d}", "path": "x" * 200}), "rows": ""} for number in range(count)]
    me = psutil.Process()
    before, private, wall = _cpu(me), _private(), time.perf_counter()
    source = ray.data.from_items(rows, override_num_blocks=count)
    prepared = time.perf_counter() - wall
    pipeline = source.map_batches_internal(
        Nothing,
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(
            size=ACTORS,
            max_concurrent_calls_per_actor=TASKS_IN_FLIGHT,
            max_tasks_in_flight_per_actor=TASKS_IN_FLIGHT,
        ),
        num_cpus=0,
    )
    daemons = [one for one in me.children(recursive=True) if one.name() in ("raylet", "gcs_server")]
    theirs, wall = sum(map(_cpu, daemons)), time.perf_counter()
    for _ in pipeline.iter_internal_ref_bundles():
        pass
    ran = time.perf_counter() - wall
    grown = _private() - private
    return {
        "prepare": prepared,
        "driver": _cpu(me) - before,
        "daemons": sum(map(_cpu, daemons)) - theirs,
        "wall": ran,
        "bytes": grown,
    }


async def _many(call: Callable[[int], Awaitable[None]], count: int) -> None:
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> None:
        async with room:
            await call(number)

    await asyncio.gather(*(one(number) for number in range(count)))


def _tally() -> dict[str, Any]:
    from pipeline.observe.tally import Tally

    return Tally(documents=8, asked=8).to_json()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _private() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1]) * 1024
    return 0.0


if __name__ == "__main__":
    from bench import scale_costs

    print(json.dumps(scale_costs.measure()), flush=True)  # not this module under the name __main__: actors import it
