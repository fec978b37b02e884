"""The budget job: tokens of a schema's answers and of its prompt, counted inside the sandbox by the real tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from pipeline.compile.check import LIMITS
from pipeline.compile.sandbox import Job
from pipeline.engines.chat import ChatTokenizer
from pipeline.errors import EngineError
from pipeline.records import JsonValue, Prompt
from pipeline.schema.asked import as_asked
from pipeline.schema.budget.judge import judge
from pipeline.schema.budget.measure import Budget, budget
from pipeline.schema.plan import NO_PLAN
from pipeline.schema.probe.minimal import TooLargeError
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Policy, apply
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER
from pipeline.steps.prompt import render, system_prompt

MAX_SAMPLES = 500
"""Sample records that travel, evenly spread over those given: as many as are counted."""


def budget_job(schema: DocumentSchema, policy: Policy, samples: list[JsonValue]) -> Job:
    """The job that measures a schema; `samples` are records of real documents, as they were written."""
    plan = replace(NO_PLAN, name=schema.name, prefix=system_prompt(schema, policy.abstain))
    prompt = render("", plan)
    step = max(1, -(-len(samples) // MAX_SAMPLES))
    spread = samples[::step]
    payload = {
        "body": schema.asked,
        "policy": asdict(policy),
        "system": prompt.system,
        "user": prompt.user,
        "samples": spread if schema.asked is schema.body else [as_asked(schema.body, sample) for sample in spread],
        "examples": [example.record for example in schema.examples],
    }
    return Job("budget", payload, LIMITS)


def measured(tools: Any, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The job `budget`. Payload: `body`, `policy`, `system` and `user` (the prompt), `samples`, `examples`.

    Answers `budget` (the fields of Budget, or None with `words`), `system_tokens` of the message that all documents
    share, and `prompt_tokens` of the whole prompt with an empty document (None if the model has no chat template).
    """
    answer: dict[str, Any] = {"kind": "ok", "words": "", "budget": None, **_prompt_tokens(tools, payload)}
    shapes, _ = apply(read(payload["body"]), Policy(**payload["policy"]))
    if shapes.root == NEVER:
        return answer | {"words": "no document can satisfy this schema"}

    def count(text: str) -> int:
        return len(tools.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    try:
        found = budget(shapes, payload["body"], count, payload["samples"], payload["examples"])
    except TooLargeError as error:
        return answer | {"words": str(error)}
    return answer | {"budget": asdict(found)}


def _prompt_tokens(tools: Any, payload: Mapping[str, Any]) -> dict[str, int | None]:
    try:
        chat = ChatTokenizer(tools.tokenizer.name_or_path)
    except EngineError:  # it says so to whoever starts an engine; a schema is not to blame
        return {"system_tokens": None, "prompt_tokens": None}
    system, user = payload["system"], payload["user"]
    return {"system_tokens": len(chat.text_ids(system)), "prompt_tokens": len(chat.encode(Prompt(system, user)))}


def told(answer: Mapping[str, Any], max_tokens: int | None, context: int | None) -> dict[str, Any]:
    """What the report says of an answer: the numbers, and findings if a job's `max_tokens` is known."""
    prompt = {name: answer.get(name) for name in ("system_tokens", "prompt_tokens")}
    fields = answer.get("budget")
    if fields is None:
        words = answer["words"] or answer["kind"]
        return {"numbers": None, **prompt, "max_tokens": max_tokens, "findings": [], "words": words}
    lists = {name: tuple(fields[name]) for name in ("unbounded_at", "sample_tokens")}
    found = Budget(**{**fields, **lists})
    findings: list[dict[str, str]] = []
    if max_tokens is not None:
        size = prompt["prompt_tokens"] or 0
        judged = judge(found, max_tokens=max_tokens, prompt_tokens=size, context=context)
        findings = [asdict(finding) for finding in judged]
    return {"numbers": found.to_json(), **prompt, "max_tokens": max_tokens, "findings": findings, "words": ""}
