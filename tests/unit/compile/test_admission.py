"""vLLM's own refusals before a grammar is compiled: one schema per reason in its source, both back ends."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.compile import admission as module
from pipeline.compile.admission import admission
from pipeline.engines.models import load_tokenizer, resolve

STRING = {"type": "string"}
FEATURES = "features not supported by xgrammar"
FAILED = "Failed to transform json schema into a grammar"
DEEP = "nested too deeply"


def nested(levels: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


# reason: (schema, words of xgrammar's refusal or "", words of guidance's refusal or "")
REASONS: dict[str, tuple[Any, str, str]] = {
    "nothing": ({"type": "object", "properties": {"a": STRING}}, "", ""),
    "multipleOf": ({"type": "number", "multipleOf": 0.01}, FEATURES, ""),
    "multipleOf in a union": ({"type": ["null", "integer"], "multipleOf": 2}, FEATURES, ""),
    "multipleOf without a type": ({"multipleOf": 2}, "", ""),
    "uniqueItems": ({"type": "array", "uniqueItems": True}, FEATURES, "Unimplemented keys"),
    "contains": ({"type": "array", "contains": STRING}, FEATURES, "Unimplemented keys"),
    "unknown format": ({"type": "string", "format": "iso-4217"}, FEATURES, "Unknown format"),
    "pattern and length": ({"type": "string", "pattern": "^a+$", "maxLength": 3}, FEATURES, ""),
    "format and length": ({"type": "string", "format": "date", "minLength": 3}, FEATURES, ""),
    "propertyNames with lengths": (
        {"type": "object", "propertyNames": {"pattern": "^a", "maxLength": 3}},
        FEATURES,
        "Unimplemented keys",
    ),
    "propertyNames with patterns": (
        {"type": "object", "propertyNames": STRING, "patternProperties": {"^a$": STRING}},
        FEATURES,
        "Unimplemented keys",
    ),
    "propertyNames with properties": (
        {"type": "object", "propertyNames": STRING, "properties": {"a": STRING}},
        FEATURES,
        "Unimplemented keys",
    ),
    "propertyNames, unevaluated": (
        {"type": "object", "propertyNames": STRING, "unevaluatedProperties": False},
        FEATURES,
        "Unimplemented keys",
    ),
    "propertyNames alone": ({"type": "object", "propertyNames": STRING}, "", "Unimplemented keys"),
    "patterns with properties": (
        {"type": "object", "patternProperties": {"^a$": STRING}, "properties": {"b": STRING}},
        FEATURES,
        "",
    ),
    "two patterns": ({"type": "object", "patternProperties": {"^a$": STRING, "^b$": STRING}}, FEATURES, ""),
    "one pattern": ({"type": "object", "patternProperties": {"^a$": STRING}}, "", ""),
    "allOf of two": ({"allOf": [STRING, {"minLength": 2}]}, FEATURES, ""),
    "allOf of one": ({"allOf": [STRING]}, "", ""),
    "deep down": ({"properties": {"a": {"items": {"type": "number", "multipleOf": 2}}}}, FEATURES, ""),
    "nested too deeply": (nested(600), DEEP, DEEP),
    "not a pattern": ({"type": "string", "pattern": "([a-z"}, FAILED, "Grammar error"),
    "empty range": ({"type": "integer", "minimum": 5, "maximum": 1}, FAILED, "Grammar error"),
    "reference to nothing": ({"$ref": "#/$defs/nope"}, FAILED, "Grammar error"),
    "unknown type": ({"type": "text"}, FAILED, "Grammar error"),
    "format is a list": ({"type": "string", "format": ["date"]}, FAILED, "Grammar error"),
    "a list": ([], FAILED, "Invalid grammar specification"),
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    pytest.importorskip("vllm")
    return load_tokenizer(resolve("embedded"))


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
@pytest.mark.parametrize("reason", REASONS)
def test_refusals_are_vllms(tokenizer: Any, reason: str, backend: Any) -> None:
    schema, *words = REASONS[reason]
    expected = words[backend == "guidance"]
    answer = admission(json.dumps(schema), backend, tokenizer)
    assert answer.verdict == ("refused" if expected else "admitted"), answer
    assert expected in answer.words
    assert bool(answer.words) is bool(expected)


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
@pytest.mark.parametrize("text", ["", "  ", '{"type":', "nonsense", "[" * 100_000])
def test_text_that_is_no_schema_is_refused(tokenizer: Any, text: str, backend: Any) -> None:
    assert admission(text, backend, tokenizer).verdict == "refused"


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
def test_the_verdict_does_not_depend_on_what_was_asked_before(tokenizer: Any, backend: Any) -> None:
    schemas = [json.dumps(REASONS[name][0]) for name in ("multipleOf", "nothing", "uniqueItems", "nothing")]
    first = [admission(schema, backend, tokenizer) for schema in schemas]
    assert [admission(schema, backend, tokenizer) for schema in reversed(schemas)] == first[::-1]


def test_a_tokenizer_that_guidance_cannot_use_is_refused() -> None:
    pytest.importorskip("vllm")
    slow: Any = SimpleNamespace()
    assert "fast" in admission("{}", "guidance", slow).words
    assert admission("{}", "xgrammar", slow).verdict == "admitted"


def test_without_vllm_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", None)
    module.load.cache_clear()
    try:
        answer = admission('{"type":"string"}', "xgrammar", None)
    finally:
        module.load.cache_clear()
    assert answer.verdict == "unknown"
    assert "vllm.sampling_params" in answer.words
