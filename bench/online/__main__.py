"""The endpoint under load: what is accepted, how long it takes, what is refused, and what a job beside it changes.

A Serve application with the `sampler` at a fixed time per token, so that its capacity is known, and callers over
loopback in a process of their own: each sends the next document when it has its answer (closed loop), at 1, 2 and 10
times as many callers as documents may be at work. A refused caller waits as `Retry-After` says, at most a second.

    load         1x, 2x, 10x for `--seconds` each: codes, latency of what was accepted, memory of the processes
    job          a job on the same pool, alone and beside callers at a quarter of the places, and these callers alone
    killed       all engines killed under load: codes meanwhile, seconds until callers are served again

`python -m bench.online --json bench/results/online.json`; `--seconds 3 --documents 100` shows that it runs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.online.callers import Callers, Result
from bench.online.pool import IN_FLIGHT, job_of, memory, replicas, serving
from pipeline.flow import run

LEVELS = (1, 2, 10)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.online", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each level")
    parser.add_argument("--documents", type=int, default=600, help="of the job")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    os.environ["GRISTMILL_TOKEN"] = secrets.token_urlsafe()
    described, load = machine.describe(), round(os.getloadavg()[0], 2)
    print(machine.sentence(described), flush=True)
    with serving() as url:
        callers = Callers(url, os.environ["GRISTMILL_TOKEN"])
        asyncio.run(callers.for_seconds(4, 3.0))  # warm
        result = {
            "benchmark": "online",
            "machine": described,
            "date": time.strftime("%Y-%m-%d"),
            "load_before": load,
            "settings": {"in_flight": IN_FLIGHT, "seconds": chosen.seconds, "documents": chosen.documents},
            "load": [_level(callers, times, chosen.seconds) for times in LEVELS],
            "job": _job(callers, chosen.documents, chosen.seconds),
            "killed": _killed(callers, chosen.seconds),
        }
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _level(callers: Callers, times: int, seconds: float) -> dict[str, Any]:
    before = memory()
    found = asyncio.run(callers.for_seconds(times * IN_FLIGHT, seconds))
    row = {"times": times, "callers": times * IN_FLIGHT, **found.told(), "mib_before": before, "mib_after": memory()}
    print(json.dumps(row), flush=True)
    return row


def _job(callers: Callers, documents: int, seconds: float) -> dict[str, Any]:
    """Callers at a quarter of the places, which is less than what jobs leave free."""
    few = max(1, IN_FLIGHT // 4)
    alone = asyncio.run(callers.for_seconds(few, seconds))
    with tempfile.TemporaryDirectory(prefix="bench-online-") as name:
        job_alone = _run(job_of(documents, Path(name) / "alone"))
        done: list[float] = []
        thread = threading.Thread(target=lambda: done.append(_run(job_of(documents, Path(name) / "beside"))))
        thread.start()
        beside = asyncio.run(callers.until(few, lambda: not thread.is_alive()))
        thread.join()
    row = {
        "callers": few,
        "callers_alone": alone.told(),
        "callers_beside_job": beside.told(),
        "job_seconds_alone": job_alone,
        "job_seconds_beside_callers": done[0] if done else None,
    }
    print(json.dumps(row), flush=True)
    return row


def _run(job: Any) -> float:
    began = time.monotonic()
    manifest = run(job, lambda _event, _value: None)
    assert manifest.documents == sum(manifest.counts.values())
    return round(time.monotonic() - began, 1)


def _killed(callers: Callers, seconds: float) -> dict[str, Any]:
    async def body() -> tuple[Result, float]:
        load = asyncio.create_task(callers.for_seconds(IN_FLIGHT, seconds))
        await asyncio.sleep(seconds / 3)
        for process in replicas("Engine"):
            process.kill()
        killed = time.monotonic()
        found = await load
        return found, found.served_again(killed)

    found, again = asyncio.run(body())
    row = {**found.told(), "seconds_until_served_again": round(again, 1)}
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    main()
