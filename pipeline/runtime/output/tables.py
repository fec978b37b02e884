"""Tables: outcomes as rows of one explicit Arrow schema per status and document schema (docs/output.md).

Every value is held against its column before Arrow sees it. One that does not fit is a fault of this program, and costs
its own document only: that is rejected as `value_not_written`, with the raw text of its attempts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.records import Attempt, Outcome, Problem, Status
from pipeline.runtime.output.duplicates import record_digest
from pipeline.runtime.output.strict import Cell, Found, cells_of, strict_row
from pipeline.schema.arrow import arrow_field
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.storage import INT64, Column, misfits, stored
from pipeline.steps.codes import CODES
from pipeline.steps.judge import judge_of

if TYPE_CHECKING:
    import pyarrow as pa

NO_SCHEMA = "none"
"""The partition of documents that name no schema."""

NOT_WRITTEN = "value_not_written"
MAX_WORDS = 500

Key = tuple[Status, str]
"""Status and schema name: what has a table of its own."""


def tables_of(
    outcomes: Sequence[Outcome], plans: Mapping[str, DecodingPlan], run_id: str
) -> tuple[list[Outcome], dict[Key, pa.Table]]:
    """The outcomes as they are written, in their order, and the tables that hold them.

    Raises:
        pyarrow.ArrowException: Arrow refuses a table whose values were all checked.
    """
    import pyarrow as pa

    schemas: dict[Key, pa.Schema] = {}
    cells: dict[Key, tuple[Cell, ...]] = {}
    rows: dict[Key, list[dict[str, Any]]] = {}
    written = []
    for outcome in outcomes:
        plan = plans.get(outcome.schema)
        for key in (_key(outcome), ("rejected", _key(outcome)[1])):
            if key not in schemas:
                schemas[key] = arrow_schema(key[0], _column(key[0], plan))
                cells[key] = cells_of(schemas[key])
        final, row = _fitting(outcome, plan, run_id, cells)
        written.append(final)
        rows.setdefault(_key(final), []).append(row)
    return written, {key: pa.Table.from_pylist(rows[key], schema=schemas[key]) for key in sorted(rows)}


def _key(outcome: Outcome) -> Key:
    return outcome.status, outcome.schema or NO_SCHEMA


def _column(status: Status, plan: DecodingPlan | None) -> Column | None:
    """The column of the record; None where there are no records."""
    return judge_of(plan).column if plan is not None and status != "rejected" else None


def _fitting(
    outcome: Outcome, plan: DecodingPlan | None, run_id: str, cells: Mapping[Key, tuple[Cell, ...]]
) -> tuple[Outcome, dict[str, Any]]:
    """An outcome with its row, or what becomes of one that does not fit its columns."""
    found: Found = []
    try:
        row = strict_row(_row(outcome, plan, run_id), cells[_key(outcome)], found)
    except Exception as error:  # whatever a value trips costs its own document, not the unit
        found.append((_misfit(outcome, plan), f"cannot be stored: {error}"))
    if not found:
        return outcome, row
    rejected = _not_written(outcome, *found[0])
    return rejected, strict_row(_row(rejected, plan, run_id), cells[_key(rejected)], [])


def _misfit(outcome: Outcome, plan: DecodingPlan | None) -> str:
    """Where in the row the record does not fit its column; "" if no single value is to blame."""
    column = _column(outcome.status, plan)
    pointer = next((pointer for pointer, _ in misfits(column, outcome.record)), "") if column else ""
    return f"/record{pointer}" if pointer else ""


def _not_written(outcome: Outcome, pointer: str, reason: str) -> Outcome:
    """The rejected outcome, whose problem points into the record if the value stood there."""
    inside = pointer.startswith("/record/")
    message = f"the value {reason}" if inside or not pointer else f"the value at {pointer} of the row {reason}"
    place = pointer.removeprefix("/record") if inside else ""
    problem = Problem(NOT_WRITTEN, place, message[:MAX_WORDS], outcome.record_attempt)
    return dataclasses.replace(
        outcome,
        status="rejected",
        layer=0,
        record=None,
        record_attempt=0,
        problems=(*outcome.problems, problem),
        fields=(),
        confidence=None,
        clipped=(),
    )


def _row(outcome: Outcome, plan: DecodingPlan | None, run_id: str) -> dict[str, Any]:
    column = _column(outcome.status, plan)
    row: dict[str, Any] = {
        "document_id": storable(outcome.document_id),
        "source": storable(outcome.source),
        "layer": outcome.layer,
        "record_attempt": outcome.record_attempt,
        "confidence": outcome.confidence,
        "record_digest": record_digest(outcome.record, plan.acceptance) if plan and column else None,
        "problems": [{**_cells(problem), "layer": CODES[problem.code].layer} for problem in outcome.problems],
        "repairs": [_cells(repair) for repair in outcome.repairs],
        "fields": [_cells(field) for field in outcome.fields],
        "attempts": [_attempt(attempt) for attempt in outcome.attempts],
        "audit": outcome.audit,
        "clipped": [_cells(place) for place in outcome.clipped],
        "schema_digest": plan.schema_digest if plan else None,
        "grammar_digest": plan.grammar_digest if plan else None,
        "work_digest": outcome.work_digest,
        "run_id": run_id,
    }
    if column is None:
        lost = not outcome.document_text and any(problem.code == NOT_WRITTEN for problem in outcome.problems)
        row["document_text"] = None if lost else storable(outcome.document_text)
    else:
        row["record"] = stored(column, outcome.record, all_nullable=outcome.status != "valid")
    return row


def _cells(item: Any) -> dict[str, Any]:
    """The members of a problem, repair, field or attempt, with texts that Arrow can hold."""
    return {
        name: storable(value) if isinstance(value, str) else value
        for name, value in ((name, getattr(item, name)) for name in item.__slots__)
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    """An attempt's members; a seed may be any integer, and one beyond 64 bits has no column."""
    beyond = type(attempt.seed) is int and attempt.seed not in INT64
    return {**_cells(attempt), "seed": None if beyond else attempt.seed}


