"""The same documents through every way to an engine, one sampler with one seed: the same outcomes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pipeline.compile.plans import plans_of
from pipeline.engines.sampler import SamplerEngine
from pipeline.flow import run
from pipeline.job import JobConfig, SamplerConfig
from tests.integration.conftest import ROOT, MakeJob
from tests.integration.test_sampler_job import comparable, rows_of

pytestmark = [pytest.mark.usefixtures("ray_cluster"), pytest.mark.slow]

ENGINE = {"engine": "sampler", "seed": 3, "backend": "guidance", "max_num_seqs": 4}
APPLICATION = "placements"
MADE_BY = ("engine", "plan_digest", "cached_tokens", "prompt_tokens", "seed")
"""What an attempt says of the engine, and not of the answer; a server is sent no seed where it draws nothing."""


def of_answers(rows: dict[str, Any]) -> dict[str, Any]:
    """Outcomes without what tells where they were made."""
    return {
        key: {**row, "attempts": [{k: v for k, v in one.items() if k not in MADE_BY} for one in row["attempts"]]}
        for key, row in rows.items()
    }


@contextmanager
def server(job: JobConfig, names: list[str]) -> Iterator[str]:
    """An OpenAI-compatible server whose model is the sampler, in a thread of its own; its URL."""
    sys.path.insert(0, str(ROOT / "tests" / "unit" / "engines"))
    from openai_server import sampled, serving

    plans = list(plans_of(job, names).by_name.values())
    ready, over, found = threading.Event(), asyncio.Event(), {}

    async def body() -> None:
        engine = SamplerEngine(SamplerConfig.model_validate(ENGINE))
        await engine.start(plans)
        found["loop"] = asyncio.get_running_loop()
        async with serving(sampled(engine, *plans)) as one:
            found["url"] = one.url
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(body()))
    thread.start()
    assert ready.wait(120)
    try:
        yield str(found["url"])
    finally:
        found["loop"].call_soon_threadsafe(over.set)
        thread.join()


@contextmanager
def pool() -> Iterator[None]:
    """The engines of an application without an endpoint."""
    from ray import serve

    from pipeline.jobfile import read_work
    from pipeline.serve_app.app import engine_deployment
    from pipeline.serve_app.settings import AppConfig

    config = read_work({"name": "p", "engine": ENGINE, "schemas": str(ROOT / "schemas")}, ROOT, AppConfig, "test")
    serve.run(engine_deployment(config).bind(config, []), name=APPLICATION, route_prefix=None)
    try:
        yield
    finally:
        serve.shutdown()


def test_every_way_to_an_engine_gives_the_same_outcomes(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    few = documents[:60]
    names = sorted({row["schema"] for row in few})

    def outcomes(name: str, **parts: Any) -> dict[str, Any]:
        parts = {"pilot": {"documents": 0}, "engine": ENGINE, **parts}
        job = make_job(few, name, **parts)
        return comparable(rows_of(job.output, run(job, lambda event, value: None)))

    local = outcomes("local")
    assert set(local) == {row["id"] for row in few}
    assert outcomes("actors", placement={"kind": "actors", "max_engines": 2}) == local
    with pool():
        assert outcomes("serve", placement={"kind": "serve", "application": APPLICATION, "max_engines": 1}) == local
    with server(make_job(few, "plans", engine=ENGINE), names) as url:
        http = {"engine": "http", "base_url": url, "model": "any", "backend": "guidance", "max_model_len": 8192}
        job = make_job(few, "http")
        whole = job.model_dump(mode="json", by_alias=True) | {"engine": http, "pilot": {"documents": 0}}
        remote = JobConfig.model_validate(whole)
        found = comparable(rows_of(remote.output, run(remote, lambda event, value: None)))
    assert of_answers(found) == of_answers(local)
