"""The job `inline`: a stranger's schema under one back end, from its JSON to its plan, all of it inside the sandbox.

Nothing of such a schema is looked at outside before it has passed here: what it costs to load, to judge with and to
compile is found out where it can be stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipeline.compile.report_budget import budget_job, measured, told
from pipeline.compile.trial import trial
from pipeline.errors import SchemaError
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import DocumentSchema, document_schema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.shape.shapes import Left
from pipeline.schema.transport import Transport
from pipeline.schema.validator import validator_of
from pipeline.serve_app.patterns import check_patterns
from pipeline.serve_app.tangle import check_tangle
from pipeline.steps.prompt import system_prompt

MAX_LOADING_SECONDS = 2.0
"""Processor time to load a schema and to build its validators, which whoever extracts has to spend again."""
MAX_GROWTH = 16
"""How many times its own bytes a schema's plan may take: references made plain, objects closed, a transport schema."""


def inline(tools: Any, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Payload: `source`, `name`, `backend`, `compact`, `policy`, `max_tokens`, `context`, `max_bytes`.

    Answers the fields of `check.Trial` that a choice rests on, and `plan` (fields of DecodingPlan) if `kind` is `ok`.
    Without a tokenizer nothing is compiled: the plan is made and not tried.
    """
    policy = Policy(**payload["policy"])
    try:
        schema = _loaded(payload["source"], payload["name"])
        answer = _tried(tools, schema, payload) if tools.tokenizer is not None else _untried()
        if answer["kind"] != "ok":
            return answer
        if tools.tokenizer is not None:
            _check_budget(tools, schema, policy, payload)
        plan = build_plan(
            schema,
            system_prompt(schema, policy.abstain),
            backend=payload["backend"],
            compact_json=payload["compact"],
            policy=policy,
            transport=_transport(answer) if "transport" in answer else None,
        )
    except SchemaError as error:
        return {"kind": error.code or "refused", "words": error.message}
    answer = {key: value for key, value in answer.items() if key != "transport"} | {"plan": asdict(plan)}
    most = MAX_GROWTH * payload["max_bytes"]
    if len(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")) > most:
        return {"kind": "too_large", "words": f"schema {schema.name} takes more than {most} bytes with its plan."}
    return answer


def _loaded(source: Any, name: str) -> DocumentSchema:
    started = time.process_time()
    schema = document_schema(source, name)
    for where in (schema.body, schema.asked):
        check_tangle(where)
    check_patterns(schema.body)
    validator_of(schema.body)
    validator_of(schema.asked)
    seconds = time.process_time() - started
    if seconds > MAX_LOADING_SECONDS:
        raise SchemaError(f"schema {name} takes {seconds:.1f} s to load: it says too much.", "slow")
    return schema


def _tried(tools: Any, schema: DocumentSchema, payload: Mapping[str, Any]) -> dict[str, Any]:
    asked = {key: payload[key] for key in ("backend", "compact", "policy")}
    answer = trial(tools, {"body": schema.asked, "raw": False, **asked})
    return {key: answer[key] for key in _KEPT if key in answer}


_KEPT = ("kind", "words", "transport", "left", "narrowed", "lost", "surprises", "admission", "grammar_bytes")


def _untried() -> dict[str, Any]:
    return {"kind": "ok", "words": "", "left": []}


def _check_budget(tools: Any, schema: DocumentSchema, policy: Policy, payload: Mapping[str, Any]) -> None:
    asked = budget_job(schema, policy, []).payload
    findings = told(measured(tools, asked), payload["max_tokens"], payload["context"])["findings"]
    refusals = [item["message"] for item in findings if item["severity"] == "refuse"]
    if refusals:
        raise SchemaError(f"schema {schema.name}: {' '.join(refusals)}", "budget")


def _transport(answer: Mapping[str, Any]) -> Transport:
    """As `check.trial_of` puts it together: sites that turned out not to be held are left, too."""
    left = [*answer["left"], *answer.get("surprises", ())]
    return Transport(answer["transport"], tuple(Left(*item) for item in left), tuple(answer["narrowed"]))


JOBS = {"inline": inline}
