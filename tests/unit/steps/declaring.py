"""Schemas that declare rules, and what checking a record under them finds."""

from __future__ import annotations

from typing import Any

from support import document, plan_of

from pipeline.job import ExtractConfig
from pipeline.records import Document, Draft, Problem
from pipeline.schema.annotations import check_annotations
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.rules import check

MONEY = {
    "type": "object",
    "properties": {
        "subtotal": {"type": "number"},
        "tax": {"type": ["number", "null"]},
        "total": {"type": "number"},
        "issued": {"type": "string"},
        "due": {"type": ["string", "null"]},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "amount": {"type": "number"}},
                "x-validations": [{"rule": "self.amount >= 0", "message": "is negative", "pointer": "/amount"}],
            },
            "x-unique-by": ["/name"],
        },
    },
    "x-validations": [{"rule": "self.total == self.subtotal + self.tax", "message": "adds up", "pointer": "/total"}],
    "x-order": ["/issued", "/due"],
}
RIGHT = {"subtotal": 10.1, "tax": 0.2, "total": 10.3}


def found(body: Any, value: Any, doc: Document | None = None, config: Any = None, **draft: Any) -> list[Problem]:
    check_annotations(body)
    return judged(plan_of(body), Draft(value, True, **draft), doc, config)


def judged(plan: DecodingPlan, draft: Draft, doc: Any = None, config: Any = None, lookups: Any = None) -> list[Problem]:
    after = check(draft, doc or document(), plan, config or ExtractConfig(), lookups or {}, 1)
    assert after.problems[: len(draft.problems)] == draft.problems
    return list(after.problems[len(draft.problems) :])


def rules(*texts: str, **more: Any) -> dict[str, Any]:
    return {"x-validations": [{"rule": text, "message": text, **more} for text in texts]}
