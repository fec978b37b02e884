"""A document's attempts: their number and tokens stay within the budgets, and what they are told is short."""

from __future__ import annotations

import json
from typing import Any

from earned import LEAF_SCHEMA, no_better_than_earned
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Answers, completion, document, plan_of
from support import extracted as run_document

from pipeline.job import RungConfig
from pipeline.records import Completion
from pipeline.steps.codes import again_of
from pipeline.steps.prompt import MAX_FEEDBACK, MAX_MESSAGE

ANSWERS = st.sampled_from(
    [
        completion('{"name": 1}'),
        completion('{"name": "a", "total": "b"}'),
        completion('{"name": "a", "tot', "length"),
        completion("no", "stop"),
        completion("", "stop"),
        completion("", "abort"),
        completion("", "error", error="engine_failed"),
        completion("x" * 30, "repetition"),
        completion('{"name": "a", "total": 1}', constrained=True),
        completion("{", "stop", constrained=True),
    ]
)


@given(
    st.lists(ANSWERS, min_size=1, max_size=9),
    st.integers(1, 5),
    st.integers(0, 3),
    st.none() | st.integers(1, 60),
    st.lists(st.builds(RungConfig, temperature=st.none() | st.floats(0, 2), room=st.floats(1, 16)), max_size=3),
)
@settings(max_examples=150)
def test_a_retry_sequence_stays_within_its_budgets(
    answers: list[Completion], most: int, failures: int, tokens: int | None, ladder: list[RungConfig]
) -> None:
    budgets = {"max_attempts": most, "max_engine_failures": failures, "max_output_tokens": tokens}
    engine = Answers(*answers)
    outcome = run_document(engine, plan_of(LEAF_SCHEMA), ladder=tuple(ladder), backoff_seconds=0, **budgets)
    no_better_than_earned(outcome)
    assert len(outcome.attempts) == len(engine.samplings)
    infrastructure = {p.attempt for p in outcome.problems if again_of(p) == "infrastructure"}
    own = [attempt for attempt in outcome.attempts if attempt.number not in infrastructure]
    assert len(own) <= most
    assert len(infrastructure) <= failures + 1
    if tokens is not None:
        spent = 0
        for attempt, sampling in zip(outcome.attempts, engine.samplings, strict=True):
            assert 1 <= sampling.max_tokens <= tokens - spent
            spent += attempt.output_tokens if attempt in own else 0
    assert [attempt.number for attempt in outcome.attempts] == list(range(1, len(engine.samplings) + 1))


@given(
    st.dictionaries(st.text(max_size=60), st.text(max_size=400) | st.integers(), min_size=1, max_size=30),
    st.text(min_size=1, max_size=40),
)
@settings(max_examples=60)
def test_feedback_is_short_follows_the_document_and_quotes_no_value(answer: dict[str, Any], text: str) -> None:
    engine = Answers(json.dumps(answer))
    run_document(engine, plan_of(LEAF_SCHEMA), document(text), backoff_seconds=0)
    first = engine.prompts[0]
    for prompt in engine.prompts[1:]:
        assert prompt.system == first.system
        assert prompt.user.startswith(first.user.rstrip("\n"))
        told = prompt.user[len(first.user) :]
        lines = [line for line in told.split("\n") if line.startswith("- ")]
        assert 1 <= len(lines) <= MAX_FEEDBACK
        assert len(told) <= MAX_FEEDBACK * (MAX_MESSAGE + 3) + 200
        assert not any(isinstance(v, str) and len(v) > 20 and v in told for v in answer.values())
