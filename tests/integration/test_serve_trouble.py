"""What an engine of the pool can do to those who use it: decode for long, and stop giving signs of life."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from pipeline.flow import run
from tests.integration.conftest import ROOT, TOKEN, MakeJob
from tests.integration.test_sampler_job import comparable, rows_of

pytestmark = [pytest.mark.usefixtures("ray_cluster"), pytest.mark.slow]

APPLICATION = "trouble"
ENGINE = {"engine": "sampler", "seed": 3, "backend": "guidance", "max_num_seqs": 4}


@contextmanager
def serving(engine: dict[str, Any], pool: dict[str, Any], in_flight: int = 4) -> Iterator[str]:
    """An application; its URL."""
    from ray import serve

    from pipeline.serve_app.app import build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    args = {
        "name": "trouble",
        "schemas": str(ROOT / "schemas"),
        "serve": ["receipt@1"],
        "engine": engine,
        "sampling": {"max_tokens": 400},
        "pool": pool,
        "online": {"in_flight": in_flight, "inline": None},
    }
    serve.run(build(args), name=APPLICATION, route_prefix="/")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        serve.shutdown()


def test_a_caller_that_leaves_gives_its_engine_back_at_once() -> None:
    """Answers take many seconds here, and four callers take all places of the one engine."""

    async def body(url: str) -> tuple[int, float]:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
            asked = [{"text": f"Receipt {number}, total 5.00", "schema": "receipt@1"} for number in range(5)]
            began = time.monotonic()
            await client.post("/v1/extract", json=asked[4])
            alone = time.monotonic() - began
            patient = [asyncio.create_task(client.post("/v1/extract", json=one)) for one in asked[:4]]
            await asyncio.sleep(1)
            assert (await client.post("/v1/extract", json=asked[4])).status_code == 429
            for one in patient:
                one.cancel()
            await asyncio.gather(*patient, return_exceptions=True)
            left = time.monotonic()
            while (code := (await client.post("/v1/extract", json=asked[4])).status_code) == 429:
                await asyncio.sleep(0.2)
            return code, time.monotonic() - left - alone

    with serving({**ENGINE, "token_seconds": 0.3}, {}) as url:
        code, longer = asyncio.run(body(url))
    # The same answer again: had the others gone on, it would have waited for them.
    assert code in (200, 422)
    assert longer < 6


def test_documents_that_make_engines_stick_cost_themselves_alone(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    """F087: such an engine answers pings and nothing else."""
    few = documents[:40]

    def outcomes(name: str, engine: dict[str, Any], **placement: Any) -> dict[str, Any]:
        parts = {"placement": placement, "pilot": {"documents": 0}, "stop_if": {"rejection": None}}
        job = make_job(few, name, engine=engine, **parts)
        return comparable(rows_of(job.output, run(job, lambda event, value: None)))

    healthy = outcomes("healthy", ENGINE, kind="local")
    sticking = {**ENGINE, "faults": [{"kind": "stick", "share": 0.04}]}
    with serving(sticking, {"stall_seconds": 3}):
        found = outcomes("sticking", sticking, kind="serve", application=APPLICATION)
    poison = {key for key, row in found.items() if any(problem["code"] == "poison" for problem in row["problems"])}
    assert 1 <= len(poison) <= 4
    assert {key: row for key, row in found.items() if key not in poison} == {
        key: row for key, row in healthy.items() if key not in poison
    }
