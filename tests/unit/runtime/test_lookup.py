"""Rows of a run found again, and what is said where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import OutputError
from pipeline.runtime.lookup import document_text, find_rows, find_run


def found(directory: Path, **wanted: Any) -> list[dict[str, Any]]:
    return list(find_rows(directory, **{"status": None, "document_id": None, "layer": None, "limit": 99, **wanted}))


def test_rows_are_found_with_their_documents(work: Any) -> None:
    run = work.open()
    work.finish(run)
    assert len(found(run.directory)) == 12
    assert {row["status"] for row in found(run.directory, status="degraded")} == {"degraded"}
    assert len(found(run.directory, limit=5)) == 5
    (row,) = found(run.directory, document_id="d7")
    assert document_text(run.directory, row) == "receipt 7"
    assert find_run(str(run.directory)) == find_run(str(run.directory.parent)) == run.directory


@pytest.mark.parametrize("wanted", ["\udcff", "a\ud800b", "", "\x00", "x" * 100_000])
def test_an_id_that_no_row_can_have_is_simply_not_found(work: Any, wanted: str) -> None:
    run = work.open()
    work.finish(run)
    assert found(run.directory, document_id=wanted) == []


def test_an_unfinished_run_is_told_from_no_run(work: Any, tmp_path: Path) -> None:
    run = work.open()
    for path in (run.directory, run.directory.parent):
        with pytest.raises(OutputError, match=r"unfinished.*run the job again"):
            find_run(str(path))
    for missing in (tmp_path / "nowhere", tmp_path / "in.jsonl", Path("\udcff")):
        with pytest.raises(OutputError, match="no committed run") as caught:
            find_run(str(missing))
        assert "run the job again" not in str(caught.value)
    with pytest.raises(OutputError, match="cannot look into"):
        find_run("x" * 5000)


@pytest.mark.parametrize("how", ["missing", "broken"])
def test_a_file_that_cannot_be_read_is_told(work: Any, how: str) -> None:
    run = work.open()
    path = run.directory / work.finish(run).files[0]["path"]
    path.unlink() if how == "missing" else path.write_bytes(b"PAR1")
    with pytest.raises(OutputError, match=path.name):
        found(run.directory)


def test_a_document_that_cannot_be_read_again_is_told_in_its_place(work: Any, tmp_path: Path) -> None:
    run = work.open()
    work.finish(run)
    row = found(run.directory, status="valid")[0]
    (tmp_path / "in.jsonl").unlink()
    assert "can no longer be read" in document_text(run.directory, row)
    record = json.loads((run.directory / "run.json").read_text())
    record["input"]["path"] = "s3://bucket/x"
    (run.directory / "run.json").write_text(json.dumps(record))
    for content in ("{}", "no json"):
        (run.directory / "run.json").write_text(content)
        assert "cannot be read" in document_text(run.directory, row)
