"""A value that does not fit its column costs its own document, is told, and never becomes another value."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Answers, codes, extracted, plan_of, schema_and_record

from pipeline.records import STATUSES, Outcome
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.strict import cells_of, strict_row
from pipeline.runtime.output.tables import tables_of
from pipeline.schema.storage import as_json

BODY = {
    "type": "object",
    "properties": {
        "qty": {"type": "integer"},
        "ok": {"type": "boolean"},
        "sum": {"type": "number", "multipleOf": 0.01},
        "on": {"type": "string", "format": "date"},
        "extra": {"type": "object"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]},
        },
    },
    "required": ["qty"],
}
GOOD = {"qty": 3, "ok": True, "sum": 1.25, "on": "2024-02-29", "extra": {}, "lines": [{"s": ""}]}


def made(work: Any, *records: Any) -> list[Outcome]:
    """Outcomes of a unit whose documents were judged, after which a fault put these records in their place."""
    documents = read_unit(work.found.units[0], work.job.input)
    good = [extracted(Answers(GOOD), work.plans["receipt@1"], document) for document in documents]
    assert {outcome.status for outcome in good} == {"valid"}
    return [
        dataclasses.replace(outcome, record=records[n]) if n < len(records) else outcome
        for n, outcome in enumerate(good)
    ]


def written(work: Any, outcomes: list[Outcome]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Rows by document id with their status, read by plain pyarrow, and the commit record."""
    run = work.open()
    record = work.write(run, work.found.units[0], outcomes)
    rows = [
        {**row, "status": file["status"]}
        for file in record["files"]
        for row in pq.ParquetFile(Path(run.where) / file["path"]).read().to_pylist()
    ]
    return {row["document_id"]: row for row in rows}, record


WRONG = [
    ({**GOOD, "qty": 1.5}, "/qty"),
    ({**GOOD, "qty": True}, "/qty"),
    ({**GOOD, "qty": "3"}, "/qty"),
    ({**GOOD, "qty": 2**63}, "/qty"),
    ({**GOOD, "qty": None}, "/qty"),
    ({**GOOD, "ok": 1}, "/ok"),
    ({**GOOD, "sum": 1.239}, "/sum"),
    ({**GOOD, "sum": "1.25"}, "/sum"),
    ({**GOOD, "sum": float("nan")}, "/sum"),
    ({**GOOD, "on": "2024-02-30"}, "/on"),
    ({**GOOD, "on": 5}, "/on"),
    ({**GOOD, "extra": {"k": {1, 2}}}, "/extra"),
    ({**GOOD, "lines": [{"s": ""}, {"s": None}]}, "/lines/1/s"),
    ({**GOOD, "lines": [{"s": "\ud800"}]}, "/lines/0/s"),
    ({**GOOD, "lines": {"s": ""}}, "/lines"),
    ({**GOOD, "warn": "low scan quality"}, ""),
    ({"ok": True}, ""),
    ("text", ""),
    (None, ""),
]


@pytest.mark.parametrize(("record", "pointer"), WRONG, ids=lambda value: str(value)[:40])
def test_a_value_of_another_type_is_never_written_as_if_it_fitted(make_work: Any, record: Any, pointer: str) -> None:
    work = make_work(BODY)
    rows, commit = written(work, made(work, GOOD, record))
    assert {key: row["status"] for key, row in rows.items()} == {
        "d0": "valid", "d1": "rejected", "d2": "valid", "d3": "valid", "d4": "valid"
    }  # fmt: skip
    problem = rows["d1"]["problems"][-1]
    assert (problem["code"], problem["pointer"], problem["attempt"]) == ("value_not_written", pointer, 1)
    assert problem["message"].startswith("the value ")
    assert rows["d1"]["attempts"][0]["raw_text"]  # the raw answer stays
    assert (rows["d1"]["layer"], rows["d1"]["record_attempt"], rows["d1"]["document_text"]) == (0, 0, None)
    assert as_json(rows["d0"]["record"]) == {**GOOD, "extra": "{}"}
    # counted as it is written, and as an alarm
    assert commit["tally"]["statuses"] == {"valid": 4, "rejected": 1}
    assert commit["tally"]["codes"]["value_not_written"] == 1
    assert commit["tally"]["alarms"] == {"value_not_written": 1}


def test_a_unit_with_such_a_value_can_be_committed_with_the_run(make_work: Any) -> None:
    work = make_work(BODY)
    run = work.open()
    first, *others = work.found.units
    work.write(run, first, made(work, {**GOOD, "qty": 1.5}))
    for unit in others:
        documents = read_unit(unit, work.job.input)
        work.write(run, unit, [extracted(Answers(GOOD), work.plans["receipt@1"], document) for document in documents])
    manifest = run.commit(work.found, {})
    assert manifest.counts == {"valid": 11, "degraded": 0, "rejected": 1}


