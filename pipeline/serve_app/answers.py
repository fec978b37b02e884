"""What a caller is answered: an outcome or an error, with the HTTP code that says the same.

The code of an outcome: 200 for a record, whole or not; 422 if the document or its answer is to blame; 503 if the engine
is, 504 if the time ran out, and both can be asked again; 500 for a fault of this program. The body is the outcome
whatever the code.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from pipeline.records import JsonValue, Outcome
from pipeline.steps.route import blames_engine

RETRY_AFTER_ENGINE = 5
"""Seconds after which a caller may try an engine again that failed."""

_HERE = frozenset({"document_text", "source", "audit", "clipped"})
"""Of an outcome, what the caller has, or what only means something in a job's input or to whoever runs the engine."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that is no outcome: `http` is its code, `code` one word for programs, `message` for people."""

    http: int
    code: str
    message: str
    retry_after: int | None = None

    def to_json(self) -> dict[str, JsonValue]:
        return {"error": {"code": self.code, "message": self.message}}


class FaultError(Exception):
    """A request that ends in a Fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one document of a request: an outcome or a fault."""

    outcome: Outcome | None = None
    fault: Fault | None = None

    @property
    def http(self) -> int:
        if self.outcome is not None:
            return http_of(self.outcome)
        return self.fault.http if self.fault else 500

    @property
    def retry_after(self) -> int | None:
        """Seconds after which asking again makes sense; None if it never does, or nobody knows."""
        if self.fault is not None:
            return self.fault.retry_after
        return RETRY_AFTER_ENGINE if self.http == 503 else None

    def to_json(self) -> dict[str, JsonValue]:
        """The body of a request about this document alone."""
        if self.outcome is not None:
            return outcome_json(self.outcome)
        return self.fault.to_json() if self.fault else {}

    def row(self) -> dict[str, JsonValue]:
        """The body's entry in the answer to a batch."""
        error = self.fault.to_json()["error"] if self.fault else None
        shown = outcome_json(self.outcome) if self.outcome else None
        return {"http": self.http, "retry_after": self.retry_after, "outcome": shown, "error": error}


def http_of(outcome: Outcome) -> int:
    """The HTTP code of an outcome."""
    if outcome.status != "rejected":
        return 200
    last = outcome.attempts[-1].number if outcome.attempts else 0
    found = {problem.code for problem in outcome.problems if problem.attempt == last}
    if "pipeline_failed" in found:
        return 500
    if not blames_engine(outcome):
        return 422
    return 504 if "deadline_exceeded" in found else 503


def outcome_json(outcome: Outcome) -> dict[str, JsonValue]:
    """An outcome as callers see it."""
    shown: dict[str, Any] = {
        item.name: getattr(outcome, item.name) for item in dataclasses.fields(outcome) if item.name not in _HERE
    }
    for name in ("problems", "repairs", "fields", "attempts"):
        shown[name] = [dataclasses.asdict(item) for item in shown[name]]
    return shown
