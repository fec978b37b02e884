"""What is kept of one request: how it was decoded, what it cost, and the answer as it came."""

from __future__ import annotations

from pipeline.records import Attempt, Completion, Sampling


def attempt_of(completion: Completion, sampling: Sampling, number: int) -> Attempt:
    """The attempt of this number, from 1, by what was asked and what came."""
    return Attempt(
        number=number,
        engine=completion.engine,
        plan_digest=completion.plan_digest,
        constrained=completion.constrained,
        finish_reason=completion.finish_reason,
        error=completion.error,
        prompt_tokens=completion.prompt_tokens,
        cached_tokens=completion.cached_tokens,
        output_tokens=completion.output_tokens,
        queue_seconds=completion.queue_seconds,
        seconds=completion.seconds,
        raw_text=completion.text,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        seed=sampling.seed,
    )
