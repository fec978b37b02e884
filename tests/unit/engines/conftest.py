"""Shared by the engine tests: the embedded model's tokenizer (loaded once), plans from bare schemas, engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.models import resolve
from pipeline.engines.sampler import SamplerEngine
from pipeline.job import Fault, SamplerConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="session")
def model() -> str:
    return resolve("embedded")


@pytest.fixture(scope="session")
def chat(model: str) -> ChatTokenizer:
    return ChatTokenizer(model)


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., DecodingPlan]:
    def make(schema: Any = None, name: str = "person@1") -> DecodingPlan:
        body = PERSON if schema is None else schema
        text = json.dumps(body)
        prefix = f"You extract records of {name}."
        return DecodingPlan(name, body, text, prefix, digest(body), digest(text), digest([name, text]))

    return make


@pytest.fixture(scope="session")
def engine_with() -> Callable[..., SamplerEngine]:
    def make(*faults: Fault, **values: Any) -> SamplerEngine:
        return SamplerEngine(SamplerConfig(engine="sampler", faults=faults, **values))

    return make


@pytest.fixture(scope="session")
def xgrammar_engine(engine_with: Any) -> SamplerEngine:
    engine: SamplerEngine = engine_with()
    asyncio.run(engine.start([]))
    return engine


@pytest.fixture(scope="session")
def guidance_engine(engine_with: Any) -> SamplerEngine:
    engine: SamplerEngine = engine_with(backend="guidance")
    asyncio.run(engine.start([]))
    return engine


@pytest.fixture(params=["xgrammar", "guidance"])
def either_engine(request: Any, xgrammar_engine: SamplerEngine, guidance_engine: SamplerEngine) -> SamplerEngine:
    return xgrammar_engine if request.param == "xgrammar" else guidance_engine


@pytest.fixture(scope="session")
def ask() -> Callable[..., Coroutine[Any, Any, Completion]]:
    """One request about the document `user`."""

    async def request(engine: Any, plan: DecodingPlan, user: str = "Ann, 30", **sampling: Any) -> Completion:
        wanted = Sampling(**{"max_tokens": 400, **sampling})
        answer: Completion = await engine.generate(Prompt(plan.prefix, user), plan, wanted)
        return answer

    return request
