"""One unit becomes typed Parquet files and one commit record, whatever the model said."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import GOOD, Answers, extracted

from pipeline.errors import OutputError
from pipeline.records import Clipped, Field, Problem
from pipeline.runtime.input import scan
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.store import open_store
from pipeline.schema.plan import NO_PLAN, refused_plan
from pipeline.schema.storage import as_json
from tests.crash.checked import read_folder, read_input
from tests.crash.checker import committed
from tests.crash.core import Oracle, drive
from tests.crash.small_job import NAMES, make


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("status=*/schema=*/*.parquet"))


def rows(directory: Path, status: str) -> list[dict[str, Any]]:
    found = [
        row
        for path in files(directory)
        if f"status={status}" in str(path)
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return sorted(found, key=lambda row: row["document_id"])


def test_every_outcome_is_written_once_where_its_status_says(work: Any) -> None:
    run = work.open()
    record = work.write(run, work.found.units[0])
    written = {
        status: [row["document_id"] for row in rows(Path(run.where), status)]
        for status in ("valid", "degraded", "rejected")
    }
    assert written == {"valid": ["d0", "d1"], "degraded": ["d2", "d4"], "rejected": ["d3"]}
    assert sum(file["rows"] for file in record["files"]) == 5
    assert run.committed_units() == {work.found.units[0].id}


def test_a_valid_row_holds_the_record_and_what_led_to_it(work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    first, second = rows(Path(run.where), "valid")
    assert first["record"] == {**GOOD, "date": date(2024, 2, 29)}
    assert as_json(first["record"]) == GOOD
    assert second["record"] == {"vendor": "Büro \u2028 €", "date": None, "lines": [], "total": None}
    assert first["attempts"][0]["raw_text"] == json.dumps(GOOD)
    assert (first["layer"], first["run_id"]) == (1, work.identity.run_id)
    assert {problem["severity"] for problem in first["problems"]} <= {"observe"}
    assert "document_text" not in first


def test_a_rejected_row_keeps_its_document_and_coded_problems(work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    (row,) = rows(Path(run.where), "rejected")
    assert row["document_text"] == "receipt 3"
    assert {(p["code"], p["layer"], p["attempt"]) for p in row["problems"]} == {
        ("no_json", "parse", 1),
        ("no_json", "parse", 2),
    }
    assert "record" not in row


def test_half_surrogates_in_raw_text_and_pointers_are_written_visibly(work: Any) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = work.outcomes(unit)
    raw = dataclasses.replace(outcomes[0].attempts[0], raw_text="a\ud800b")
    problem = dataclasses.replace(outcomes[4].problems[0], pointer="/\udfff")
    outcomes[0] = dataclasses.replace(outcomes[0], attempts=(raw,), problems=(problem,))
    work.write(run, unit, outcomes)
    row = rows(Path(run.where), "valid")[0]
    assert row["attempts"][0]["raw_text"] == "a\\ud800b"
    assert row["problems"][0]["pointer"] == "/\\udfff"


def test_all_files_of_a_table_have_one_schema_and_no_extension_types(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    by_status: dict[str, set[str]] = {}
    for path in files(Path(run.where)):
        schema = pq.ParquetFile(path).schema_arrow
        by_status.setdefault(path.parts[-3], set()).add(schema.to_string(show_field_metadata=True))
        assert not [field for field in schema if isinstance(field.type, pa.BaseExtensionType)]
    assert len(files(Path(run.where))) > len(by_status) == 3
    assert all(len(schemas) == 1 for schemas in by_status.values())


def test_degraded_columns_are_nullable_and_valid_ones_as_the_schema_says(work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    types = {
        path.parts[-3]: pq.ParquetFile(path).schema_arrow.field("record").type
        for path in files(Path(run.where))
        if "rejected" not in str(path)
    }
    assert [field.nullable for field in types["status=valid"]] == [False, True, True, True]
    assert [field.nullable for field in types["status=degraded"]] == [True] * 4


@pytest.mark.parametrize("count", [0, 4, 6])
def test_a_wrong_number_of_outcomes_writes_nothing(work: Any, count: int) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = (work.outcomes(unit) * 2)[:count]
    with pytest.raises(OutputError, match=f"5 documents but {count} outcomes"):
        work.write(run, unit, outcomes)
    assert files(Path(run.where)) == []
    assert run.committed_units() == set()


@pytest.mark.parametrize("kind", ["changed id", "lost and doubled"])
def test_outcomes_of_other_documents_write_nothing(work: Any, kind: str) -> None:
    run = work.open()
    unit = work.found.units[1]
    first, *others = work.outcomes(unit)
    odd = others[0] if kind == "lost and doubled" else dataclasses.replace(first, document_id="other")
    with pytest.raises(OutputError, match="ids of unit"):
        work.write(run, unit, [odd, *others])
    assert files(Path(run.where)) == []
    assert run.committed_units() == set()


def test_a_second_attempt_of_a_unit_writes_nothing_and_tells_what_stands(
    work: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = work.open()
    unit = work.found.units[0]
    first = work.write(run, unit)
    before = files(Path(run.where))
    monkeypatch.setattr(pq, "write_table", None)
    assert work.write(run, unit, work.outcomes(unit)[::-1]) == first
    assert files(Path(run.where)) == before
    assert sorted(str(path.relative_to(Path(run.where))) for path in before) == sorted(
        f["path"] for f in first["files"]
    )


def test_the_commit_record_describes_the_files(work: Any) -> None:
    import hashlib

    run = work.open()
    record = work.write(run, work.found.units[1])
    assert record == json.loads((Path(run.where) / "_commits" / f"{work.found.units[1].id}.json").read_text())
    for file in record["files"]:
        content = (Path(run.where) / file["path"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert record["tally"]["documents"] == 5


def test_documents_without_a_schema_have_a_partition_of_their_own(work: Any) -> None:
    run = work.open()
    unit = work.found.units[0]
    outcomes = work.outcomes(unit)
    stray = dataclasses.replace(outcomes[3], schema="", record=None, status="rejected")
    work.write(run, unit, [*outcomes[:3], stray, outcomes[4]])
    assert [path.parts[-2] for path in files(Path(run.where)) if "rejected" in str(path)] == ["schema=none"]
    assert extracted(Answers(GOOD), NO_PLAN).status == "valid"


def test_rows_say_of_which_attempt_their_record_and_repairs_are(work: Any) -> None:
    run = work.open()
    work.write(run, work.found.units[0])
    assert {row["record_attempt"] for row in rows(Path(run.where), "valid")} == {1}
    assert {row["record_attempt"] for row in rows(Path(run.where), "rejected")} == {0}
    repairs = [repair for row in rows(Path(run.where), "degraded") for repair in row["repairs"]]
    assert repairs
    assert {repair["attempt"] for repair in repairs} <= {1, 2}


def test_what_is_known_of_each_value_is_read_back_with_plain_pyarrow(work: Any) -> None:
    run = work.open()
    unit = work.found.units[0]
    first, *others = work.outcomes(unit)
    attempt = dataclasses.replace(first.attempts[0], max_tokens=300, temperature=0.5, seed=2**63 - 1)
    field = Field("/total", "normalised", 3, 8, 0.5, '"19,90"', True, 0.25)
    problem = Problem("rule_broken", "/total", "m", 1, "observe")
    first = dataclasses.replace(first, attempts=(attempt,), fields=(field,), problems=(problem,), confidence=0.75)
    work.write(run, unit, [first, *others])
    row = rows(Path(run.where), "valid")[0]
    assert row["fields"] == [dataclasses.asdict(field)]
    assert row["confidence"] == 0.75
    assert row["problems"] == [{**dataclasses.asdict(problem), "layer": "rules"}]
    assert (row["attempts"][0]["max_tokens"], row["attempts"][0]["temperature"]) == (300, 0.5)
    assert row["attempts"][0]["seed"] == 2**63 - 1
    assert len(row["record_digest"]) == 16
    for status in ("degraded", "rejected"):
        assert {"fields", "confidence", "record_digest"} <= rows(Path(run.where), status)[0].keys()


@pytest.mark.parametrize("name", ["x" * 300, "レシート" * 30, "é" * 101 + "@1"])
def test_a_row_may_name_a_schema_at_any_length(tmp_path: Path, name: str) -> None:
    """The name of a folder may not; a run that cannot be written could never be committed."""
    small = make(tmp_path, 6, 3)
    path = Path(small.job.input.path)
    path.write_text(path.read_text() + json.dumps({"id": "long", "kind": name, "text": "tea"}) + "\n")
    found = scan(small.job.input, 3)
    plans = {**small.plans, name: refused_plan(name, "", "there is no such schema")}
    identity = identity_of(small.job, found, plans)
    small = dataclasses.replace(small, found=found, plans=plans, identity=identity, rows=read_input(path))
    manifest = drive(small, open_store(small.job.output), Oracle())
    run = Path(small.job.output) / f"run={identity.run_id}"
    assert committed(read_folder(run), small.rows) == []
    assert [file["schema"] for file in manifest.files if file["schema"] not in (*NAMES, "none")] == [name]


def test_a_repeated_id_that_only_the_scan_or_only_an_outcome_knows_is_not_written(work: Any) -> None:
    unit = work.found.units[0]
    run = work.open()
    strange = dataclasses.replace(unit, duplicates=(*unit.duplicates, unit.rows - 1))
    with pytest.raises(OutputError, match="repeat an id by the scan or by their outcomes"):
        work.write(run, strange, work.outcomes(unit))
    assert work.write(run, unit)["unit"] == unit.id


def test_what_an_audit_found_is_a_column_and_no_part_of_the_record(work: Any) -> None:
    run = work.open()
    unit = work.found.units[0]
    found = (Clipped("/lines/0", "value", 3, 0.75, 0.5), Clipped("/\ud800", "structure", 1, 0.0, 0.0))
    outcomes = [dataclasses.replace(outcome, audit="done", clipped=found) for outcome in work.outcomes(unit)]
    work.write(run, unit, outcomes)
    (row, _) = rows(Path(run.where), "valid")
    assert row["audit"] == "done"
    assert row["clipped"][0] == {"pointer": "/lines/0", "part": "value", "tokens": 3, "mass": 0.75, "highest": 0.5}
    assert row["clipped"][1]["pointer"] == "/\\ud800"
    assert row["record"] == {**GOOD, "date": date(2024, 2, 29)}
