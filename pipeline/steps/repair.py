"""Repair: make JSON of a finished but malformed answer, and leave a trace of every change.

Only answers that ended with `stop` off the constrained path get here. Taking wrapper prose or fences away leaves the
values as the model wrote them; whatever json-repair changes makes the document degraded at best.
"""

from __future__ import annotations

import dataclasses
import re

from pipeline.records import Completion, Draft, Problem, Repair
from pipeline.steps.parse import Unparsable, check_bounds, loads

MAX_REPAIRABLE_CHARACTERS = 1 << 16
MAX_NAMED_REPAIRS = 20
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)


def repair(draft: Draft, completion: Completion, attempt: int) -> Draft:
    """The draft with a value, where one can be had; otherwise the draft as it came."""
    if draft.parsed or completion.finish_reason != "stop" or [p.code for p in draft.problems] != ["not_json"]:
        return draft
    candidate = _unwrap(completion.text)
    if candidate is None:
        return draft
    around = len(completion.text.strip()) - len(candidate)
    repairs = [Repair("wrapper_removed", detail=f"{around} characters around the JSON")] if around else []
    try:
        return Draft(value=loads(candidate), parsed=True, repairs=tuple(repairs))
    except Unparsable as error:
        if error.code != "not_json":
            return dataclasses.replace(draft, problems=(Problem(error.code, message=str(error), attempt=attempt),))
    return _with_json_repair(draft, candidate, repairs, attempt)


def _unwrap(text: str) -> str | None:
    """The one JSON candidate in an answer: the only fenced block, or from the first bracket on. None if ambiguous."""
    blocks = _FENCED.findall(text)
    if len(blocks) > 1:
        return None
    inner = (blocks[0] if blocks else text).strip()
    start = min((i for i in (inner.find("{"), inner.find("[")) if i >= 0), default=-1)
    if start < 0:
        return None
    end = max(inner.rfind("}"), inner.rfind("]"))
    return inner[start : end + 1] if end > start else inner[start:]


def _with_json_repair(draft: Draft, text: str, repairs: list[Repair], attempt: int) -> Draft:
    import json_repair

    if len(text) > MAX_REPAIRABLE_CHARACTERS:
        return draft
    try:
        check_bounds(text)
        result = json_repair.loads(text, skip_json_loads=True, logging=True)
    except (Unparsable, ValueError, RecursionError, IndexError, TypeError, AttributeError) as error:
        # json-repair promises to raise nothing; its issue tracker knows better. The document keeps its problem.
        return dataclasses.replace(draft, repairs=(Repair("repair_failed", detail=repr(error)[:200]),))
    value, log = result if isinstance(result, tuple) else (result, [])
    if not isinstance(value, dict | list) or not value:
        return draft
    named = [Repair("json_repair", detail=str(entry.get("text", entry))[:200]) for entry in log[:MAX_NAMED_REPAIRS]]
    if len(log) > MAX_NAMED_REPAIRS:
        named.append(Repair("json_repair", detail=f"{len(log) - MAX_NAMED_REPAIRS} further changes"))
    problem = Problem("json_repaired", message=f"{len(log)} changes made the answer JSON", attempt=attempt)
    return Draft(value=value, parsed=True, problems=(problem,), repairs=(*repairs, *named))
