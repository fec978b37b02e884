"""Kept: the answers that a run's row holds, played again in their order. For bug reports: no model, no recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

_NOT_KEPT = "(not kept)"


class KeptEngine:
    """Plays the `attempts` of one row, whatever it is asked.

    A row keeps no reasoning, no tokens and no log probabilities; that there was text in the reasoning channel, and the
    words of a refusal or of an engine's error, are in its problems.
    """

    def __init__(self, attempts: Sequence[Mapping[str, Any]], problems: Sequence[Mapping[str, Any]]) -> None:
        self._answers = [_completion(attempt, problems) for attempt in attempts]
        self._played = 0

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Nothing is to be started."""

    async def close(self) -> None:
        """Nothing is held."""

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """The next answer; `recording_missing` after the last one."""
        self._played += 1
        if self._played <= len(self._answers):
            return self._answers[self._played - 1]
        detail = f"the run's row holds {len(self._answers)} answers; now another one is asked for"
        return Completion("", "error", False, "kept", plan.digest, error="recording_missing", detail=detail)


def _completion(attempt: Mapping[str, Any], problems: Sequence[Mapping[str, Any]]) -> Completion:
    told = {p["code"]: p["message"] for p in reversed(problems) if p["attempt"] == attempt["number"]}
    words = [p["message"] for p in problems if p["attempt"] == attempt["number"] and p["layer"] == "engine"]
    return Completion(
        text=attempt["raw_text"],
        finish_reason=attempt["finish_reason"],
        constrained=attempt["constrained"],
        engine=attempt["engine"],
        plan_digest=attempt["plan_digest"],
        prompt_tokens=attempt["prompt_tokens"],
        cached_tokens=attempt["cached_tokens"],
        output_tokens=attempt["output_tokens"],
        queue_seconds=attempt["queue_seconds"],
        seconds=attempt["seconds"],
        error=attempt["error"],
        detail=words[0] if words else "",
        reasoning=_NOT_KEPT if "channel_mismatch" in told or "reasoning" in told.get("truncated", "") else "",
        refusal=told.get("model_refused", ""),
    )
