"""No sequence of answers and failures, however odd, spends more than a document's budgets."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import completion, document, plan_of

from pipeline.flow import extract
from pipeline.job import ExtractConfig, JobConfig
from pipeline.records import STATUSES, Completion, Outcome, Prompt, Sampling
from pipeline.steps.prompt import MAX_FEEDBACK, MAX_MESSAGE

PROMPT_TOKENS = 50
TEXTS = [
    '{"vendor": "Ann", "total": 5, "li',
    '{"vendor": "Ann", "total": 5, "lines": ["' + "ha " * 40,
    '{"vendor": 5, "total": "x", "lines": 1, "date": "1", "more": 2}',
    '{"vendor": "Ann"}',
    "Sure: {}",
    "",
    "\ud800 {{{",
    '{"vendor": "Ann & Co", "date": "2024-02-29", "lines": [], "total": 19.9}',
]


class Odd:
    """Answers as it is told, within what it is given."""

    def __init__(self, script: list[Any]) -> None:
        self._script = script
        self.calls: list[tuple[Prompt, Sampling, Completion]] = []

    async def generate(self, prompt: Prompt, plan: Any, sampling: Sampling) -> Completion:
        text, reason, share, constrained = self._script[min(len(self.calls), len(self._script) - 1)]
        whole = reason == "length" or text == ""
        tokens = sampling.max_tokens if whole else max(1, int(share * sampling.max_tokens))
        values = {"output_tokens": tokens, "prompt_tokens": PROMPT_TOKENS, "constrained": constrained}
        answer = completion(text, reason, **values)
        self.calls.append((prompt, sampling, answer))
        return answer

    async def start(self, plans: Any) -> None: ...

    async def close(self) -> None: ...


SCRIPTS = st.lists(
    st.tuples(
        st.sampled_from(TEXTS),
        st.sampled_from(["stop", "stop", "length", "length", "abort", "error", "repetition", "odd"]),
        st.floats(0, 1),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
RUNGS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0, 2),
            "room": st.floats(1, 16),
            "engine": st.sampled_from(["big", "small"]),
        },
    ),
    max_size=3,
)


@st.composite
def configs(draw: Any) -> ExtractConfig:
    attempts = draw(st.integers(1, 6))
    retry = {
        "max_attempts": attempts,
        "max_engine_failures": draw(st.integers(0, 4)),
        "max_output_tokens": draw(st.none() | st.integers(1, 2000)),
        "ladder": draw(RUNGS)[: attempts - 1],
        "backoff_seconds": 0,
    }
    policy = {"degraded": draw(st.booleans()), "ground": draw(st.sampled_from(["observe", "retry"]))}
    tokens = draw(st.integers(1, 700))
    engines = {name: {"engine": "sampler", "max_model_len": draw(st.integers(750, 3000))} for name in ("big", "small")}
    engine = {"engine": "sampler", "max_model_len": draw(st.integers(750, 3000))}
    base = {"name": "j", "input": {"path": "x", "schema": "a@1"}, "output": "o"}
    common = {"retry": retry, "policy": policy, "sampling": {"max_tokens": tokens}}
    return JobConfig.model_validate({**base, "engine": engine, "engines": engines, **common})


def run(script: list[Any], config: ExtractConfig) -> tuple[Odd, Outcome]:
    engine = Odd(script)
    return engine, asyncio.run(extract(document(), plan_of(), engine, config))


def is_failure(answer: Completion) -> bool:
    """As the documentation has it: an abort, an error, or no JSON although the constraint was in force."""
    return answer.finish_reason not in ("stop", "length", "repetition") or bool(answer.error)


@settings(max_examples=40)
@given(SCRIPTS, configs())
def test_no_sequence_spends_more_than_its_budgets(script: list[Any], config: ExtractConfig) -> None:
    engine, outcome = run(script, config)
    budget = config.retry
    assert 1 <= len(engine.calls) == len(outcome.attempts) <= budget.max_attempts + budget.max_engine_failures
    assert [attempt.number for attempt in outcome.attempts] == list(range(1, len(engine.calls) + 1))
    blamed = {problem.attempt for problem in outcome.problems if problem.code == "constraint_failed"}
    spent = 0
    for number, (prompt, sampling, answer) in enumerate(engine.calls, 1):
        if budget.max_output_tokens is not None:
            assert spent + sampling.max_tokens <= budget.max_output_tokens
        if number > 1 and isinstance(config, JobConfig):
            assert PROMPT_TOKENS + sampling.max_tokens <= (config.context_of(sampling.engine) or 0)
        spent += 0 if is_failure(answer) or number in blamed else answer.output_tokens
        added = prompt.user[len(engine.calls[0][0].user) :]
        assert prompt.user.startswith(engine.calls[0][0].user)
        assert len(added) <= 300 + MAX_FEEDBACK * (MAX_MESSAGE + 3)


@settings(max_examples=40)
@given(SCRIPTS, configs())
def test_more_attempts_never_make_a_document_worse(script: list[Any], config: ExtractConfig) -> None:
    _, outcome = run(script, config)
    once = config.model_copy(update={"retry": config.retry.model_copy(update={"max_attempts": 1})})
    _, first = run(script, once)
    assert STATUSES.index(outcome.status) <= STATUSES.index(first.status)


@settings(max_examples=40)
@given(SCRIPTS, configs())
def test_a_sequence_is_the_same_every_time(script: list[Any], config: ExtractConfig) -> None:
    (one, first), (other, second) = run(script, config), run(script, config)
    assert [call[:2] for call in one.calls] == [call[:2] for call in other.calls]
    assert first == second


def test_calls_are_at_most_documents_times_attempts() -> None:
    config = ExtractConfig.model_validate({"retry": {"max_attempts": 4}})
    scripts = [[(text, "stop", 0.1, False)] for text in TEXTS] * 5
    calls = sum(len(run(script, config)[0].calls) for script in scripts)
    assert calls <= len(scripts) * config.retry.max_attempts
