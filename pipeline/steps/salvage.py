"""Salvage: layer 3. Keep the top-level members that are certain, name each one that is not, invent nothing.

A member is certain if the text shows where it ends and the record without the others satisfies the schema, but for
members that are missing. A list that was cut is not kept in part: nobody could tell it from a complete one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.records import Draft, Problem, Repair
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.walk import escape, unescape
from pipeline.steps.codes import CODES
from pipeline.steps.parse import Unparsable, check_bounds, loads
from pipeline.steps.retry import Step
from pipeline.steps.validate import find_problems, judge_of

_BLANK = " \t\r\n"


def salvage(step: Step, plan: DecodingPlan) -> Draft | None:
    """What can be kept of one attempt, marked `salvaged`, or None if that is nothing."""
    draft = step.draft
    codes = [CODES[problem.code] for problem in draft.problems]
    if not any(code.salvageable for code in codes):
        return None
    if any(code.cap == "rejected" and not code.salvageable for code in codes):
        return None
    members = draft.value if draft.parsed else finished_members(step.attempt.raw_text)
    if not isinstance(members, dict) or not _is_record(plan.acceptance):
        return None
    cut = [] if draft.parsed else [name for name in _declared(plan.acceptance) if name not in members]
    kept, dropped = _drop_invalid(members, plan)
    if not kept:
        return None
    problems = [Problem("field_dropped", f"/{escape(name)}", reason, step.attempt.number) for name, reason in dropped]
    problems += [
        Problem("required_missing", f"/{escape(name)}", "required, but not certain", step.attempt.number)
        for name in plan.acceptance.get("required", ())
        if name not in kept
    ]
    reason = "not in the part of the answer that is certain"
    repairs = [Repair("salvaged", f"/{escape(name)}", reason, step.attempt.number) for name in cut]
    return Draft(
        value=kept,
        parsed=True,
        salvaged=True,
        problems=(*draft.problems, *problems),
        repairs=(*draft.repairs, *repairs),
    )


def finished_members(text: str) -> dict[str, Any]:
    """The members of a top-level object that the text shows to be finished: a comma or the brace follows them.

    `{"a": 1, "b": "x` gives {"a": 1}; `{"a": 12` gives {}, since more digits may have followed. Text with anything
    before or after the object, or with a repeated key, gives {}.
    """
    members: dict[str, Any] = {}
    try:
        check_bounds(text)
    except Unparsable:
        return members
    decoder = json.JSONDecoder()
    position = _skip(text, 0)
    if not text.startswith("{", position):
        return members
    while True:
        try:
            key, position = decoder.raw_decode(text, _skip(text, position + 1))
            colon = _skip(text, position)
            if not isinstance(key, str) or not text.startswith(":", colon) or key in members:
                return {} if key in members else members
            start = _skip(text, colon + 1)
            _, end = decoder.raw_decode(text, start)
            value = loads(text[start:end])  # strict: what parse refuses is not certain either
        except (ValueError, Unparsable):
            return members
        position = _skip(text, end)
        if position >= len(text) or text[position] not in ",}":
            return members
        members[key] = value
        if text[position] == "}":  # more text after the end: nobody can tell which part is the answer
            return members if _skip(text, position + 1) == len(text) else {}


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def _drop_invalid(members: dict[str, Any], plan: DecodingPlan) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The members without those that the judge objects to; nothing is kept if an objection names no member."""
    kept = dict(members)
    dropped: list[tuple[str, str]] = []
    for _ in range(len(members) + 1):
        objections = [p for p in find_problems(kept, judge_of(plan), 0) if not _about_absence(p)]
        if not objections:
            return kept, dropped
        named = {unescape(p.pointer.split("/")[1]): p.message for p in objections if p.pointer}
        named = {name: reason for name, reason in named.items() if name in kept}
        if not named:
            return {}, dropped
        for name, reason in named.items():
            del kept[name]
            dropped.append((name, reason))
    return {}, dropped


def _about_absence(problem: Problem) -> bool:
    return problem.pointer == "" and problem.message.startswith("required:")


def _is_record(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and bool(schema.get("properties"))


def _declared(schema: Mapping[str, Any]) -> list[str]:
    return list(schema.get("properties", {}))
