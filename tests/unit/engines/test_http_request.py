"""What the `http` engine writes and how it codes what comes back, seen from both ends of the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import Answer, answers, engine_at, error, obedient, serving

pytestmark = pytest.mark.asyncio
GOOD = '{"name":"Ann","age":30,"tags":[]}'


async def test_codes_of_the_infrastructure(plan_of: Any, ask: Any) -> None:
    for answer, code in (
        (error(400, "maximum context length is 64 tokens"), "prompt_too_long"),
        (error(400, "Invalid schema for response_format"), "schema_refused"),
    ):
        completion, _ = await answers(plan_of(), ask, answer)
        assert (completion.error, completion.finish_reason, completion.text) == (code, "error", "")
    completion, _ = await answers(plan_of(), ask, error(400, "filtered", code="content_filter"))
    assert (completion.finish_reason, completion.error) == ("stop", "") and "filtered" in completion.refusal


async def test_requests_are_written_in_the_servers_dialect(plan_of: Any, ask: Any) -> None:
    plan = plan_of(name="a very long name/with slashes@1" * 4)
    extra = {"extra_body": {"reasoning_effort": "low"}, "omit": ("seed",), "max_tokens_field": "max_tokens"}
    _, server = await answers(plan, ask, **extra)
    body = server.requests[0]
    assert body["response_format"]["json_schema"]["schema"] == json.loads(plan.transport)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert len(body["response_format"]["json_schema"]["name"]) == 64
    assert (body["max_tokens"], body["reasoning_effort"], body["stream"]) == (400, "low", False)
    assert not {"seed", "max_completion_tokens", "top_k", "structured_outputs", "logprobs"} & set(body)
    _, server = await answers(plan, ask, dialect="vllm")
    body = server.requests[0]
    assert body["structured_outputs"] == {"json": plan.transport} and "response_format" not in body
    assert (body["top_p"], body["top_k"], body["repetition_penalty"]) == (1.0, 0, 1.0)
    _, server = await answers(plan, ask, constraint="none")
    assert "response_format" not in server.requests[0]


async def test_half_characters_and_quotes_travel(plan_of: Any, ask: Any) -> None:
    async with serving(obedient(lambda user: user)) as server:
        engine = engine_at(server)
        text = 'a\ud800b "quoted" 😀 \x00 <|im_end|>'
        assert (await ask(engine, plan_of(), text)).text == text.replace("\ud800", "?")
        await engine.close()


@pytest.mark.parametrize(("first", "later", "error"), [(20, 20, "prompt_truncated"), (20, 1, ""), (0, 0, "")])
async def test_a_cut_prompt_is_told_from_counts_without_cached_tokens(
    first: int, later: int, error: str, plan_of: Any, ask: Any
) -> None:
    plan, brain, counts = plan_of(), obedient(lambda _: GOOD), [first]

    async def counting(body: dict[str, Any]) -> Answer:
        answer = await brain(body)
        answer.body["usage"] = {"prompt_tokens": counts[0], "completion_tokens": 1}
        counts[0] = later
        return answer

    async with serving(counting) as server:
        engine = engine_at(server)
        await engine.start([plan])
        assert (await ask(engine, plan, "word " * 100)).error == error
        assert (await ask(engine, plan, "few words")).error == ""
        await engine.close()
