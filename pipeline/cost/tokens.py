"""Tokens: what the documents of one schema come to, over all their attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.compile.plans import max_tokens_of
from pipeline.cost.attempts import attempts_of
from pipeline.cost.earlier import Measured
from pipeline.cost.estimate import Estimate, added, point
from pipeline.cost.given import Given
from pipeline.cost.sample import Sampled
from pipeline.job import JobConfig


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a schema, or of all. `requests` are the answers of the `asked` documents, `first_prompts` the
    prompt tokens of their first ones, `prompts` of all, of which `cached` need not be computed; `attempts` and
    `output` are a document's answers and an answer's tokens."""

    asked: Estimate
    attempts: Estimate
    output: Estimate
    requests: Estimate
    first_prompts: Estimate
    prompts: Estimate
    cached: Estimate
    outputs: Estimate

    @property
    def uncached(self) -> Estimate:
        """Prompt tokens that have to be computed."""
        prompts, cached = self.prompts, self.cached
        low, high = max(0.0, prompts.low - cached.high), max(0.0, prompts.high - cached.low)
        value = max(0.0, prompts.value - cached.value)
        return Estimate(value, min(low, value), high, cached.basis)

    def to_json(self) -> dict[str, Any]:
        """The estimates as plain JSON values."""
        return {name: getattr(self, name).to_json() for name in self.__slots__}


def tokens_of(
    job: JobConfig, found: Sampled, budget: Mapping[str, Any] | None, measured: Measured | None, given: Given
) -> Tokens:
    """What a sample of a schema stands for: its budget, an earlier run and given figures say what a sample cannot."""
    attempts = attempts_of(_success(measured, given), job.retry.max_attempts)
    output = _output(job, budget, measured, given)
    first, asked = found.prompt_tokens, found.asked
    requests, prompts = asked.times(attempts), first.times(attempts)
    cached = prompts.times(_cached(job, found, asked, attempts, measured))
    return Tokens(asked, attempts, output, requests, first, prompts, cached, requests.times(output))


def together(parts: Sequence[Tokens]) -> Tokens:
    """The tokens of all schemas; `attempts` and `output` are means."""
    sums = {
        name: added(getattr(part, name) for part in parts)
        for name in ("asked", "requests", "first_prompts", "prompts", "cached", "outputs")
    }
    attempts = _mean(sums["requests"], sums["asked"])
    return Tokens(attempts=attempts, output=_mean(sums["outputs"], sums["requests"]), **sums)


def _mean(total: Estimate, of: Estimate) -> Estimate:
    """A mean whose interval is the total's: that of its denominator is within it already."""
    if not of.value:
        return point(0.0, total.basis)
    return Estimate(total.value / of.value, total.low / of.value, total.high / of.value, total.basis)


def _success(measured: Measured | None, given: Given) -> Estimate | None:
    if given.success is not None:
        return point(given.success, "given")
    return measured.success if measured else None


def _output(job: JobConfig, budget: Mapping[str, Any] | None, measured: Measured | None, given: Given) -> Estimate:
    """Tokens of an answer: given, measured, or those that legal records take, from the shortest to the 99th
    percentile. No answer has more than the job allows."""
    most = float(max_tokens_of(job))
    if given.output_tokens is not None:
        return point(min(most, given.output_tokens), "given")
    if measured and measured.output_tokens:
        return measured.output_tokens
    if budget is None:
        return Estimate(most, 1.0, most, "assumed")
    typical = Estimate(budget["typical_tokens"], budget["shortest_tokens"], budget["p99_tokens"], "assumed")
    return typical.through(lambda tokens: min(most, tokens))


def _cached(job: JobConfig, found: Sampled, asked: Estimate, attempts: Estimate, measured: Measured | None) -> Estimate:
    """The share of prompt tokens that an engine need not compute again: measured, or at best what all prompts begin
    with and, for another attempt, the whole prompt; nothing of a server that says nothing of a cache."""
    if measured and measured.cached:
        return measured.cached
    if not asked.value or not found.prompt_tokens.value:
        return point(0.0, "assumed")
    prompt = found.prompt_tokens.value / asked.value
    first = min(1.0, found.prefix / prompt)
    best = (first + attempts.value - 1) / attempts.value
    off = job.engine.engine == "http" or getattr(job.engine, "engine_args", {}).get("enable_prefix_caching") is False
    return Estimate(0.0 if off else best, 0.0, best, "assumed")
