"""The endpoint as it is shipped: the registered schemas, the sampler, and the real sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import HEADERS, SECRET

from pipeline.engines.sampler import SamplerEngine
from pipeline.job import ExtractConfig, SamplerConfig
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import available, load_schema
from pipeline.serve_app.inline import InlineSchemas, target_of
from pipeline.serve_app.online import InlineConfig, OnlineConfig, Token
from pipeline.serve_app.service import Service
from pipeline.serve_app.web import build_web
from pipeline.steps.prompt import system_prompt

SCHEMAS = Path(__file__).parents[3] / "schemas"
ENGINE = SamplerConfig(engine="sampler", backend="guidance")
BOMB: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"enum": [f"{n:05}" for n in range(4000)]}, "uniqueItems": True}},
}


def plans() -> dict[str, Any]:
    loaded = [load_schema(SCHEMAS, name) for name in available(SCHEMAS)]
    made = [build_plan(one, system_prompt(one), backend="guidance", compact_json=True) for one in loaded]
    return {plan.name: plan for plan in made}


@pytest.mark.slow
def test_registered_and_own_schemas_through_the_sampler_and_the_sandbox() -> None:
    config = ExtractConfig.model_validate({"sampling": {"max_tokens": 2000}, "retry": {"max_attempts": 1}})

    async def story() -> None:
        engine = SamplerEngine(ENGINE)
        inline = InlineSchemas(InlineConfig(seconds=20), target_of(ENGINE, config))
        await asyncio.gather(engine.start([]), inline.start())
        service = Service(engine, plans(), config, OnlineConfig(), inline)
        transport = httpx.ASGITransport(build_web(service, Token(SECRET)))
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=HEADERS) as client:

            async def ask(schema: Any) -> Any:
                return await client.post("/v1/extract", json={"text": "Tea 2.50, total 2.50", "schema": schema})

            listed = (await client.get("/v1/schemas")).json()["schemas"]
            assert [row["name"] for row in listed] == available(SCHEMAS)
            for row in listed:
                got = await ask(row["name"])
                assert got.status_code in (200, 422) and got.json()["attempts"][0]["constrained"]
            color = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
            own = await ask(color)
            assert own.json()["record"]["color"] in ("red", "blue")
            trying = asyncio.create_task(ask(BOMB))
            assert (await ask("receipt@1")).status_code in (200, 422)
            assert (await trying).json()["error"]["code"].startswith("schema_")
        await inline.close()
        await engine.close()

    asyncio.run(story())
