"""The real engine agrees with the probe: a schema of each verdict, sent as it is, under a prompt that begs to break it.

Each schema leaves the engine no room to comply by chance: where a keyword is dropped only its violation is producible,
where it is over-tight a legal answer is asked for that cannot come.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from support import plan_of

from pipeline.compile.check import Trial, check
from pipeline.engines.vllm import VllmEngine
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.validator import validator_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


def closed(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    "bounds@1": closed({"type": "integer", "minimum": 500, "maximum": 900}),
    "not@1": closed({"enum": ["x", "y"], "not": {"const": "x"}}),
    "quotes@1": closed({"type": "string", "maxLength": 3}),
    "steps@1": closed({"type": "number", "minimum": 0, "maximum": 9, "multipleOf": 0.25}),
    "unique@1": closed({"type": "array", "items": {"type": "integer"}, "maxItems": 3, "uniqueItems": True}),
}
ASK = {
    "bounds@1": 'Answer {"v":3}',
    "not@1": 'Answer {"v":"x"}',
    "quotes@1": 'Answer {"v":"a\\"b"}',
    "steps@1": 'Answer {"v":1.5}',
    "unique@1": 'Answer {"v":[1,1]}',
}
UNREACHABLE = {"quotes@1": '{"v":"a\\"b"}', "steps@1": '{"v":1.5}'}
"""Legal answers in canonical form that the back end cannot produce (it may know the value by another spelling)."""
EXPECTED = {
    "xgrammar": {
        ("bounds@1", "minimum"): "enforced",
        ("not@1", "not"): "dropped",
        ("quotes@1", "maxLength"): "over_tight",
        ("unique@1", "uniqueItems"): "refused",
    },
    "guidance": {
        ("bounds@1", "minimum"): "enforced",
        ("quotes@1", "maxLength"): "enforced",
        ("steps@1", "minimum"): "over_tight",  # of the node's keywords, the one whose border values are lost
        ("not@1", "not"): "refused",
        ("unique@1", "uniqueItems"): "refused",
    },
}


@pytest.fixture(scope="session")
def trials(engine: VllmEngine, backend: str) -> dict[str, Trial]:
    schemas = [document_schema(body, name) for name, body in SCHEMAS.items()]
    found = check(schemas, [backend], "embedded", raw=True)
    return {name: found[name, backend] for name in SCHEMAS}


async def ask_raw(engine: VllmEngine, name: str) -> Completion:
    """The engine under the schema as it was written, without the compiler."""
    plan = dataclasses.replace(plan_of(SCHEMAS[name], name), transport=json.dumps(SCHEMAS[name]))
    return await engine.generate(
        Prompt("You answer exactly as the user asks.", ASK[name]), plan, Sampling(max_tokens=60, temperature=0.0)
    )


async def test_the_probe_says_of_the_written_schema_what_the_engine_does_with_it(
    engine: VllmEngine, backend: str, trials: dict[str, Trial]
) -> None:
    for (name, keyword), expected in EXPECTED[backend].items():
        raw = trials[name].raw
        assert raw is not None
        told = {word: kind for _, word, kind, _ in raw["verdicts"]}[keyword]
        assert ("refused" if raw["refused"] else told) == expected, (name, keyword, raw["refused"])
        completion = await ask_raw(engine, name)
        if expected == "refused":
            assert completion.error == "schema_refused", (name, completion)
            continue
        value = json.loads(completion.text)
        if expected == "enforced":
            assert validator_of(SCHEMAS[name]).is_valid(value), (name, completion.text)
        elif expected == "dropped":
            assert value == {"v": "x"}, completion.text
        else:
            assert UNREACHABLE[name] != completion.text


async def test_under_the_compiler_s_schema_only_announced_sites_break(
    engine: VllmEngine, trials: dict[str, Trial]
) -> None:
    for name, trial in trials.items():
        assert trial.usable, (name, trial.words)
        assert not trial.lost, (name, trial.lost)
        plan = dataclasses.replace(plan_of(SCHEMAS[name], name), transport=trial.transport)
        prompt = Prompt("You answer exactly as the user asks.", ASK[name])
        completion = await engine.generate(prompt, plan, Sampling(max_tokens=60, temperature=0.0))
        if completion.finish_reason == "length":
            continue  # an unbounded string may run on; that is announced, too
        body = document_schema(SCHEMAS[name], name).body
        errors = validator_of(body).iter_errors(json.loads(completion.text))
        assert not unannounced(body, errors, trial.left), (name, completion.text)


async def test_what_a_back_end_alone_cannot_say_the_compiler_s_schema_says(
    engine: VllmEngine, trials: dict[str, Trial]
) -> None:
    plan = dataclasses.replace(plan_of(SCHEMAS["not@1"], "not@1"), transport=trials["not@1"].transport)
    completion = await engine.generate(Prompt("You obey.", ASK["not@1"]), plan, Sampling(max_tokens=60))
    assert json.loads(completion.text) == {"v": "y"}