def arrow_schema(status: Status, column: Column | None) -> pa.Schema:
    """The columns of one table. `column` is the record's; without one, the document's text stands in its place."""
    import pyarrow as pa

    string, int32, int64, double, flag = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
    repair = {"kind": string, "pointer": string, "detail": string, "attempt": int32}
    problem = {"code": string, "layer": string, "severity": string, "pointer": string, "message": string}
    leaf = {"pointer": string, "match": string, "start": int64, "end": int64, "score": double, "raw": string}
    clipped = {"pointer": string, "part": string, "tokens": int64, "mass": double, "highest": double}
    attempt = (
        {"number": int32, "engine": string, "plan_digest": string, "constrained": flag, "finish_reason": string}
        | {"error": string, "prompt_tokens": int64, "cached_tokens": int64, "output_tokens": int64}
        | {"queue_seconds": double, "seconds": double, "raw_text": string}
        | {"max_tokens": int64, "temperature": double, "seed": int64}
    )
    body = (
        pa.field("document_text", string)
        if column is None
        else arrow_field("record", column, all_nullable=status != "valid")
    )
    return pa.schema(
        [
            pa.field("document_id", string, nullable=False),
            pa.field("source", string),
            body,
            pa.field("layer", int32),
            pa.field("record_attempt", int32),
            pa.field("confidence", double),
            pa.field("record_digest", string),
            pa.field("problems", pa.list_(pa.struct(problem | {"attempt": int32}))),
            pa.field("repairs", pa.list_(pa.struct(repair))),
            pa.field("fields", pa.list_(pa.struct(leaf | {"touched": flag, "confidence": double}))),
            pa.field("attempts", pa.list_(pa.struct(attempt))),
            pa.field("audit", string),
            pa.field("clipped", pa.list_(pa.struct(clipped))),
            *(pa.field(name, string) for name in ("schema_digest", "grammar_digest", "work_digest", "run_id")),
        ]
    )


def storable(value: str) -> str:
    """Text that Arrow can hold: half surrogate pairs (in raw model output, say) become their escape, visibly."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
