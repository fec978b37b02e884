"""A recording of plausible completions, made without a model: the true record of each receipt, compact."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.documents import SCHEMA, SCHEMAS, Receipt, receipts
from pipeline.engines.recorded import RecordingEngine
from pipeline.job import JobConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.prompt import render

TEXTS = 200
SAMPLING = Sampling(max_tokens=256)
CHARACTERS_PER_TOKEN = 3


class TruthEngine:
    """Answers each prompt that it knows with the record that is right."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._answers = answers

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        pass

    async def close(self) -> None:
        pass

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        text = self._answers[prompt.user]
        return Completion(
            text,
            "stop",
            constrained=True,
            engine="truth",
            plan_digest=plan.digest,
            prompt_tokens=(len(prompt.system) + len(prompt.user)) // CHARACTERS_PER_TOKEN,
            cached_tokens=len(prompt.system) // CHARACTERS_PER_TOKEN,
            output_tokens=len(text) // CHARACTERS_PER_TOKEN,
            seconds=1.0,
        )


def record(directory: Path, plan: DecodingPlan, known: Sequence[Receipt] = ()) -> list[Receipt]:
    """Record the answers to receipts under `plan`; returns the receipts: TEXTS of `bench.documents` unless given."""
    known = list(known) or receipts(TEXTS)
    prompts = [render(one.text, plan) for one in known]
    answers = [json.dumps(one.record, ensure_ascii=False, separators=(",", ":")) for one in known]
    inner = TruthEngine({prompt.user: answer for prompt, answer in zip(prompts, answers, strict=True)})

    async def play() -> None:
        engine = RecordingEngine(inner, directory)
        for prompt in prompts:
            await engine.generate(prompt, plan, SAMPLING)
        await engine.close()

    asyncio.run(play())
    return known


def recorded_job(folder: Path, name: str) -> JobConfig:
    """A job on `folder/<name>.jsonl` with the recording of `folder/recording`, all else at its default."""
    return JobConfig.model_validate(
        {
            "name": f"bench-{name}",
            "input": {"path": str(folder / f"{name}.jsonl"), "schema": SCHEMA},
            "output": str(folder / f"out-{name}"),
            "schemas": str(SCHEMAS),
            "engine": {"engine": "recorded", "recording": str(folder / "recording")},
        }
    )


def rows(known: Sequence[Receipt], count: int) -> list[tuple[str, str]]:
    """`count` input rows with distinct ids that cycle over the recorded texts."""
    return [(f"document-{number:07d}", known[number % len(known)].text) for number in range(count)]
