"""The `http` engine against a real server on the loopback that answers, stalls, breaks off and lies as told."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from openai_server import Answer, always, answers, chat, engine_at, error, sampled, serving

from pipeline.engines.patience import counted
from pipeline.engines.sampler import SamplerEngine
from pipeline.errors import EngineError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, RetryConfig
from pipeline.records import Document

pytestmark = pytest.mark.asyncio
GOOD = '{"name":"Ann","age":30,"tags":[]}'


@pytest.mark.parametrize("dialect", ["openai", "vllm"])
async def test_answers_are_those_of_the_engine_behind_the_server(
    dialect: str, xgrammar_engine: SamplerEngine, plan_of: Any, ask: Any
) -> None:
    plan = plan_of()
    async with serving(sampled(xgrammar_engine, plan)) as server:
        engine = engine_at(server, dialect=dialect)
        await engine.start([plan])
        scores = {"logprobs": 0, "token_ids": True} if dialect == "vllm" else {}
        for number in range(5):
            sampling = {"seed": number, "temperature": 0.5, **scores}
            ours = await ask(engine, plan, f"document {number}", **sampling)
            theirs = await ask(xgrammar_engine, plan, f"document {number}", **sampling)
            for name in ("text", "finish_reason", "constrained", "plan_digest", "prompt_tokens", "cached_tokens"):
                assert getattr(ours, name) == getattr(theirs, name)
            for name in ("output_tokens", "token_ids", "logprobs", "token_ends"):
                assert getattr(ours, name) == getattr(theirs, name)
        await engine.close()
    assert ours.constrained and set(server.paths) == {"/v1/chat/completions"}


async def test_outcomes_are_the_same_through_http(guidance_engine: SamplerEngine, plan_of: Any) -> None:
    plan, config = plan_of(), ExtractConfig(retry=RetryConfig(max_attempts=2, backoff_seconds=0))
    async with serving(sampled(guidance_engine, plan)) as server:
        engine = engine_at(server)
        await engine.start([plan])
        for number in range(4):
            document = Document(f"d{number}", f"Ann, {number}", "in#1", plan.name)
            ours = await extract(document, plan, engine, config)
            theirs = await extract(document, plan, guidance_engine, config)
            for name in ("status", "record", "layer", "problems", "repairs"):
                assert getattr(ours, name) == getattr(theirs, name)
        await engine.close()


@pytest.mark.parametrize(
    "trouble",
    [
        error(429, "slow down"),
        error(500, "oops"),
        Answer(503, b"<html>busy</html>"),
        Answer(200, {"error": {"message": "upstream", "code": 503}}),
        Answer(200, b"x" * 1000, cut=300),
        Answer(200, b"", cut=0),
    ],
)
async def test_what_is_only_for_the_moment_is_asked_again(trouble: Answer, plan_of: Any, ask: Any) -> None:
    completion, server = await answers(plan_of(), ask, trouble)
    assert (completion.text, completion.error) == (GOOD, "")
    assert len(server.requests) == 2 and server.requests[0] == server.requests[1]


@pytest.mark.parametrize("status", [400, 403, 422, 501])
async def test_what_will_not_change_is_not_asked_again(status: int, plan_of: Any, ask: Any) -> None:
    completion, server = await answers(plan_of(), ask, error(status, "no"))
    assert (completion.error, len(server.requests)) == ("engine_failed", 1)
    assert f"HTTP {status}" in completion.detail and completion.detail.endswith("no")


async def test_trouble_that_stays_ends_after_the_allowed_tries(plan_of: Any, ask: Any) -> None:
    completion, server = await answers(plan_of(), ask, *[error(500, "oops")] * 9, max_tries=2)
    assert (completion.error, len(server.requests)) == ("engine_failed", 2)
    assert "HTTP 500: oops" in completion.detail


async def test_retry_after_is_waited_for_by_everybody(plan_of: Any, ask: Any) -> None:
    plan = plan_of()
    async with serving(always(chat(GOOD)), error(429, "slow down", {"Retry-After": "1"})) as server:
        engine = engine_at(server)
        first = asyncio.create_task(ask(engine, plan))
        await asyncio.sleep(0.2)
        assert engine.progress() >= time.monotonic() - 0.1  # it waits because it was told to: not stuck
        second = await ask(engine, plan)
        assert (await first).text == second.text == GOOD
        told, *later = server.times
        assert len(later) == 2 and min(later) - told >= 0.99
        assert second.queue_seconds > 0.5 and second.seconds < second.queue_seconds
        await engine.close()


async def test_a_server_that_asks_for_too_long_a_wait_costs_no_document(plan_of: Any, ask: Any) -> None:
    """The job ends and can go on later; a failed request each would have rejected its documents."""
    with pytest.raises(EngineError, match="asks to wait 7200 s, and `max_wait_seconds` is 60"):
        await answers(plan_of(), ask, error(429, "later", {"Retry-After": "7200"}))


@pytest.mark.parametrize(("keys", "answer"), [({}, {"Retry-After": "1"}), ({"requests_per_minute": 120}, {})])
async def test_a_wait_that_the_server_wants_is_not_the_documents_time(
    plan_of: Any, ask: Any, keys: dict[str, Any], answer: dict[str, str]
) -> None:
    async with serving(always(chat(GOOD)), *([error(429, "later", answer)] if answer else [])) as server:
        engine = engine_at(server, **keys)

        async def within(number: int) -> Any:
            async with asyncio.timeout(0.8) as scope:
                with counted(scope):
                    return await ask(engine, plan_of(), f"d{number}")

        found = await asyncio.gather(*(within(number) for number in range(5)))
        await engine.close()
    assert [completion.error for completion in found] == [""] * 5


async def test_a_key_is_hidden_wherever_a_server_repeats_it(
    plan_of: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-" + "SECRET" * 20
    monkeypatch.setenv("TEST_KEY", key)
    for repeated in (chat(f"{key} is your key"), error(400, "x" * 290 + key), error(401, "x" * 290 + key)):
        try:
            completion, _ = await answers(plan_of(), ask, repeated, api_key_env="TEST_KEY")
            words = repr(completion)
        except EngineError as gone:
            words = repr(gone)
        assert "SECRET" not in words


async def test_a_slow_server_is_given_up_and_told_so(plan_of: Any, ask: Any) -> None:
    completion, server = await answers(plan_of(), ask, Answer(seconds=30), request_seconds=0.3)
    assert (completion.error, len(server.requests)) == ("engine_failed", 1)
    assert "no answer in 0.3 s" in completion.detail


async def test_huge_and_compressed_answers_are_not_read(plan_of: Any, ask: Any) -> None:
    completion, _ = await answers(plan_of(), ask, chat("x" * 100_000), max_answer_bytes=50_000)
    assert completion.error == "engine_failed" and "larger than 50000 bytes" in completion.detail
    completion, server = await answers(plan_of(), ask, Answer(headers={"Content-Encoding": "gzip"}))
    assert completion.error == "engine_failed" and "compressed" in completion.detail
    assert server.headers[0]["accept-encoding"] == "identity"


async def test_a_cancelled_request_is_cancelled_at_the_server(plan_of: Any, ask: Any) -> None:
    async with serving(always(chat(GOOD)), Answer(seconds=30)) as server:
        engine = engine_at(server, max_num_seqs=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await ask(engine, plan_of())
        async with asyncio.timeout(10):
            while not server.left:
                await asyncio.sleep(0.01)
        assert (await ask(engine, plan_of())).text == GOOD  # its slot is free again
        await engine.close()


async def test_so_many_requests_are_in_flight_and_no_more(plan_of: Any, ask: Any) -> None:
    slow = chat(GOOD)
    slow.seconds = 0.05
    async with serving(always(slow)) as server:
        engine = engine_at(server, max_num_seqs=3)
        found = await asyncio.gather(*(ask(engine, plan_of(), f"document {number}") for number in range(12)))
        await engine.close()
    assert {completion.text for completion in found} == {GOOD}
    assert server.most == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, "Incorrect API key provided: sk-secret-1."), "does not accept the key.*api_key_env"),
        (Answer(401, {"error": "Unauthorized"}), "Unauthorized"),
        (error(404, "The model `m` does not exist."), "no such address or model"),
        (Answer(307, b"", {"Location": "http://127.0.0.1:1/v1"}), "redirects to http://127.0.0.1:1/v1"),
        (error(429, "You exceeded your quota", code="insufficient_quota"), "exceeded your quota"),
    ],
)
async def test_a_server_that_will_answer_nothing_is_gone(
    answer: Answer, words: str, plan_of: Any, ask: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret-1")
    async with serving(always(answer)) as server:
        engine = engine_at(server, api_key_env="SOME_KEY")
        with pytest.raises(EngineError, match=words) as caught:
            await ask(engine, plan_of())
        await engine.close()
    assert "sk-secret" not in f"{caught.value} {caught.value.args} {caught.value.__context__}"
    assert server.headers[0]["authorization"] == "Bearer sk-secret-1"
    assert len(server.requests) == 1


async def test_a_key_that_a_server_repeats_is_kept_out_of_details(plan_of: Any, ask: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret-1")
    for answer in (error(400, "sk-secret-1?"), chat(None, refusal="not with sk-secret-1"), Answer(200, b"sk-secret-1")):
        completion, _ = await answers(plan_of(), ask, answer, api_key_env="SOME_KEY")
        assert "sk-secret" not in repr(completion) and "[key]" in completion.detail + completion.refusal


async def test_a_server_that_is_not_there_is_gone(plan_of: Any, ask: Any) -> None:
    async with serving(always(chat(GOOD))) as server:
        url = server.url
    engine = engine_at(url, max_tries=2)
    with pytest.raises(EngineError, match=r"cannot reach http://127\.0\.0\.1"):
        await ask(engine, plan_of())
    await engine.close()
    await engine.close()
