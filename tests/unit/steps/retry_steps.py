"""What tests of retries build: steps with the given problems, configs from sections of a job."""

from __future__ import annotations

import time
from typing import Any

from support import attempt

from pipeline.job import ExtractConfig, JobConfig
from pipeline.records import Attempt, Draft, Problem
from pipeline.steps.retry import Step, may_retry


def asked(**sections: Any) -> ExtractConfig:
    return ExtractConfig.model_validate(sections)


def job(context: int = 4096, **sections: Any) -> JobConfig:
    base = {"name": "j", "input": {"path": "x", "schema": "a@1"}, "output": "o"}
    return JobConfig.model_validate({**base, "engine": {"engine": "sampler", "max_model_len": context}, **sections})


def step(*found: str | Problem, number: int = 1, tokens: int = 0, given: int = 0, parsed: bool = False) -> Step:
    problems = tuple(Problem(p, "", str(number), number) if isinstance(p, str) else p for p in found)
    base = attempt(number, "text" if tokens else "", tokens)
    values = {name: getattr(base, name) for name in Attempt.__dataclass_fields__}
    return Step(Attempt(**{**values, "max_tokens": given}), Draft(parsed=parsed, problems=problems))


def again(steps: list[Step], config: ExtractConfig) -> bool:
    return may_retry(steps, config, time.monotonic())


def cut(given: int, number: int = 1) -> Step:
    return step(Problem("truncated", "", f"cut after {given} tokens", number), number=number, tokens=given, given=given)
