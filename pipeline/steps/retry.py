"""Retry: whether a document gets another attempt, and what that attempt is told and given. Policy, no I/O.

An attempt is either an *answer* of the model or a *failure* of the infrastructure (`again = "infrastructure"`). The
document's budgets (attempts, tokens, the ladder's rungs, the same errors twice) look at answers alone; failures have a
budget of their own, are sent again as they were, and wait in between.
"""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.job import ExtractConfig, RetryConfig, RungConfig, WorkConfig
from pipeline.records import STATUSES, Attempt, Completion, Draft, Problem, Sampling
from pipeline.steps.codes import CODES, Again, again_of, cap_of
from pipeline.steps.prompt import MAX_FEEDBACK, MAX_MESSAGE

MAX_PAUSE = 30.0
"""Seconds that one wait after a failure takes at most."""

MIN_SHARE = 0.5
"""An answer that could have fewer tokens than this share of what the last one took is not asked for."""

MIN_ROOM = 1.25
"""Less room than this many times what a cut answer had is no room: it is told to be shorter instead."""

ADVICE = {
    "truncated": "keep it shorter",
    "repetition": "give each item once, and end",
    "runaway_whitespace": "write no blanks between values",
}
"""What feedback adds where the reason alone does not say what to do about it."""

_ORDER = ("parse", "schema", "rules", "ground")
_WORDS_AROUND = 200
"""Bytes, and so at most tokens, of the sentences that feedback stands between."""


