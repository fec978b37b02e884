"""What the start-up check of the `http` engine finds out: schema mode, JSON mode, neither; a bound that is ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import Answer, Brain, chat, error, obedient, sampled, schema_of, serving

from pipeline.engines.http import HttpEngine
from pipeline.engines.http_start import mode_of
from pipeline.errors import EngineError, SchemaError
from pipeline.jobhttp import HttpConfig
from pipeline.records import Completion

pytestmark = pytest.mark.asyncio
GOOD = '{"name":"Ann","age":30,"tags":[]}'


async def started(brain: Brain, *plans: Any, **values: Any) -> tuple[HttpEngine, list[dict[str, Any]]]:
    """An engine that was started, and what it asked."""
    async with serving(brain) as server:
        engine = HttpEngine(HttpConfig(**{"engine": "http", "base_url": server.url, "model": "m", **values}))
        try:
            await engine.start(list(plans))
        finally:
            await engine.close()
        return engine, server.requests


async def test_schema_mode_is_proven_with_constants_that_no_prompt_holds(xgrammar_engine: Any, plan_of: Any) -> None:
    plan = plan_of()
    engine, requests = await started(sampled(xgrammar_engine, plan), plan)
    assert engine.proven
    constants = [
        schema["properties"]["answer"]["const"]
        for schema in map(schema_of, requests)
        if schema and "answer" in schema["properties"]
    ]
    assert len(set(constants)) == len(constants) == 3
    assert not [one for one in constants for request in requests if one in json.dumps(request["messages"])]
    assert requests[-1]["messages"][0]["content"] == plan.prefix


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (chat('{"poem": "The sea is wide"}'), "knows JSON mode only"),
        (chat('{"answer": "the sea"}'), "knows JSON mode only"),
        (chat("[]"), "knows JSON mode only"),
        (chat('{"poem": "The sea is w', "length"), "knows JSON mode only"),
        (chat("\n \n \n \n ", "length"), "knows JSON mode only"),
        (chat("The sea is wide,\nthe sea is blue."), "does not obey its schema constraint"),
        (chat('"The sea"'), "does not obey its schema constraint"),
        (chat('Sure: {"answer": "x"}'), "does not obey its schema constraint"),
        (chat(None, refusal="I write no poems."), "does not obey its schema constraint.*I write no poems"),
        (chat("", "length", reasoning="Let me think"), "tokens of reasoning and no answer"),
        (error(400, "response_format of type json_schema is not supported"), "refuses a schema.*json_schema"),
        (error(400, "Unsupported parameter: temperature"), "cannot be used.*temperature.*omit"),
        (Answer(200, b"<html>"), "cannot be used.*without a chat completion"),
    ],
)
async def test_anything_less_stops_the_start_and_says_what_to_do(answer: Answer, words: str) -> None:
    async def brain(body: dict[str, Any]) -> Answer:
        return chat("The", "length") if schema_of(body) is None else answer

    with pytest.raises(EngineError, match=words):
        await started(brain)


async def test_json_mode_is_not_taken_for_a_proof_that_succeeded_once() -> None:
    seen = []

    async def brain(body: dict[str, Any]) -> Answer:
        schema = schema_of(body)
        if schema is None:
            return chat("The", "length")
        seen.append(schema["properties"]["answer"]["const"])
        return chat(json.dumps({"answer": seen[0]}))  # an answer that was kept

    with pytest.raises(EngineError, match="JSON mode only"):
        await started(brain)
    assert len(seen) == 2


async def test_a_server_that_writes_on_beyond_the_bound_is_found() -> None:
    async def brain(_body: dict[str, Any]) -> Answer:
        return chat("The sea is wide, the sea is blue, and nobody counts what I write about it.")

    with pytest.raises(EngineError, match=r"ignores the bound on its answers.*max_tokens_field"):
        await started(brain)


async def test_without_a_constraint_nothing_is_proven_and_nothing_claimed(plan_of: Any, ask: Any) -> None:
    async with serving(obedient(lambda _: GOOD, proof=False)) as server:
        config = HttpConfig(engine="http", base_url=server.url, model="m", constraint="none")
        engine = HttpEngine(config)
        await engine.start([plan_of()])
        completion = await ask(engine, plan_of())
        assert (completion.text, completion.constrained) == (GOOD, False)
        await engine.close()
    assert not [request for request in server.requests if schema_of(request) is not None]


async def test_a_plan_that_the_server_refuses_is_named(plan_of: Any) -> None:
    async def brain(body: dict[str, Any]) -> Answer:
        schema = schema_of(body)
        if schema and "tags" in schema["properties"]:
            return error(400, "Invalid schema for response_format: 'maxItems' is not permitted")
        return await obedient(lambda _: GOOD)(body)

    with pytest.raises(SchemaError, match=r"person@1.*maxItems"):
        await started(brain, plan_of())


async def test_completions_are_constrained_only_after_the_proof_and_only_with_a_schema(plan_of: Any, ask: Any) -> None:
    async with serving(obedient(lambda _: GOOD)) as server:
        engine = HttpEngine(HttpConfig(engine="http", base_url=server.url, model="m"))
        assert not (await ask(engine, plan_of())).constrained
        await engine.start([plan_of()])
        assert (await ask(engine, plan_of())).constrained
        assert not (await ask(engine, plan_of(), constrained=False)).constrained
        await engine.close()


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000])
async def test_hostile_answers_to_the_proof_are_no_proof(text: str) -> None:
    assert mode_of(Completion(text, "stop", False), "x") == "text"
