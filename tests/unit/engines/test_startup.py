from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.engines.startup import prove_and_warm, prove_constraint, warm
from pipeline.errors import EngineError, SchemaError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan


class Scripted:
    """Answers every request with one completion, whatever the plan: an engine whose constraint is off."""

    def __init__(self, completion: Completion) -> None:
        self.completion = completion
        self.asked: list[tuple[Prompt, str, Sampling]] = []

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.asked.append((prompt, plan.name, sampling))
        return self.completion

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        await prove_and_warm(self, plans)

    async def close(self) -> None:
        self.asked.clear()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "completion",
    [
        Completion("Waves roll in, waves roll out.", "stop", False),
        Completion('{"answer": "the sea"}', "stop", False),
        Completion("", "stop", True),
        Completion('{"answer":"quartz vellum 4917-kx"}', "length", True),
        Completion('Here: {"answer":"quartz vellum 4917-kx"}', "stop", True),
        Completion("", "error", False, error="schema_refused", detail="no such keyword"),
    ],
)
async def test_an_engine_that_ignores_its_constraint_does_not_start(completion: Completion) -> None:
    with pytest.raises(EngineError, match="does not obey its schema constraint") as caught:
        await prove_constraint(Scripted(completion))
    assert completion.text in str(caught.value)
    assert completion.detail in str(caught.value)


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ['{"answer":"quartz vellum 4917-kx"}', '{ "answer": "quartz vellum 4917-kx" }'])
async def test_the_constant_is_the_proof(text: str) -> None:
    engine = Scripted(Completion(text, "stop", False))
    await prove_constraint(engine)
    ((prompt, _, sampling),) = engine.asked
    assert "quartz" not in prompt.system + prompt.user
    assert sampling.temperature == 0.0


@pytest.mark.asyncio
async def test_warming_asks_one_token_per_plan_with_its_own_prefix(plan_of: Any) -> None:
    engine = Scripted(Completion("{", "length", False))
    plans = [plan_of(name="a@1"), plan_of(name="b@1")]
    await warm(engine, plans)
    assert [(prompt.system, name, sampling.max_tokens) for prompt, name, sampling in engine.asked] == [
        (plan.prefix, plan.name, 1) for plan in plans
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "kind"),
    [("schema_refused", SchemaError), ("prompt_too_long", EngineError), ("engine_failed", EngineError)],
)
async def test_a_plan_that_cannot_be_served_is_named(plan_of: Any, error: str, kind: type[Exception]) -> None:
    engine = Scripted(Completion("", "error", False, error=error, detail="the compiler's words"))
    with pytest.raises(kind, match=r"schema bad@1.*the compiler's words"):
        await warm(engine, [plan_of(name="bad@1")])


@pytest.mark.asyncio
async def test_an_engine_that_is_asked_without_a_constraint_serves_although_its_constraint_is_off(plan_of: Any) -> None:
    engine = Scripted(Completion("Waves roll in.", "length", False))
    with pytest.raises(EngineError, match="does not obey"):
        await prove_and_warm(engine, [plan_of()])
    engine.asked.clear()
    await prove_and_warm(engine, [plan_of()], constrained=False)
    ((_, _, sampling),) = engine.asked
    assert not sampling.constrained
