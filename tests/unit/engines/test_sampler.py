"""The sampler without its faults: legal, bounded, and a function of its inputs alone."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from pipeline.errors import SchemaError
from pipeline.records import Completion


def random_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """A schema of keywords that both back ends enforce."""
    leaves: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "string", "minLength": 2, "maxLength": 9},
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"},
        {"enum": ["red", 'a "quoted" one', 7, None, "ü"]},
        {"type": "integer", "minimum": -5, "maximum": 120},
        {"type": "number", "minimum": 0},
        {"type": ["boolean", "null"]},
        {"const": {"x": [1, "y"]}},
    ]
    if depth == 3 or (depth and rng.random() < 0.5):
        return rng.choice(leaves)
    kind = rng.choice(["object", "object", "array", "anyOf"]) if depth else "object"
    if kind == "array":
        low = rng.randint(0, 2)
        items = random_schema(rng, depth + 1)
        return {"type": "array", "items": items, "minItems": low, "maxItems": low + rng.randint(0, 4)}
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth + 1), {"type": "null"}]}
    names = [f"field {number}" for number in range(rng.randint(1, 4))]
    return {
        "type": "object",
        "properties": {name: random_schema(rng, depth + 1) for name in names},
        "required": [name for name in names if rng.random() < 0.7],
        "additionalProperties": False,
    }


@pytest.mark.asyncio
async def test_answers_are_valid_under_random_schemas(either_engine: Any, plan_of: Any, ask: Any) -> None:
    engine, stopped = either_engine, 0
    for seed in range(40):
        schema = random_schema(random.Random(seed))
        answer = await ask(engine, plan_of(schema), f"document {seed}", max_tokens=1000)
        assert answer.error == ""
        if answer.finish_reason == "stop":
            stopped += 1
            jsonschema.validate(json.loads(answer.text), schema)
    assert stopped >= 38  # deep nests may run out of tokens


@pytest.mark.asyncio
async def test_blanks_do_not_make_it_invalid(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(compact_json=False), plan_of()
    await engine.start([plan])
    for number in range(10):
        answer = await ask(engine, plan, f"document {number}")
        jsonschema.validate(json.loads(answer.text), plan.acceptance)


@pytest.mark.asyncio
async def test_recursion_ends(xgrammar_engine: Any, plan_of: Any, ask: Any) -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name", "children"],
        "additionalProperties": False,
    }
    answers = [await ask(xgrammar_engine, plan_of(tree), f"tree {number}", max_tokens=2000) for number in range(20)]
    assert {answer.finish_reason for answer in answers} == {"stop"}


def timeless(completion: Completion) -> Completion:
    return replace(completion, seconds=0.0, queue_seconds=0.0)


@pytest.mark.asyncio
async def test_order_and_concurrency_change_nothing(engine_with: Any, plan_of: Any, ask: Any) -> None:
    plan = plan_of()
    users = [f"document {number}" for number in range(30)]
    one, other = engine_with(max_num_seqs=1), engine_with(max_num_seqs=7)
    for engine in (one, other):
        await engine.start([plan])
    serial = [timeless(await ask(one, plan, user)) for user in users]
    crowd = await asyncio.gather(*(ask(other, plan, user) for user in reversed(users)))
    assert [timeless(answer) for answer in reversed(crowd)] == serial
    assert len({answer.text for answer in serial}) > 25


@pytest.mark.asyncio
async def test_seeds_plans_and_prompts_each_make_another_answer(xgrammar_engine: Any, plan_of: Any, ask: Any) -> None:
    plan = plan_of()
    texts = [
        (await ask(xgrammar_engine, plan)).text,
        (await ask(xgrammar_engine, plan, seed=1)).text,
        (await ask(xgrammar_engine, plan, "another")).text,
        (await ask(xgrammar_engine, plan_of(name="other@1"))).text,
    ]
    assert len(set(texts)) == 4


@pytest.mark.asyncio
async def test_the_token_budget_ends_an_answer(xgrammar_engine: Any, plan_of: Any, ask: Any) -> None:
    whole = await ask(xgrammar_engine, plan_of(), token_ids=True)
    cut = await ask(xgrammar_engine, plan_of(), max_tokens=whole.output_tokens - 2, token_ids=True)
    assert cut.finish_reason == "length"
    assert cut.output_tokens == whole.output_tokens - 2
    assert whole.token_ids[: cut.output_tokens] == cut.token_ids
    exact = await ask(xgrammar_engine, plan_of(), max_tokens=whole.output_tokens)
    assert exact.finish_reason == "stop"


@pytest.mark.asyncio
async def test_a_prompt_that_leaves_no_room_is_told_with_the_numbers(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(max_model_len=300), plan_of()
    prompt = (await ask(engine, plan, max_tokens=1)).prompt_tokens
    assert (await ask(engine, plan, max_tokens=300 - prompt)).error == ""
    answer = await ask(engine, plan, max_tokens=301 - prompt)
    assert (answer.finish_reason, answer.error, answer.prompt_tokens) == ("error", "prompt_too_long", prompt)
    assert str(prompt) in answer.detail
    assert "300" in answer.detail


@pytest.mark.asyncio
async def test_a_refused_schema_is_told_and_stops_the_start(either_engine: Any, plan_of: Any, ask: Any) -> None:
    engine = either_engine
    bad = plan_of({"type": "array", "minItems": 1000, "maxItems": 100000}, name="bad@1")
    answer = await ask(engine, bad)
    assert (answer.finish_reason, answer.error) == ("error", "schema_refused")
    assert "refuses the schema" in answer.detail
    with pytest.raises(SchemaError, match=r"schema bad@1 .*refuses the schema"):
        await engine.start([plan_of(), bad])


@pytest.mark.asyncio
async def test_stop_does_not_prove_a_whole_answer(guidance_engine: Any, plan_of: Any, ask: Any) -> None:
    """llguidance 1.7.6 forces the control token for its literal text, as vLLM would see it."""
    answer = await ask(guidance_engine, plan_of({"const": "<|im_end|>"}))
    assert (answer.finish_reason, answer.text) == ("stop", '"')


@pytest.mark.asyncio
async def test_constrained_is_claimed_only_after_the_proof(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(), plan_of()
    assert not (await ask(engine, plan)).constrained
    await engine.start([plan])
    assert (await ask(engine, plan)).constrained


@pytest.mark.asyncio
async def test_without_constraint_it_chatters(xgrammar_engine: Any, plan_of: Any, ask: Any) -> None:
    answer = await ask(xgrammar_engine, plan_of(), constrained=False)
    assert not answer.constrained
    assert answer.finish_reason == "stop"
    fenced = answer.text.split("```json\n")[1].split("\n```")[0]
    assert fenced == (await ask(xgrammar_engine, plan_of())).text
    assert (await ask(xgrammar_engine, plan_of(), constrained=False, max_tokens=12)).finish_reason == "length"


@pytest.mark.asyncio
async def test_counts_scores_and_names_are_filled(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(), plan_of()
    first, second = await ask(engine, plan, token_ids=True, logprobs=0), await ask(engine, plan, "Bob")
    assert first.engine.startswith("sampler:smollm2-135m-instruct-")
    assert first.engine.endswith(":xgrammar@0.2.8")
    assert first.plan_digest == plan.digest
    assert first.output_tokens == len(first.token_ids) == len(first.logprobs)
    assert [next(iter(row)) for row in first.logprobs] == list(first.token_ids)
    assert all(value <= 0 for row in first.logprobs for value in row.values())
    assert first.cached_tokens == 0
    assert 0 < second.cached_tokens < second.prompt_tokens
    assert second.token_ids == second.logprobs == ()


@pytest.mark.asyncio
async def test_simulated_time_and_the_limit_of_requests(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(max_num_seqs=2, token_seconds=0.02), plan_of()
    await ask(engine, plan, max_tokens=1)
    began = time.perf_counter()
    answers = await asyncio.gather(*(ask(engine, plan, f"d{number}", max_tokens=5) for number in range(6)))
    assert time.perf_counter() - began > 0.28
    assert max(answer.queue_seconds for answer in answers) > 0.15
    assert min(answer.seconds for answer in answers) > 0.09


@pytest.mark.asyncio
async def test_a_long_answer_lets_other_tasks_run(xgrammar_engine: Any, plan_of: Any, ask: Any) -> None:
    long = plan_of({"type": "array", "items": {"type": "string", "minLength": 40}, "minItems": 60})
    await ask(xgrammar_engine, long, max_tokens=1)
    request = asyncio.ensure_future(ask(xgrammar_engine, long, max_tokens=1500))
    longest, last = 0.0, time.perf_counter()
    while not request.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    assert request.result().output_tokens > 300
    assert longest < 0.1
