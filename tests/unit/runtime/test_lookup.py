"""Rows of a run found again, and what is said where there is none."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from support import Answers, extracted

from jobs.demo_report import read_back
from pipeline.errors import OutputError
from pipeline.observe.inspect import panel_of
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.lookup import document_text, find_rows, find_run


def found(store: Any, **wanted: Any) -> list[dict[str, Any]]:
    return list(find_rows(store, **{"status": None, "document_id": None, "layer": None, "limit": 99, **wanted}))


def test_rows_are_found_with_their_documents(work: Any) -> None:
    run = work.open()
    work.finish(run)
    assert len(found(run.store)) == 12
    assert {row["status"] for row in found(run.store, status="degraded")} == {"degraded"}
    assert len(found(run.store, limit=5)) == 5
    (row,) = found(run.store, document_id="d7")
    assert document_text(run.store, row) == "receipt 7"
    for path in (run.where, str(Path(run.where).parent)):
        assert find_run(path).where == run.where


@pytest.mark.parametrize("wanted", ["\udcff", "a\ud800b", "", "\x00", "x" * 100_000])
def test_an_id_that_no_row_can_have_is_simply_not_found(work: Any, wanted: str) -> None:
    run = work.open()
    work.finish(run)
    assert found(run.store, document_id=wanted) == []


def test_an_unfinished_run_is_told_from_no_run(work: Any, tmp_path: Path) -> None:
    run = work.open()
    for path in (Path(run.where), Path(run.where).parent):
        with pytest.raises(OutputError, match=r"unfinished.*run the job again"):
            find_run(str(path))
    for missing in (tmp_path / "nowhere", tmp_path / "in.jsonl", Path("\udcff")):
        with pytest.raises(OutputError, match="no committed run") as caught:
            find_run(str(missing))
        assert "run the job again" not in str(caught.value)
    with pytest.raises(OutputError, match="cannot look into"):
        find_run("x" * 5000)


def test_of_several_runs_the_one_that_was_committed_last_is_meant(work: Any, make_work: Any) -> None:
    slow, quick = work.open(), make_work(slot="2")
    quick.finish(quick.open())
    make_work(slot="3").open()
    output = str(Path(slow.where).parent)
    assert find_run(output).where == quick.open().where
    work.finish(slow)
    assert find_run(output).where == slow.where


@pytest.mark.parametrize("how", ["missing", "broken"])
def test_a_file_that_cannot_be_read_is_told(work: Any, how: str) -> None:
    run = work.open()
    path = Path(run.where) / work.finish(run).files[0]["path"]
    path.unlink() if how == "missing" else path.write_bytes(b"PAR1")
    with pytest.raises(OutputError, match=path.name):
        found(run.store)


def test_a_document_that_cannot_be_read_again_is_told_in_its_place(work: Any, tmp_path: Path) -> None:
    run = work.open()
    work.finish(run)
    row = found(run.store, status="valid")[0]
    (tmp_path / "in.jsonl").unlink()
    assert "can no longer be read" in document_text(run.store, row)
    record = json.loads((Path(run.where) / "run.json").read_text())
    record["input"]["path"] = "s3://bucket/x"
    (Path(run.where) / "run.json").write_text(json.dumps(record))
    for content in ("{}", "no json"):
        (Path(run.where) / "run.json").write_text(content)
        assert "cannot be read" in document_text(run.store, row)


INVOICE = {
    "type": "object",
    "properties": {
        "on": {"type": "string", "format": "date"},
        "sum": {"type": "number", "multipleOf": 0.01},
        "big": {"type": "integer", "maximum": 10**30},
        "vendor": {"type": "string"},
    },
    "required": ["on", "sum", "vendor"],
}


def test_dates_and_decimals_are_typed_in_files_and_shown_as_json(make_work: Any) -> None:
    """The second answer is salvaged, so that both tables have such columns; what does not fit is named."""
    work = make_work(INVOICE)
    run, unit, plan = work.open(), work.found.units[0], work.plans["receipt@1"]
    whole = {"on": "2024-02-29", "sum": 19.9, "big": 2**70, "vendor": "Ann"}
    answers = [whole, {"on": "0001-01-01", "sum": 10**36, "vendor": "\ud800"}]
    documents = read_unit(unit, work.job.input)
    work.write(run, unit, [extracted(Answers(answers[n % 2]), plan, doc) for n, doc in enumerate(documents)])
    for other in work.found.units[1:]:
        work.write(run, other, [extracted(Answers(whole), plan, doc) for doc in read_unit(other, work.job.input)])
    manifest = run.commit(work.found, {"receipt@1": "digest"})
    good, cut = found(run.store, document_id="d0")[0], found(run.store, document_id="d1")[0]
    assert good["record"] == {"on": date(2024, 2, 29), "sum": Decimal("19.90"), "big": Decimal(2**70), "vendor": "Ann"}
    assert (cut["status"], cut["record"]) == (
        "degraded",
        {"on": date(1, 1, 1), "sum": None, "big": None, "vendor": None},
    )
    assert {"value_not_storable", "lone_surrogate"} <= {problem["code"] for problem in cut["problems"]}
    console = Console(file=io.StringIO(), width=160)
    console.print(panel_of(good, ""), panel_of(cut, ""))
    shown = console.file.getvalue()
    for text in ('"on": "2024-02-29"', '"sum": 19.9,', f'"big": {2**70}', '"on": "0001-01-01"'):
        assert text in shown
    (file,) = [file for file in manifest.files if file["status"] == "valid" and unit.id in file["path"]]
    assert [row["record"] for row in read_back(Path(run.where), file)] == [whole] * 3