ODD = [1.5, True, "text", b"bytes", 2**70, {"k": 1}, [1], float("nan"), "\ud800", object(), -1, None]
PARTS = {"attempts": ("number", "engine", "prompt_tokens", "seconds", "constrained", "raw_text", "seed", "max_tokens")}


@pytest.mark.parametrize("odd", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", PARTS["attempts"])
def test_what_else_a_row_tells_is_checked_as_strictly(odd: Any, name: str) -> None:
    plan = plan_of(BODY)
    good = extracted(Answers(GOOD), plan)
    outcome = dataclasses.replace(good, attempts=(dataclasses.replace(good.attempts[0], **{name: odd}),))
    (final,), tables = tables_of([outcome], {"receipt@1": plan}, "run")
    ((key, table),) = tables.items()
    (cell,) = table.to_pylist()[0]["attempts"]
    assert key[0] == final.status
    if final.status == "rejected":
        assert codes(final)[-1] == "value_not_written"
        assert f"/attempts/0/{name}" in final.problems[-1].message
        assert cell[name] is None
    else:
        same = odd if odd != "\ud800" else "\\ud800"
        assert cell[name] == same or cell[name] != cell[name] or (name, cell[name]) == ("seed", None)
        assert cell[name] is None or type(cell[name]) in (type(same), float)


def test_a_seed_beyond_64_bits_costs_no_document() -> None:
    plan = plan_of(BODY)
    good = extracted(Answers(GOOD), plan)
    outcome = dataclasses.replace(good, attempts=(dataclasses.replace(good.attempts[0], seed=2**64),))
    assert tables_of([outcome], {"receipt@1": plan}, "run")[0] == [outcome]


KINDS = [
    (pa.int32(), [0, 2**31 - 1], [2**31, 1.0, True, "1"]),
    (pa.int64(), [-(2**63)], [2**63, 1.5, None]),
    (pa.float64(), [0.5, 3], [True, "1", 2**60 + 1, Decimal(1), None]),
    (pa.bool_(), [True], [1, 0, "true", None]),
    (pa.string(), ["", "\U0001f9fe"], ["\ud800", b"a", 1, None]),
    (pa.date32(), [date(1, 1, 1)], [datetime(2024, 1, 1), "2024-01-01", None]),
    (pa.decimal128(5, 2), [Decimal("999.99"), Decimal("-1")], [Decimal("1.239"), Decimal(1000), 1.5, Decimal("NaN")]),
    (pa.list_(pa.field("item", pa.string(), nullable=False)), [[], ["a"]], [["a", None], "a", [1], None]),
    (pa.struct([pa.field("s", pa.string(), nullable=False)]), [{"s": ""}], [{"s": None}, {}, {"s": "", "t": 1}, None]),
    (pa.duration("s"), [], [1, 1.5, "1"]),
]


@pytest.mark.parametrize(("kind", "good", "bad"), KINDS, ids=lambda value: str(value) if hasattr(value, "id") else "")
def test_each_type_takes_its_own_values_and_no_others(kind: pa.DataType, good: list[Any], bad: list[Any]) -> None:
    schema = pa.schema([pa.field("x", kind, nullable=False)])
    for value in good:
        found: list[tuple[str, str]] = []
        assert strict_row({"x": value}, cells_of(schema), found) == {"x": value}
        assert not found
        assert pa.Table.from_pylist([{"x": value}], schema=schema).to_pylist() == [{"x": value}]
    for value in bad:
        found = []
        strict_row({"x": value}, cells_of(schema), found)
        assert [pointer.startswith("/x") for pointer, _ in found] == [True]


def test_a_key_without_a_column_is_found_and_a_missing_one_is_null() -> None:
    found: list[tuple[str, str]] = []
    schema = pa.schema([pa.field("x", pa.string())])
    assert strict_row({"warn/ing": 1}, cells_of(schema), found) == {"x": None}
    assert found == [("/warn~1ing", "has no column")]


@given(schema_and_record(), st.sampled_from(STATUSES))
def test_records_that_satisfy_their_schema_always_fit(sample: Any, status: Any) -> None:
    body, record = sample
    plan = plan_of(body)
    outcome = extracted(Answers(record), plan)
    if outcome.status != "valid":
        return  # refused by the validator for what no column can hold
    changed = dataclasses.replace(outcome, status=status, record=None if status == "rejected" else outcome.record)
    (final,), tables = tables_of([changed], {"receipt@1": plan}, "run")
    assert final == changed
    assert sum(table.num_rows for table in tables.values()) == 1
