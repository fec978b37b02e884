"""A replica of the pool without Serve: what it answers, what it refuses, what its health check sees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support import plan_of

from pipeline.engines.serve import Ask
from pipeline.errors import EngineError
from pipeline.records import Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.serve_app import engine as deployment
from pipeline.serve_app.engine import EngineDeployment
from pipeline.serve_app.settings import AppConfig

OWN = plan_of({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}, "own@1")
OTHER = plan_of({"type": "object", "properties": {"m": {"enum": [3, 4]}}, "required": ["m"]}, "other@1")


def config_of(**pool: Any) -> AppConfig:
    engine = {"engine": "sampler", "backend": "guidance", "max_num_seqs": 2, "token_seconds": 0.02}
    return AppConfig.model_validate({"name": "a", "engine": engine, "pool": {"waiting": 1, **pool}})


async def replica(**pool: Any) -> EngineDeployment:
    made = EngineDeployment.__new__(EngineDeployment)
    await EngineDeployment.__init__(made, config_of(**pool), [OWN])
    return made


def ask(plan: DecodingPlan, number: int = 0, *, online: bool = True) -> Ask:
    prompt = Prompt(plan.prefix, f"fence {number}\ntext")
    return Ask(prompt, plan.digest, Sampling(max_tokens=32), online)


@pytest.mark.asyncio
async def test_a_plan_travels_once_and_is_known_from_then_on() -> None:
    one = await replica()
    known = await one.generate(ask(OWN))
    assert known.completion is not None and known.completion.constrained
    assert (await one.generate(ask(OTHER))).completion is None
    first = await one.generate(ask(OTHER), OTHER)
    again = await one.generate(ask(OTHER))
    assert first.completion is not None and again.completion is not None
    assert first.completion.text == again.completion.text


@pytest.mark.asyncio
async def test_what_is_too_much_is_refused_with_a_time_and_the_rest_is_answered() -> None:
    one = await replica(job_share=0.5)
    replies = await asyncio.gather(*(one.generate(ask(OWN, number)) for number in range(8)))
    answered = [reply for reply in replies if reply.completion is not None]
    refused = [reply.retry_after for reply in replies if reply.completion is None]
    assert len(answered) == 3, "two places, and one that waits"
    assert all(seconds is not None and seconds > 0 for seconds in refused)
    assert (await one.generate(ask(OWN, 9, online=False))).completion is not None


@pytest.mark.asyncio
async def test_an_idle_engine_is_healthy_if_it_still_obeys(monkeypatch: pytest.MonkeyPatch) -> None:
    one = await replica()
    one._answered = float("-inf")  # it has been idle for long
    await one.check_health()

    async def lies(_engine: Any) -> None:
        raise EngineError("the engine does not obey its schema constraint")

    monkeypatch.setattr(deployment, "prove_constraint", lies)
    await one.check_health()  # it answered just now
    one._answered = float("-inf")
    with pytest.raises(EngineError, match="does not obey"):
        await one.check_health()


@pytest.mark.asyncio
async def test_schemas_of_strangers_are_forgotten_and_the_own_ones_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "KEPT_PLANS", 3)
    monkeypatch.setattr(deployment, "REFRESH", 2)
    warmed: list[list[str]] = []

    async def warm(_engine: Any, plans: list[DecodingPlan]) -> None:
        warmed.append([plan.name for plan in plans])

    monkeypatch.setattr(deployment, "warm", warm)
    one = await replica()
    for number in range(6):
        body = {"type": "object", "properties": {f"p{number}": {"enum": [1]}}, "required": [f"p{number}"]}
        plan = plan_of(body, f"stranger-{number}@1")
        assert (await one.generate(ask(plan), plan)).completion is not None
    assert warmed and all(names == ["own@1"] for names in warmed)
    assert len(one._others) == 3
    assert (await one.generate(ask(OWN))).completion is not None
