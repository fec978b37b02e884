"""Rows of a run, also of one that an earlier version wrote, as the outcomes that they were; and whom to blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pipeline.observe.tally import REFUSALS
from pipeline.records import STATUSES, Attempt, Field, Layer, Outcome, Problem, Repair
from pipeline.steps.codes import CODES, cap_of

LAYERS: tuple[Layer, ...] = get_args(Layer)

_KINDS: dict[str, Any] = {"problems": Problem, "repairs": Repair, "attempts": Attempt, "fields": Field}
_KEPT = {name: frozenset(kind.__slots__) for name, kind in _KINDS.items()}


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome that a row was written from; what the row's version did not keep has its default. Problems whose
    code this version does not know are left out."""
    nested = {name: tuple(_built(name, item) for item in row.get(name) or ()) for name in _KINDS}
    return Outcome(
        document_id=row["document_id"],
        source=row["source"] or "",
        schema=row["schema"],
        status=row["status"],
        layer=row["layer"],
        record=row.get("record"),
        problems=tuple(problem for problem in nested["problems"] if problem.code in CODES),
        repairs=nested["repairs"],
        attempts=nested["attempts"],
        document_text=row.get("document_text") or "",
        record_attempt=_record_attempt(row),
        fields=nested["fields"],
    )


def _built(name: str, item: Mapping[str, Any]) -> Any:
    kept = {key: value for key, value in item.items() if key in _KEPT[name] and value is not None}
    return _KINDS[name](**kept)


def _record_attempt(row: Mapping[str, Any]) -> int:
    """Earlier versions did not say which attempt a record is from: it was the last one."""
    if (known := row.get("record_attempt")) is not None:
        return int(known)
    return len(row["attempts"]) if row["status"] != "rejected" else 0


def was_asked(outcome: Outcome) -> bool:
    """Whether an engine decoded something for the document."""
    return any(attempt.output_tokens or attempt.error not in REFUSALS for attempt in outcome.attempts)


def blamed(outcome: Outcome) -> Problem | None:
    """The problem that cost a document its validity: of the attempt that counts (the record's, else the last one) and
    of reading, the one that leaves the worst status; of equals the one of the earliest layer. None of a valid one."""
    if outcome.status == "valid":
        return None
    counts = outcome.record_attempt or max((problem.attempt for problem in outcome.problems), default=0)
    found = [problem for problem in outcome.problems if problem.attempt in (0, counts)]
    return min(_costly(found) or _costly(outcome.problems), key=_rank, default=None)


def _costly(problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if cap_of(problem) != "valid"]


def _rank(problem: Problem) -> tuple[int, int]:
    return -STATUSES.index(cap_of(problem)), LAYERS.index(CODES[problem.code].layer)
