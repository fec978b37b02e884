"""What the `http` engine sends: the body of a chat completion, in the server's dialect."""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.jobhttp import HttpConfig
from pipeline.records import Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

_PLAIN = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""vLLM's server fills these in from the model's `generation_config.json`; in-process engines decode without them."""


def request_of(config: HttpConfig, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> bytes:
    """The body of one request, as JSON in ASCII. Half surrogates, which are no text, become question marks."""
    messages = [{key: _encodable(text) for key, text in message.items()} for message in prompt.messages()]
    body: dict[str, Any] = {
        "model": config.model,
        "messages": messages,
        "temperature": sampling.temperature,
        "seed": sampling.seed,
        config.max_tokens_field: sampling.max_tokens,
        "stream": False,
    }
    for name in config.omit:
        del body[name]
    if sampling.seed is None:
        body.pop("seed", None)
    if is_constrained(config, sampling):
        body |= _constraint(config, plan)
    if sampling.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": sampling.logprobs}
    if config.dialect == "vllm":
        body |= _PLAIN
        if sampling.token_ids or sampling.logprobs is not None:
            body |= {"return_token_ids": True, "return_tokens_as_token_ids": True}
    return json.dumps(body | config.extra_body, separators=(",", ":"), allow_nan=False).encode("ascii")


def is_constrained(config: HttpConfig, sampling: Sampling) -> bool:
    """Whether a request carries a schema."""
    return sampling.constrained and config.constraint == "schema"


def _constraint(config: HttpConfig, plan: DecodingPlan) -> dict[str, Any]:
    if config.dialect == "vllm":
        return {"structured_outputs": {"json": plan.transport}}
    # OpenAI allows letters, digits, `_` and `-`, at most 64.
    name = re.sub(r"[^A-Za-z0-9_-]", "_", plan.name)[:64] or "record"
    schema = {"name": name, "schema": json.loads(plan.transport), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
