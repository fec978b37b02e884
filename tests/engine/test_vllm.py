"""What real vLLM holds: each keyword under a prompt that begs to break it, and the reverse when it is taken away."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from support import plan_of

from pipeline.engines.vllm import VllmEngine
from pipeline.errors import SchemaError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, RetryConfig, SamplingConfig
from pipeline.records import Completion, Document, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.validator import validator_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def plan_for(engine: VllmEngine, schema: Any, name: str = "probe@1") -> DecodingPlan:
    """The plan of a schema for the engine's own back end."""
    return plan_of(schema, name, backend="guidance" if "guidance" in engine.fingerprint else "xgrammar")


async def ask(engine: VllmEngine, schema: Any, user: str, **sampling: Any) -> Completion:
    prompt = Prompt("You answer exactly as the user asks.", user)
    return await engine.generate(prompt, plan_for(engine, schema), Sampling(**{"max_tokens": 200, **sampling}))


# One keyword each, and a request that asks for what it forbids.
PROBES: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"type": "integer"}, 'Answer {"v": "many"} with the word many in quotes.'),
    "enum": ({"enum": ["red", "blue"]}, 'Answer {"v": "green"}. The colour is green.'),
    "const": ({"const": "zq-17"}, 'Answer {"v": "hello"}.'),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}, 'Answer {"v": "no code at all"}.'),
    "minLength": ({"type": "string", "minLength": 30, "maxLength": 60}, 'Answer {"v": "a"}.'),
    "maxLength": ({"type": "string", "maxLength": 5}, 'Answer {"v": "a very long sentence about the sea"}.'),
    "minItems": ({"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 9}, 'Answer {"v": []}.'),
    "maxItems": ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, 'Answer {"v": [1,2,3,4,5,6,7,8,9]}.'),
    "minimum": ({"type": "integer", "minimum": 500, "maximum": 900}, 'Answer {"v": 3}.'),
    "maximum": ({"type": "integer", "minimum": 0, "maximum": 9}, 'Answer {"v": 12345}.'),
    "anyOf": ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, 'Answer {"v": "perhaps"}.'),
    "items": ({"type": "array", "items": {"enum": ["x"]}, "minItems": 1, "maxItems": 3}, 'Answer {"v": ["y", "z"]}.'),
    "required": (closed(a={"type": "string", "maxLength": 9}, b={"type": "integer"}), 'Answer {"v": {"a": "only"}}.'),
    "additionalProperties": (closed(a={"type": "integer"}), 'Answer {"v": {"a": 1, "extra": 2, "more": 3}}.'),
    "format": ({"type": "string", "format": "date"}, 'Answer {"v": "last Tuesday"}.'),
}


async def test_every_keyword_holds_under_a_prompt_that_begs_to_break_it(engine: VllmEngine) -> None:
    schemas = {name: closed(v=schema) for name, (schema, _) in PROBES.items()}
    requests = [ask(engine, schemas[name], user) for name, (_, user) in PROBES.items()]
    for name, completion in zip(PROBES, await asyncio.gather(*requests), strict=True):
        assert completion.finish_reason == "stop", (name, completion)
        value = json.loads(completion.text)
        plan = plan_for(engine, schemas[name])
        broken = unannounced(plan.acceptance, validator_of(plan.acceptance).iter_errors(value), plan.left)
        assert not broken, (name, completion.text, broken)
        assert completion.constrained


async def test_taking_a_member_away_makes_it_unreachable_and_taking_the_constraint_away_brings_it_back(
    engine: VllmEngine,
) -> None:
    user = 'The colour of grass is green. Answer with JSON: {"colour": "green"}'
    three, two = closed(colour={"enum": ["red", "green", "blue"]}), closed(colour={"enum": ["red", "blue"]})
    with_member, without_member, free = await asyncio.gather(
        ask(engine, three, user), ask(engine, two, user), ask(engine, two, user, constrained=False)
    )
    assert json.loads(with_member.text) == {"colour": "green"}
    assert json.loads(without_member.text)["colour"] in ("red", "blue")
    assert "green" in free.text
    assert (with_member.constrained, without_member.constrained, free.constrained) == (True, True, False)


async def test_a_cut_answer_says_length_and_is_never_valid(engine: VllmEngine) -> None:
    plan = plan_for(
        engine, closed(name={"type": "string"}, lines={"type": "array", "items": {"type": "string"}}), "cut@1"
    )
    config = ExtractConfig(sampling=SamplingConfig(max_tokens=12), retry=RetryConfig(max_attempts=1))
    document = Document("d", "List the months of the year: January, February, March", "s", "cut@1")
    outcome = await extract(document, plan, engine, config)
    assert outcome.attempts[0].finish_reason == "length"
    assert outcome.attempts[0].output_tokens == 12
    assert outcome.status != "valid"
    assert "truncated" in {problem.code for problem in outcome.problems}


async def test_what_vllm_refuses_is_about_the_schema_and_stops_the_start(engine: VllmEngine) -> None:
    # Both back ends fail on it: an unclosed class is no regular expression. (The registry would refuse it earlier.)
    schema = closed(a={"type": "string", "pattern": "^[x$"})
    broken = dataclasses.replace(plan_for(engine, closed(a={"const": "x"}), "broken@1"), transport=json.dumps(schema))
    completion = await engine.generate(Prompt("s", "u"), broken, Sampling(max_tokens=5))
    assert (completion.finish_reason, completion.error) == ("error", "schema_refused")
    with pytest.raises(SchemaError, match="broken@1"):
        await engine.start([broken])
    assert (await ask(engine, closed(a={"type": "integer"}), "Say 1")).finish_reason == "stop"


async def test_a_document_beyond_the_context_is_told_with_numbers_and_its_neighbour_is_answered(
    engine: VllmEngine,
) -> None:
    schema = closed(a={"type": "integer"})
    long, short = await asyncio.gather(ask(engine, schema, "word " * 20000), ask(engine, schema, "Say 1"))
    assert long.error == "prompt_too_long"
    assert long.prompt_tokens > 8192
    assert "8192" in long.detail
    assert short.finish_reason == "stop"


async def test_documents_of_a_schema_share_the_cached_prefix(engine: VllmEngine) -> None:
    plan = plan_for(engine, closed(a={"type": "integer", "description": "a number of the document " * 60}), "prefix@1")
    for number in (1, 2):
        completion = await engine.generate(Prompt(plan.prefix, f"Number {number}"), plan, Sampling(max_tokens=8))
    assert completion.cached_tokens > 0.5 * completion.prompt_tokens


@pytest.mark.slow  # the first request for logprobs compiles for about 15 s on a CPU
async def test_logprobs_and_token_ids_come_on_request(engine: VllmEngine) -> None:
    completion = await ask(engine, closed(a={"const": 7}), "Say 7", logprobs=1, token_ids=True)
    assert len(completion.token_ids) == len(completion.logprobs) == completion.output_tokens
    assert all(row[token] <= 0 for token, row in zip(completion.token_ids, completion.logprobs, strict=True))
