"""Which events a document's outcome is worth. A valid first answer is worth none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import STATUSES, Outcome, Problem
from pipeline.steps.codes import CODES, cap_of

POISON = "poison"


@dataclass(frozen=True, slots=True)
class Event:
    """A name of `catalogue.KINDS`, its members, and those that quote a document or a model."""

    name: str
    members: dict[str, Any]
    text: dict[str, Any] = field(default_factory=dict)


def events_of(outcome: Outcome) -> Iterator[Event]:
    """The events of one outcome: each alarm, whether it was asked about again, and a status that is not valid."""
    by_code = {problem.code: problem for problem in outcome.problems if CODES[problem.code].alarm}
    for code, problem in by_code.items():
        if code != POISON:
            yield _event("document_alarm", outcome, problem)
    if len(outcome.attempts) > 1:
        last = outcome.attempts[-1].number
        event = _event("document_retried", outcome, _worst([p for p in outcome.problems if 0 < p.attempt < last]))
        yield Event(event.name, event.members, {k: event.text[k] for k in ("message", "pointer") if k in event.text})
    if outcome.status == "valid":
        return
    if any(problem.code == POISON for problem in outcome.problems):
        yield _event("document_poison", outcome, next(p for p in outcome.problems if p.code == POISON))
    else:
        yield _event(f"document_{outcome.status}", outcome, _worst(outcome.problems))


def _worst(problems: Sequence[Problem]) -> Problem | None:
    """The last of those that leave the lowest status."""
    return max(reversed(problems), key=lambda problem: STATUSES.index(cap_of(problem)), default=None)


def _event(name: str, outcome: Outcome, problem: Problem | None) -> Event:
    members: dict[str, Any] = {
        "document": outcome.document_id,
        "schema": outcome.schema,
        "status": outcome.status,
        "attempt": problem.attempt if problem else 0,
        "attempts": len(outcome.attempts),
        "code": problem.code if problem else "",
        "codes": sorted({found.code for found in outcome.problems}),
    }
    text = {"message": problem.message, "pointer": problem.pointer} if problem else {}
    if answers := [attempt.raw_text for attempt in outcome.attempts if attempt.number == members["attempt"]]:
        text["raw_text"] = answers[0]
    if outcome.document_text and name in ("document_rejected", "document_poison"):
        text["document_text"] = outcome.document_text
    return Event(name, members, text)
