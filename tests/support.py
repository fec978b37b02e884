"""What many tests build: plans from bare schemas, completions, an engine that answers from a list, random schemas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from pipeline.flow import extract
from pipeline.job import ExtractConfig, PolicyConfig, RetryConfig, SamplingConfig
from pipeline.records import Attempt, Completion, Document, Outcome, Problem, Prompt, Sampling
from pipeline.schema.closing import close_objects
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Policy
from pipeline.steps.prompt import system_prompt

RECEIPT = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "lines": {"type": "array", "items": {"type": "string"}},
        "total": {"type": ["number", "null"]},
    },
    "required": ["vendor", "total"],
}
GOOD = {"vendor": "Ann & Co", "date": "2024-02-29", "lines": ["tea", "salt"], "total": 19.9}


def plan_of(
    body: Any = RECEIPT, name: str = "receipt@1", policy: Policy | None = None, backend: str = "xgrammar"
) -> DecodingPlan:
    """The plan that loading a folder with this `schema.json` and nothing else gives."""
    closed, pointers = close_objects(body)
    schema = DocumentSchema(name, closed, "", (), pointers, digest(body))
    return build_plan(schema, system_prompt(schema), backend=backend, compact_json=True, policy=policy)


def completion(text: Any, finish_reason: Any = "stop", **values: Any) -> Completion:
    """A completion off the constrained path; anything but text becomes JSON."""
    text = text if isinstance(text, str) else json.dumps(text)
    return Completion(text, finish_reason, **{"constrained": False, "output_tokens": len(text), **values})


class Answers:
    """An engine that gives the listed answers in turn (the last one for ever) and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = [item if isinstance(item, Completion | BaseException) else completion(item) for item in answers]
        self.prompts: list[Prompt] = []
        self.samplings: list[Sampling] = []

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.prompts.append(prompt)
        self.samplings.append(sampling)
        answer = self._answers[min(len(self.prompts), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def document(text: str = "Ann & Co, total 19.90", problems: Sequence[str] = ()) -> Document:
    return Document("d1", text, "in.jsonl#1", "receipt@1", tuple(Problem(code) for code in problems))


def config(*, degraded: bool = True, max_tokens: int = 512, **retry: Any) -> ExtractConfig:
    return ExtractConfig(
        sampling=SamplingConfig(max_tokens=max_tokens),
        retry=RetryConfig(**{"backoff_seconds": 0, **retry}),
        policy=PolicyConfig(degraded=degraded),
    )


def extracted(engine: Any, plan: DecodingPlan | None = None, doc: Document | None = None, **values: Any) -> Outcome:
    return asyncio.run(extract(doc or document(), plan or plan_of(), engine, config(**values)))


def codes(item: Any) -> list[str]:
    return [problem.code for problem in item.problems]


def attempt(number: int = 1, text: str = "", tokens: int = 0, finish_reason: str = "stop") -> Attempt:
    return Attempt(number, "test", "", False, finish_reason, "", 7, 5, tokens, 0.0, 0.0, text)


# --- random schemas, each with a strategy for values that satisfy it

Sample = tuple[dict[str, Any], st.SearchStrategy[Any]]

_TEXT = st.text(max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)
_SCALARS: list[Sample] = [
    ({"type": "string"}, _TEXT),
    ({"type": "integer"}, st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9).map(float)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": ["string", "null"]}, st.none() | _TEXT),
    ({"anyOf": [{"type": "integer"}, {"type": "null", "description": "absent"}]}, st.none() | st.integers(0, 9)),
    ({"enum": ["EUR", "USD", None]}, st.sampled_from(["EUR", "USD", None])),
    ({"const": "receipt"}, st.just("receipt")),
    ({"type": ["string", "integer"]}, _TEXT | st.integers(0, 9)),
    ({"type": "object"}, st.dictionaries(_TEXT, _JSON, max_size=2)),
    ({}, _JSON),
    ({"type": "array", "prefixItems": [{"type": "string"}]}, st.tuples(_TEXT).map(list)),
    ({"$ref": "#/$defs/place", "description": "where"}, st.fixed_dictionaries({"city": _TEXT})),
]
DEFS = {
    "place": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
}


def _array(sample: Sample) -> Sample:
    return {"type": "array", "items": sample[0]}, st.lists(sample[1], max_size=3)


def _nullable(sample: Sample) -> Sample:
    return {"anyOf": [sample[0], {"type": "null"}]}, st.none() | sample[1]


@st.composite
def _object(draw: Callable[..., Any], inner: st.SearchStrategy[Sample]) -> Sample:
    members = draw(st.dictionaries(st.text(max_size=5), inner, min_size=1, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    schema = {
        "type": "object",
        "properties": {name: sample[0] for name, sample in members.items()},
        "required": required,
        "additionalProperties": False,
    }
    values = {name: sample[1] for name, sample in members.items()}
    needed = {name: values.pop(name) for name in required}
    return schema, st.fixed_dictionaries(needed, optional=values)


_NESTED = st.recursive(
    st.sampled_from(_SCALARS), lambda inner: inner.map(_array) | inner.map(_nullable) | _object(inner), max_leaves=6
)


def schemas() -> st.SearchStrategy[Sample]:
    """(schema of a closed object, strategy of its records)."""
    return _object(_NESTED).map(lambda sample: ({**sample[0], "$defs": DEFS}, sample[1]))


@st.composite
def schema_and_record(draw: Callable[..., Any]) -> tuple[dict[str, Any], Any]:
    schema, records = draw(schemas())
    return schema, draw(records)
