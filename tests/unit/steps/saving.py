"""What layer 3 makes of an answer, for its tests."""

from __future__ import annotations

import json
from typing import Any

from support import RECEIPT, attempt, completion, plan_of

from pipeline.records import Draft
from pipeline.steps.parse import parse
from pipeline.steps.retry import Step
from pipeline.steps.salvage import salvage
from pipeline.steps.validate import validate

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "place": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                    "required": ["city", "zip"],
                },
                {"type": "null"},
            ]
        },
        "rows": {
            "type": "array",
            "minItems": 2,
            "items": {
                "type": "object",
                "properties": {"n": {"type": "string"}, "v": {"type": "number"}, "note": {"maxLength": 3}},
                "required": ["n", "v"],
            },
        },
    },
    "required": ["id", "place"],
}


def saved(text: str, body: Any = RECEIPT, reason: str = "length") -> Draft | None:
    return salvage(Step(attempt(text=text, finish_reason=reason), parse(completion(text, reason), 1)), plan_of(body))


def salvaged(value: Any, body: Any) -> Draft | None:
    plan = plan_of(body)
    draft = validate(parse(completion(value), 1), plan, 1)
    return salvage(Step(attempt(text=json.dumps(value)), draft), plan)


def told(draft: Draft | None) -> set[tuple[str, str]]:
    return {(problem.code, problem.pointer) for problem in draft.problems} if draft else set()
