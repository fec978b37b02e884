"""What is made of a server's answers and errors, all of which are untrusted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import chat

from pipeline.engines.http_answer import completion_of, cut_prompt
from pipeline.engines.http_reply import Reply, meaning_of, read_reply, told
from pipeline.records import Completion, Prompt, Sampling
from pipeline.steps.parse import parse

BASE = Completion("", "error", True, engine="http:h/m:openai", plan_digest="p")


def reply(body: Any, status: int = 200, **headers: str) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_reply(status, {"content-type": "application/json", **headers}, content)


def read(body: Any, **sampling: Any) -> Completion:
    return completion_of(reply(body), BASE, Sampling(**{"max_tokens": 10, **sampling}))


def codes(completion: Completion) -> list[str]:
    return [problem.code for problem in parse(completion, 1).problems]


@pytest.mark.parametrize(
    ("reason", "problems"),
    [
        ("stop", []),
        ("length", ["truncated"]),
        ("abort", ["engine_abort"]),
        ("repetition", ["repetition"]),
        ("error", ["engine_error"]),
        ("content_filter", ["model_refused"]),
        ("tool_calls", ["engine_error"]),
        ("function_call", ["engine_error"]),
        ("eos_and_more", ["engine_error"]),
        (None, ["engine_error"]),
        (["stop"], ["engine_error"]),
        ({"a": 1}, ["engine_error"]),
    ],
)
def test_only_stop_means_finished(reason: Any, problems: list[str]) -> None:
    assert codes(read(chat('{"a": 1}', reason).body)) == problems


def test_a_refusal_is_coded_and_kept_apart_from_the_text() -> None:
    completion = read(chat(None, refusal="I cannot help with that.").body)
    assert (completion.text, completion.refusal, completion.constrained) == ("", "I cannot help with that.", False)
    assert codes(completion) == ["model_refused"]
    assert codes(read(chat('{"a": 1}', refusal=None).body)) == []
    assert codes(read(chat('{"a": 1}', refusal="").body)) == []


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_no_answer(name: str) -> None:
    completion = read(chat(None, "length", **{name: "Let me think"}).body)
    assert (completion.text, completion.reasoning) == ("", "Let me think")
    assert codes(completion) == ["truncated"]
    assert codes(read(chat("", **{name: '{"a": 1}'}).body)) == ["channel_mismatch"]


def test_usage_is_read_and_what_makes_no_sense_counts_nothing() -> None:
    good = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
    found = read(chat("{}", usage=good).body)
    assert (found.prompt_tokens, found.cached_tokens, found.output_tokens) == (9, 8, 3)
    for bad in ({}, [], "many", {"prompt_tokens": -1, "completion_tokens": 1e9, "prompt_tokens_details": 7}):
        found = read(chat("{}", usage=bad).body)
        assert (found.text, found.prompt_tokens, found.cached_tokens, found.output_tokens) == ("{}", 0, 0, 0)
    assert read(chat("{}", usage={"prompt_tokens": True, "completion_tokens": 2**40}).body).output_tokens == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b"[" * 200_000,
        b'{"choices": [{"message": ' + b"9" * 5000 + b"}]}",
        b"\xff\xfe\x00",
        b'data: {"choices": []}\n\ndata: [DONE]',
        {},
        [],
        None,
        "text",
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        {"choices": [{"text": "a completion", "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": ["a", "b"]}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]},
    ],
)
def test_what_is_no_chat_completion_is_the_engines_fault(body: Any) -> None:
    completion = read(body)
    assert (completion.finish_reason, completion.error, completion.constrained) == ("error", "engine_failed", False)
    assert 0 < len(completion.detail) < 1000
    assert "\n" not in completion.detail and "\x00" not in completion.detail


@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        # vLLM 0.32: renderers/params.py, entrypoints/serve/utils/api_utils.py, v1/engine/input_processor.py
        (400, {"error": {"message": "This model's maximum context length is 64 tokens. However, your prompt contains"
                         " 99 input tokens", "param": "input_tokens", "code": 400}}, "prompt_too_long"),
        (400, {"error": {"message": "Input length (9) exceeds model's maximum context length (8)."}},
         "prompt_too_long"),
        (400, {"error": {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8."}},
         "prompt_too_long"),
        (400, {"error": {"message": "Please shorten", "code": "context_length_exceeded"}}, "prompt_too_long"),
        (400, {"error": {"message": "the request exceeds the available context size"}}, "prompt_too_long"),
        (400, {"error": {"message": "prompt is too long: 250000 tokens > 200000 maximum"}}, "prompt_too_long"),
        (413, b"Payload Too Large", "prompt_too_long"),
        (400, {"error": {"message": "Invalid schema for response_format 'x': 'minLength' is not permitted."}},
         "schema_refused"),
        (400, {"error": {"message": "The provided JSON schema contains features not supported by xgrammar."}},
         "schema_refused"),
        (400, {"error": {"message": "bad value", "param": "response_format"}}, "schema_refused"),
        (422, {"detail": [{"loc": ["body", "structured_outputs"], "msg": "Extra inputs are not permitted"}]},
         "schema_refused"),
        (400, {"error": {"message": "The response was filtered", "code": "content_filter"}}, "refusal"),
        (400, {"error": {"message": "triggering Azure OpenAI's content management policy"}}, "refusal"),
        (400, {"error": {"message": "Could not finish the message because max_tokens or model output limit"}}, "cut"),
        (400, {"error": {"message": "Unsupported parameter: 'seed'"}}, "engine_failed"),
        (403, b"<html>Request blocked</html>", "engine_failed"),
        (500, {"error": {"message": "schema"}}, "engine_failed"),
        (429, {"error": {"message": "Rate limit reached"}}, "engine_failed"),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "gone"),
        (400, {"error": {"message": "unknown word insufficient_quota in the document"}}, "engine_failed"),
        (401, {"error": "Unauthorized"}, "gone"),
        (404, {"error": {"message": "The model `x` does not exist."}}, "gone"),
        (307, b"", "gone"),
    ],
)  # fmt: skip
def test_errors_mean_what_their_words_say(status: int, body: Any, meaning: str) -> None:
    assert meaning_of(reply(body, status), constrained=True) == meaning


def test_no_schema_is_refused_where_none_was_sent() -> None:
    refused = reply({"error": {"message": "Invalid schema for response_format"}}, 400)
    assert meaning_of(refused, constrained=False) == "engine_failed"


@pytest.mark.parametrize(("code", "status"), [(429, 429), ("429", 502), (None, 502), (200, 502), (10**30, 502)])
def test_an_error_that_came_as_200_is_one(code: Any, status: int) -> None:
    assert reply({"error": {"message": "upstream is busy", "code": code}}).status == status


def test_words_of_a_server_are_short_and_on_one_line() -> None:
    for body in ({"error": {"message": "a\x1b[31m\nb" * 5000}}, b"\x00" * 90_000, {"detail": ["x" * 9000]}):
        words = told(reply(body, 500))
        assert words.isprintable() and words.startswith("HTTP 500") and len(words) < 400
    assert "https://elsewhere/v1" in told(reply(b"", 302, location="https://elsewhere/v1"))


def test_a_prompt_that_was_read_by_less_than_half_was_cut() -> None:
    prompt = Prompt("one two three", "four " * 997)
    few, enough = Completion("{}", "stop", True, prompt_tokens=499), Completion("{}", "stop", True, prompt_tokens=500)
    assert "499 tokens of a prompt of 1000 words" in cut_prompt(few, prompt)
    assert cut_prompt(enough, prompt) == ""
    assert cut_prompt(Completion("{}", "stop", True), prompt) == ""  # a server that does not count


def scored(*entries: Any, text: str = "", ids: Any = None) -> dict[str, Any]:
    body: dict[str, Any] = chat(text).body
    body["choices"][0] |= {"logprobs": {"content": list(entries)}, "token_ids": ids}
    return body


def entry(token: str, data: bytes | None, logprob: Any = -0.5, others: Any = ()) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": data and list(data), "top_logprobs": list(others)}


def test_tokens_of_vllm_carry_ids_and_ends() -> None:
    smile = "😀".encode()
    entries = [entry("token_id:7", b'{"'), entry("token_id:8", smile[:2]), entry("token_id:9", smile[2:] + b'"}')]
    entries.append(entry("token_id:2", b"<end>"))
    found = read(scored(*entries, text='{"😀"}', ids=[7, 8, 9, 2]), logprobs=0, token_ids=True)
    assert found.token_ids == (7, 8, 9, 2)
    assert found.logprobs == ({7: -0.5}, {8: -0.5}, {9: -0.5}, {2: -0.5})
    assert found.token_ends == (2, 2, 5, 5)


def test_tokens_of_openai_have_no_ids() -> None:
    entries = [entry('{"a":', None), entry("1}", b"1}", -0.1, [entry("2}", b"2}", -3.0)])]
    found = read(scored(*entries, text='{"a":1}'), logprobs=1)
    assert (found.token_ids, found.token_ends) == ((), (5, 7))
    assert [next(iter(row.values())) for row in found.logprobs] == [-0.5, -0.1]
    assert read(scored(*entries, text='{"a":1}')).logprobs == ()  # nobody asked


@pytest.mark.parametrize(
    "body",
    [
        scored(entry("a", b"a", "high"), text="a"),
        scored(entry("a", b"a", None), text="a"),
        scored(entry("a", b"a", float("nan")), text="a"),
        scored({"token": 5, "logprob": -1}, text="a"),
        scored(7, None, text="a"),
    ],
)
def test_scores_that_are_none_are_left_out_and_the_answer_stands(body: Any) -> None:
    found = read(body, logprobs=0)
    assert (found.text, found.finish_reason, found.logprobs, found.token_ends) == ("a", "stop", (), ())


@pytest.mark.parametrize("pieces", [[b"b"], [b"a", b"b", b"c"], [b"\xff"], []])
def test_tokens_that_do_not_make_the_text_are_not_aligned(pieces: list[bytes]) -> None:
    body = scored(*(entry("x", piece) for piece in pieces), text="a", ids=[1, True, -3])
    found = read(body, logprobs=0, token_ids=True)
    assert (found.token_ids, found.token_ends) == ((), ())
