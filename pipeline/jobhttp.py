"""Keys of the `http` engine: an OpenAI-compatible server that somebody else runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, JsonValue, field_validator

from pipeline.jobplacement import Strict

OWN_FIELDS = frozenset(
    {
        *("model", "messages", "n", "stream", "stream_options", "temperature", "seed", "stop", "echo"),
        *("max_tokens", "max_completion_tokens", "response_format", "structured_outputs", "logprobs", "top_logprobs"),
        *("tools", "tool_choice", "functions", "function_call", "return_token_ids", "return_tokens_as_token_ids"),
    }
)
"""Fields of a request that the engine writes itself, or under which an answer would be another thing than a record."""


class HttpConfig(Strict):
    """An OpenAI-compatible server: `POST {base_url}/chat/completions`. docs/http.md says what is proven of it.

    `model` is its name at the server, `tokenizer` the model whose tokenizer stands in for the server's where tokens are
    counted before a run. `api_key_env` names the environment variable that holds the key. `dialect` says how a schema
    is sent: `openai` as `response_format`, `vllm` as `structured_outputs`; `backend` in whose transport language. Under
    `constraint: none` no schema is sent and nothing is proven. `max_num_seqs` requests are in flight at once, and each
    process that holds an engine sends at most `requests_per_minute`.

    A request that was refused for the moment or cut is sent up to `max_tries` times; a server that asks for a longer
    wait than `max_wait_seconds` is not waited for. `omit` names fields that the server does not know; `extra_body` adds
    others. `trust_env` lets proxies and certificates of the environment be used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    engine: Literal["http"]
    base_url: str
    model: str = Field(min_length=1, max_length=512)
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    dialect: Literal["openai", "vllm"] = "openai"
    constraint: Literal["schema", "none"] = "schema"
    tokenizer: str = "embedded"
    backend: Literal["auto", "xgrammar", "guidance"] = "guidance"
    compact_json: bool = True
    max_model_len: int | None = Field(None, ge=128)
    max_num_seqs: int = Field(32, ge=1, le=4096)
    requests_per_minute: float | None = Field(None, gt=0)
    request_seconds: float = Field(240.0, gt=0)
    connect_seconds: float = Field(10.0, gt=0)
    max_tries: int = Field(5, ge=1, le=20)
    max_wait_seconds: float = Field(60.0, ge=0)
    max_answer_bytes: int = Field(8 * 2**20, ge=1024)
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    omit: tuple[Literal["seed", "temperature"], ...] = ()
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    trust_env: bool = False
    num_gpus: float = Field(0, ge=0, le=0)

    @property
    def tokenizer_model(self) -> str:
        """Whose tokenizer tokens are counted with before a run."""
        return self.tokenizer

    @field_validator("base_url")
    @classmethod
    def _is_plain(cls, url: str) -> str:
        """The URL without a slash at its end. No message repeats it: it may hold a secret."""
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port)
        except ValueError:  # a port that is none, a bracket that is not closed
            usable = False
        if not usable or not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("write http://HOST[:PORT]/PATH or https://…, such as http://127.0.0.1:8000/v1")
        if parts.username is not None or parts.password is not None:
            raise ValueError("no user or password in it: put the key into a variable, and name that in `api_key_env`")
        if "?" in url or "#" in url:
            raise ValueError("no query and no fragment in it: `/chat/completions` is put behind its path")
        return url.rstrip("/")

    @field_validator("extra_body")
    @classmethod
    def _is_extra(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if own := sorted(OWN_FIELDS & set(extra)):
            raise ValueError(f"`{own[0]}` is the engine's own; `sampling`, `dialect` and other keys decide on it")
        try:
            json.dumps(extra, allow_nan=False)
        except ValueError:
            raise ValueError("it holds a number that JSON has not (.inf or .nan)") from None
        return extra


def check_patience(engines: Iterable[Any], stall_seconds: float, key: str) -> None:
    """Raises ValueError if some server may take longer for an answer than after which it is taken for stuck (`key`)."""
    for engine in engines:
        if engine.engine == "http" and engine.request_seconds >= stall_seconds:
            raise ValueError(
                f"engine.request_seconds ({engine.request_seconds:g}) must be below {key} ({stall_seconds:g}): a slow "
                "answer would be taken for a stuck server"
            )
