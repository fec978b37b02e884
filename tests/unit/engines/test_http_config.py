"""Which configs of the `http` engine are refused, and that no refusal repeats a secret."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.engines.http import HttpEngine
from pipeline.errors import EngineError
from pipeline.jobhttp import HttpConfig


def config(**values: Any) -> HttpConfig:
    return HttpConfig(**{"engine": "http", "base_url": "http://127.0.0.1:8000/v1", "model": "m", **values})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "127.0.0.1:8000/v1",
        "https://",
        "http://host:port/v1",
        "http://host:0/v1",
        "http://[::1/v1",
        "http://host/v1?api-version=1",
        "http://host/v1#x",
        "http://host/v 1",
        "http://höst/v1",
        "file:///etc/passwd",
        "http://user:hunter2@host/v1",
        "http://hunter2@host/v1",
    ],
)
def test_a_base_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        config(base_url=url)
    assert "hunter2" not in str(caught.value)
    assert "base_url" in str(caught.value)


def test_a_slash_at_the_end_changes_nothing() -> None:
    assert config(base_url="https://host/v1/").base_url == config(base_url="https://host/v1").base_url


@pytest.mark.parametrize(
    "field", ["messages", "stream", "n", "stop", "response_format", "max_tokens", "tools", "model"]
)
def test_fields_that_make_another_answer_cannot_be_added(field: str) -> None:
    with pytest.raises(ValidationError, match=f"`{field}` is the engine's own"):
        config(extra_body={field: 1})


def test_numbers_that_json_has_not_are_refused_where_they_are_written() -> None:
    with pytest.raises(ValidationError, match="JSON has not"):
        config(extra_body={"temperature_of": float("inf")})


@pytest.mark.parametrize(
    ("value", "words"), [(None, "not set"), ("  ", "not set"), ("sk one", "no key"), ("sk-ü", "no")]
)
def test_a_key_that_is_none_is_found_at_once(monkeypatch: Any, value: str | None, words: str) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(EngineError, match=f"SOME_KEY.*{words}") as caught:
        HttpEngine(config(api_key_env="SOME_KEY"))
    assert "sk" not in str(caught.value)


def test_no_repr_shows_the_key(monkeypatch: Any) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret-1")
    engine = HttpEngine(config(api_key_env="SOME_KEY"))
    assert "sk-secret" not in f"{engine!r} {engine.fingerprint} {config(api_key_env='SOME_KEY')!r}"
