"""Measured: what is compared of one document besides its fields. Each is a number, or nothing where it has no sense."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.evaluate.comparison import Group
from pipeline.observe.paths import answers_of
from pipeline.observe.tally import MAX_SECONDS
from pipeline.records import JsonValue, Outcome
from pipeline.report.rows import blamed, outcome_of, was_asked
from pipeline.report.shown import cut
from pipeline.steps.codes import CODES

MAX_MESSAGE = 160

MEASURES: Mapping[str, tuple[Group, int]] = {
    "valid": ("outcome", -1),
    "usable": ("outcome", -1),
    "completeness": ("outcome", -1),
    "unsupported": ("outcome", 1),
    "first_format": ("layer", -1),
    "first_json": ("layer", -1),
    "first_schema": ("layer", -1),
    "first_semantic": ("layer", -1),
    "constrained": ("layer", -1),
    "truncated": ("layer", 1),
    "retried": ("layer", 1),
    "salvaged": ("layer", 1),
    "attempts": ("cost", 1),
    "prompt_tokens": ("cost", 1),
    "output_tokens": ("cost", 1),
    "tokens": ("cost", 1),
    "gold": ("gold", -1),
}
"""Of which group each is, and whether more (1) or less (-1) of it is worse (docs/compare.md says what each means)."""

SHARES = frozenset({"completeness", "unsupported", "gold"})
"""Those that are a share from 0 to 1 of a document; the others of groups outcome and layer are yes or no."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One document as a run left it. `values` are its measures but completeness, which needs to know what fields there
    are; `codes` those of its problems; `told` says in short what cost it its validity. The record is kept packed."""

    document_id: str
    schema: str
    status: str
    values: Mapping[str, float]
    codes: frozenset[str]
    seconds: float
    told: str
    packed: bytes | None

    @property
    def record(self) -> JsonValue:
        return None if self.packed is None else json.loads(zlib.decompress(self.packed))


def seen(row: Mapping[str, Any]) -> Seen:
    """What is kept of a row of a run (`browse`)."""
    return seen_of(outcome_of(row))


def seen_of(outcome: Outcome) -> Seen:
    """What is kept of an outcome."""
    return Seen(
        document_id=outcome.document_id,
        schema=outcome.schema,
        status=outcome.status,
        values=values_of(outcome),
        codes=frozenset(problem.code for problem in outcome.problems),
        seconds=sum(one.seconds for one in outcome.attempts if 0 <= one.seconds < MAX_SECONDS),
        told=_told(outcome),
        packed=_packed(outcome.record),
    )


def values_of(outcome: Outcome) -> dict[str, float]:
    """The measures of a document that need no other document."""
    found: dict[str, float] = {
        "valid": outcome.status == "valid",
        "usable": outcome.status != "rejected",
        "salvaged": outcome.layer == 3,
        "attempts": len(outcome.attempts),
        "prompt_tokens": sum(one.prompt_tokens for one in outcome.attempts),
        "output_tokens": sum(one.output_tokens for one in outcome.attempts),
    }
    found["tokens"] = found["prompt_tokens"] + found["output_tokens"]
    matches = [one.match for one in outcome.fields if one.match]
    if outcome.record is not None and matches:
        found["unsupported"] = matches.count("none") / len(matches)
    if was_asked(outcome):
        found |= _answers(outcome)
    return {name: float(value) for name, value in found.items()}


def _answers(outcome: Outcome) -> dict[str, float]:
    answers = list(answers_of(outcome))
    own = [answer for answer in answers if not answer.failed]
    first = own[0] if own else None
    return {
        "first_format": bool(first and first.format_first),
        "first_json": bool(first and (first.format_first or first.format_repaired)),
        "first_schema": bool(first and first.format_first and first.schema),
        "first_semantic": bool(first and first.format_first and first.semantic),
        "constrained": all(answer.attempt.constrained for answer in answers),
        "truncated": any(attempt.finish_reason == "length" for attempt in outcome.attempts),
        "retried": len(own) > 1,
    }


def _told(outcome: Outcome) -> str:
    if (problem := blamed(outcome)) is None:
        return outcome.status
    place = f" at {problem.pointer}" if problem.pointer else ""
    return cut(f"{outcome.status}: {problem.code}{place}: {problem.message}", MAX_MESSAGE)


def costs_validity(code: str) -> bool:
    """Whether a problem of this code alone keeps a document from being valid."""
    return code in CODES and CODES[code].cap != "valid"


def _packed(record: JsonValue) -> bytes | None:
    if record is None:
        return None
    return zlib.compress(json.dumps(record, separators=(",", ":")).encode(), 1)
