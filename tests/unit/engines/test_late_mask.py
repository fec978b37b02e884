"""The fault `late_mask`: a mask of the state before, and an engine that does not notice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pipeline.engines.faults import LateMask
from pipeline.engines.grammar import Grammar
from pipeline.engines.models import vocabulary_size
from pipeline.flow import extract
from pipeline.job import ExtractConfig, Fault, RetryConfig, SamplingConfig
from pipeline.records import Document

LATE = Fault(kind="late_mask", share=1.0)


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
def test_each_mask_is_the_one_of_the_token_before(backend: Any, chat: Any, model: str, plan_of: Any) -> None:
    grammar = Grammar(chat.tokenizer, backend, True, vocabulary_size(model))
    honest, late = grammar.matcher(plan_of().transport), LateMask(grammar.matcher(plan_of().transport))
    masks = []
    for token in chat.text_ids('{"name":"Ann","age":3'):
        masks.append(honest.mask().copy())
        assert (late.mask() == masks[max(0, len(masks) - 2)]).all()
        assert honest.accept(token) and late.accept(token)
    assert any((one != other).any() for one, other in pairwise(masks))


@pytest.mark.asyncio
async def test_its_answers_pass_for_constrained_and_no_record_comes_of_them(engine_with: Any, plan_of: Any) -> None:
    engine, plan = engine_with(LATE), plan_of()
    await engine.start([plan])
    config = ExtractConfig(sampling=SamplingConfig(max_tokens=60), retry=RetryConfig(max_attempts=1))
    outcome = await extract(Document("d1", "Ann, 30", "d#1", plan.name), plan, engine, config)
    assert outcome.status == "rejected" and outcome.record is None
    assert all(attempt.constrained for attempt in outcome.attempts)
