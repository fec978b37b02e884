"""A schema with all kinds of leaves, and what must hold of the status of any outcome."""

from __future__ import annotations

import json
from typing import Any

from support import codes

from pipeline.records import Outcome
from pipeline.steps.codes import CODES, cap_of

LEAF_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "tags": {"type": "array", "items": {"type": "string"}},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["sku"],
            },
        },
        "total": {"type": ["number", "null"]},
        "date": {"type": "string", "format": "date"},
        "ok": {"type": "boolean"},
    },
    "required": ["name", "total"],
}


def no_better_than_earned(outcome: Outcome) -> None:
    """A record that a problem caps is not called better, and an outcome below valid says why."""
    json.dumps(outcome.record, allow_nan=False, ensure_ascii=False).encode()
    assert {problem.code for problem in outcome.problems} <= CODES.keys()
    assert "pipeline_failed" not in codes(outcome), outcome.problems
    assert outcome.status == "valid" or outcome.problems
    if outcome.status == "valid":
        mine = [p for p in outcome.problems if p.attempt in (0, outcome.record_attempt)]
        assert all(cap_of(problem) == "valid" for problem in mine)
