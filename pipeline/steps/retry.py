"""Retry: whether a document gets another attempt, and what that attempt is told. Policy, no I/O."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.job import ExtractConfig, RetryConfig, RungConfig
from pipeline.records import Attempt, Draft, Problem, Sampling
from pipeline.steps.codes import CODES, Again, again_of


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt with its draft, as the loop in `extract` collects them."""

    attempt: Attempt
    draft: Draft


def good_enough(draft: Draft, config: ExtractConfig) -> bool:
    """Nothing is left that another attempt could improve."""
    return draft.parsed and all(_again(problem, config) == "never" for problem in draft.problems)


def may_retry(steps: Sequence[Step], config: ExtractConfig, started: float) -> bool:
    """Whether the budgets and the last draft's problems allow one more attempt.

    `started` is when the document's first attempt began (time.monotonic seconds). Infrastructure failures have a
    budget of their own and do not count as the document's attempts.
    """
    last, budget = steps[-1].draft, config.retry
    again = {_again(problem, config) for problem in last.problems}
    if "infrastructure" in again:
        return _failures(steps) <= budget.max_engine_failures and _time_left(budget, started)
    if not again & {"feedback", "room"} or len(steps) - _failures(steps) >= budget.max_attempts:
        return False
    if _tokens_left(steps, budget) <= 0:
        return False
    return _time_left(budget, started) and not _repeats(steps)


def pause(steps: Sequence[Step], config: RetryConfig) -> float:
    """Seconds to wait before the next attempt."""
    return 0.0


def _again(problem: Problem, config: ExtractConfig) -> Again:
    if problem.code == "ungrounded" and config.policy.ground == "retry":
        return "feedback"
    return again_of(problem)


def feedback(steps: Sequence[Step], config: ExtractConfig) -> tuple[Problem, ...]:
    """What the next attempt is told: the worthwhile problems of the last draft that was the model's own doing."""
    for step in reversed(steps):
        if not _is_failure(step):
            return tuple(problem for problem in step.draft.problems if _again(problem, config) in ("feedback", "room"))
    return ()


def next_sampling(steps: Sequence[Step], config: ExtractConfig) -> Sampling:
    """How to decode the next attempt: within what is left of the token budget, and maybe warmer after an answer that
    was not accepted. Each attempt has its own seed."""
    answered = any(not _is_failure(step) for step in steps)
    rung = config.retry.ladder[-1] if config.retry.ladder else RungConfig()
    warmer = config.sampling.temperature if rung.temperature is None else rung.temperature
    return Sampling(
        max_tokens=int(min(config.sampling.max_tokens, _tokens_left(steps, config.retry))),
        temperature=warmer if answered else config.sampling.temperature,
        seed=config.sampling.seed + len(steps),
        constrained=config.sampling.constrained,
    )


def _tokens_left(steps: Sequence[Step], config: RetryConfig) -> float:
    """Output tokens that the document may still be given; those of infrastructure failures are not its own."""
    if config.max_output_tokens is None:
        return math.inf
    return config.max_output_tokens - sum(step.attempt.output_tokens for step in steps if not _is_failure(step))


def _repeats(steps: Sequence[Step]) -> bool:
    """The last two answers of the model failed in the same way: a third would too."""
    answers = [step for step in steps if not _is_failure(step)]
    return len(answers) > 1 and _error_set(answers[-1]) == _error_set(answers[-2])


def _error_set(step: Step) -> frozenset[tuple[str, str, str]]:
    return frozenset((problem.code, problem.pointer, problem.message) for problem in step.draft.problems)


def _is_failure(step: Step) -> bool:
    return any(CODES[problem.code].again == "infrastructure" for problem in step.draft.problems)


def _failures(steps: Sequence[Step]) -> int:
    return sum(map(_is_failure, steps))


def _time_left(config: RetryConfig, started: float) -> bool:
    return time.monotonic() - started < config.deadline_seconds
