"""The application of `bench.online`, its processes, and a job on its pool."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.documents import SCHEMA, SCHEMAS, receipts, write_jsonl
from pipeline.job import JobConfig

APPLICATION = "bench-online"
ENGINE: dict[str, Any] = {"engine": "sampler", "backend": "guidance", "seed": 7, "max_num_seqs": 8}
ENGINE |= {"token_seconds": 0.01}
ENGINES = 2
IN_FLIGHT = 16
"""Documents at work at a time, which is what the two engines decode."""
WORK: dict[str, Any] = {"schemas": str(SCHEMAS), "engine": ENGINE, "sampling": {"max_tokens": 256}}


@contextmanager
def serving() -> Iterator[str]:
    """The application on a free port; its URL."""
    import ray
    from ray import serve

    from pipeline.serve_app.app import build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(num_cpus=8, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    pool = {"min_replicas": ENGINES, "max_replicas": ENGINES, "job_share": 0.5, "waiting": 8}
    args = {**WORK, "name": "bench", "serve": [SCHEMA], "pool": pool, "online": {"in_flight": IN_FLIGHT}}
    serve.run(build(args), name=APPLICATION, route_prefix="/")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()
        ray.shutdown()


def job_of(documents: int, folder: Path) -> JobConfig:
    """A job on the pool that keeps both engines' worth of requests under way."""
    folder.mkdir()
    write_jsonl(folder / "input.jsonl", [(one.id, one.text) for one in receipts(documents)])
    return JobConfig.model_validate(
        {
            **WORK,
            "name": "beside",
            "input": {"path": str(folder / "input.jsonl"), "schema": SCHEMA},
            "output": str(folder / "out"),
            "placement": {"kind": "serve", "application": APPLICATION, "max_engines": ENGINES},
            "pilot": {"documents": 0},
            "stop_if": {"truncation": None, "first_pass": None, "rejection": None},
        }
    )


def replicas(deployment: str) -> list[psutil.Process]:
    """The processes of a deployment."""
    return _titled(f"ray::ServeReplica:{APPLICATION}:{deployment}")


def memory() -> dict[str, float]:
    """Private memory (RssAnon, MiB) of endpoint, engines and proxy."""
    processes = {"endpoint": replicas("Endpoint"), "engine": replicas("Engine"), "proxy": _titled("ray::ProxyActor")}
    return {name: round(sum(map(_private, found)), 1) for name, found in processes.items()}


def _titled(title: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if " ".join(one.info["cmdline"] or ()).startswith(title)]


def _private(process: psutil.Process) -> float:
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)