NO_ANSWER = Completion("", "error", constrained=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt with its draft and the completion that it is from, as the loop in `extract` collects them."""

    attempt: Attempt
    draft: Draft
    completion: Completion = NO_ANSWER


def good_enough(draft: Draft, config: ExtractConfig) -> bool:
    """Nothing is left that another attempt could improve."""
    return draft.parsed and not _is_failure(draft) and not _worthwhile(draft, config)


def may_retry(steps: Sequence[Step], config: ExtractConfig, started: float) -> bool:
    """Whether the budgets and the last draft's problems allow one more attempt.

    `started` is when the document's first attempt began (time.monotonic seconds).
    """
    last, budget = steps[-1], config.retry
    if time.monotonic() - started >= budget.deadline_seconds:
        return False
    answers = answers_of(steps)
    if _is_failure(last.draft):
        return len(steps) - len(answers) <= budget.max_engine_failures
    if not _worthwhile(last.draft, config) or len(answers) >= budget.max_attempts or _repeats(answers, config):
        return False
    needed = max(1.0, MIN_SHARE * _spent(last.attempt))
    return min(_wanted(answers, config), _fits(answers, config, feedback(steps, config))) >= needed


def feedback(steps: Sequence[Step], config: ExtractConfig) -> tuple[Problem, ...]:
    """What the next attempt is told: the first few worthwhile problems of the last answer, those first that cost most.

    Nothing asks for a value that the model abstained from. An answer that was cut is not mentioned if the next one is
    given more room: then the prompt stays as it was, and the engine has all of it in its prefix cache.
    """
    answers = answers_of(steps)
    if not answers:
        return ()
    told = _worthwhile(answers[-1].draft, config)
    if _has_room(answers, config):
        told = [problem for problem in told if CODES[problem.code].again != "room"]
    return tuple(map(_with_advice, _first_few(told)))


def next_sampling(steps: Sequence[Step], config: ExtractConfig) -> Sampling:
    """How to decode the next attempt: as the ladder has it, within what is left of the token budget and, where the
    job's engine is known, of its context. After a failure it is that of the failed attempt."""
    answers, sampling = answers_of(steps), config.sampling
    rung = _rung(answers, config)
    tokens = min(_wanted(answers, config), _fits(answers, config, feedback(steps, config)))
    return Sampling(
        max_tokens=max(1, math.floor(tokens)),
        temperature=sampling.temperature if rung.temperature is None else rung.temperature,
        seed=sampling.seed + len(answers),
        logprobs=0 if config.policy.confidence else None,
        token_ids=config.policy.confidence,
        constrained=sampling.constrained,
        engine=rung.engine or "",
    )


def pause(steps: Sequence[Step], config: RetryConfig, started: float | None = None) -> float:
    """Seconds to wait before the next attempt: none after an answer; after failures a random part ("full jitter") of
    `backoff_seconds`, doubled with each, never past the deadline of a document that began at `started`.

    Source: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    if not _is_failure(steps[-1].draft):
        return 0.0
    failures = len(steps) - len(answers_of(steps))
    wait = random.uniform(0.0, min(MAX_PAUSE, config.backoff_seconds * 2.0 ** (failures - 1)))
    if started is None:
        return wait
    return max(0.0, min(wait, started + config.deadline_seconds - time.monotonic()))


def answers_of(steps: Sequence[Step]) -> list[Step]:
    """The attempts that were no failure of the infrastructure."""
    return [step for step in steps if not _is_failure(step.draft)]


def _is_failure(draft: Draft) -> bool:
    return any(again_of(problem) == "infrastructure" for problem in draft.problems)


def _worthwhile(draft: Draft, config: ExtractConfig) -> list[Problem]:
    """The problems that another answer could be without, in the order in which they were found."""
    abstained = [problem.pointer for problem in draft.problems if problem.code == "abstained"]
    return [
        problem
        for problem in draft.problems
        if _again(problem, config) in ("feedback", "room") and not _asks_for(problem, abstained)
    ]


def _again(problem: Problem, config: ExtractConfig) -> Again:
    if problem.code == "ungrounded":
        return "feedback" if config.policy.ground == "retry" and problem.severity != "observe" else "never"
    return again_of(problem)


def _asks_for(problem: Problem, abstained: Sequence[str]) -> bool:
    """Whether mending a problem could mean to fill in a value that the model abstained from: one at such a place, and
    a rule about any part of the record that holds one, since nobody knows which values a rule reads."""
    pointer = problem.pointer
    if any(pointer == place or pointer.startswith(f"{place}/") for place in abstained):
        return True
    return CODES[problem.code].layer == "rules" and any(place.startswith(f"{pointer}/") for place in abstained)


def _first_few(problems: Sequence[Problem]) -> list[Problem]:
    """Those first that leave the document worst off, by layer; of the same code in one list only then the next."""
    seen: Counter[tuple[str, str]] = Counter()
    ranked = []
    for number, problem in enumerate(problems):
        kind = (problem.code, "/".join("*" if part.isdecimal() else part for part in problem.pointer.split("/")))
        layer = CODES[problem.code].layer
        place = _ORDER.index(layer) if layer in _ORDER else len(_ORDER)
        ranked.append((seen[kind], -STATUSES.index(cap_of(problem)), place, number, problem))
        seen[kind] += 1
    return [problem for *_, problem in sorted(ranked, key=lambda item: item[:4])[:MAX_FEEDBACK]]


def _with_advice(problem: Problem) -> Problem:
    advice = ADVICE.get(problem.code, "")
    if advice in problem.message:
        return problem
    return dataclasses.replace(problem, message=f"{problem.message}; {advice}")


def _rung(answers: Sequence[Step], config: ExtractConfig) -> RungConfig:
    """How the next answer differs from the first one, which stands on no rung."""
    ladder = config.retry.ladder
    return ladder[min(len(answers), len(ladder)) - 1] if answers and ladder else RungConfig()


def _wanted(answers: Sequence[Step], config: ExtractConfig) -> float:
    """The tokens that the next answer should have, whatever is left: more after one that was cut for want of them,
    and never fewer than the last one had."""
    if not answers:
        return config.sampling.max_tokens
    had = answers[-1].attempt.max_tokens or config.sampling.max_tokens
    if _is_cut(answers[-1], config):
        return math.floor(had * _rung(answers, config).room)
    return max(had, config.sampling.max_tokens)


def _is_cut(step: Step, config: ExtractConfig) -> bool:
    return any(CODES[problem.code].again == "room" for problem in _worthwhile(step.draft, config))


def _has_room(answers: Sequence[Step], config: ExtractConfig) -> bool:
    """Whether the last answer was cut and the next one can have enough more tokens to make a difference."""
    if not _is_cut(answers[-1], config):
        return False
    had, wanted = answers[-1].attempt.max_tokens or config.sampling.max_tokens, _wanted(answers, config)
    fits = _fits(answers, config, ())
    return min(wanted, fits) > had and fits >= min(wanted, had * MIN_ROOM)


def _fits(answers: Sequence[Step], config: ExtractConfig, told: Sequence[Problem]) -> float:
    """The output tokens that the document may still be given: by its budget, and by the engine's context, of which
    the prompt takes what the first one took and at most a token for each byte of feedback."""
    budget = config.retry.max_output_tokens
    left = math.inf if budget is None else budget - sum(_spent(step.attempt) for step in answers)
    context = config.context_of(_rung(answers, config).engine or "") if isinstance(config, WorkConfig) else None
    prompt = answers[0].attempt.prompt_tokens if answers else 0
    if context is None or not prompt:
        return left
    lines = sum(4 + len(f"{p.pointer}: {p.message}"[:MAX_MESSAGE].encode("utf-8", "replace")) for p in told)
    return min(left, context - prompt - (lines + _WORDS_AROUND if told else 0))


def _spent(attempt: Attempt) -> int:
    """Output tokens of an attempt; all that it was allowed, if the engine does not say and there is text."""
    return attempt.output_tokens or (attempt.max_tokens if attempt.raw_text else 0)


def _repeats(answers: Sequence[Step], config: ExtractConfig) -> bool:
    """The last answer failed as an earlier one did, though it may have been warmer or from another engine: the next
    one would, too. Being cut again is another failure if there was more room."""
    last, errors = answers[-1], _error_set(answers[-1], config)
    is_cut = _is_cut(last, config)
    return any(
        errors == _error_set(step, config)
        and not (is_cut and last.attempt.max_tokens >= MIN_ROOM * step.attempt.max_tokens > 0)
        for step in answers[:-1]
    )


def _error_set(step: Step, config: ExtractConfig) -> frozenset[tuple[str, str, str]]:
    """Codes, places and reasons; that of a cut answer holds the tokens that it had, and is left out."""
    return frozenset(
        (problem.code, problem.pointer, "" if CODES[problem.code].again == "room" else problem.message)
        for problem in _worthwhile(step.draft, config)
    )
