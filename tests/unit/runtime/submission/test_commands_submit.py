"""`submit`, `status` and `cancel` as a user meets them: what they print and end with, and what they never show."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from played_http import INFO, Played, playing
from submission_scenes import write_job

from pipeline import cli


@pytest.fixture
def played() -> Iterator[Played]:
    with playing() as server:
        yield server


def told(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "argv", ["gristmill", *words])
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    stream.flush()
    return int(stopped.value.code or 0), stream.buffer.getvalue().decode()


def info(tmp_path: Path, **values: Any) -> dict[str, Any]:
    metadata = {"gristmill_job": "nightly", "gristmill_output": str(tmp_path / "out"), "gristmill_drain_seconds": "30"}
    return {**INFO, "metadata": metadata, **values}


def test_a_dry_run_asks_nobody_and_shows_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("KEY_OF_A_TEST", "hunter2-and-more")
    words = ("--dry-run", "--id-by", "job", "--env", "KEY_OF_A_TEST", "--address", "nobody.invalid:1")
    code, output = told(monkeypatch, "submit", str(job), *words)
    assert code == 0
    assert "ray job submit --submission-id nightly-" in output and "RAY_API_SERVER_ADDRESS=http://nobody" in output
    assert "KEY_OF_A_TEST" in output and "hunter2" not in output
    assert "5 files" in output, "their number and size are told"


@pytest.mark.parametrize("words", [("--overlap", "never"), ("--id-by", "x"), ("--env", "A=b"), ("--working-dir", "no")])
def test_wrong_options_end_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    job = write_job(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    code, output = told(monkeypatch, "submit", str(job), *words)
    assert code == 2 and "Traceback" not in output


def test_status_tells_by_the_manifest(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path / "work")
    older = info(tmp_path, submission_id="nightly-0", start_time=1, status="STOPPED", driver_exit_code=None)
    stranger = {**INFO, "metadata": {"gristmill_job": "nightly", "gristmill_output": "s3://other/out"}}
    played.answers["/api/jobs/"] = (200, [stranger, older, info(tmp_path, message="\x1b[2Jevil")])
    code, output = told(monkeypatch, "status", str(job), "--address", played.url, "--json")
    rows = json.loads(output)
    assert code == 0
    assert [(row["id"], row["status"], row["exit_code"]) for row in rows] == [
        ("nightly-1", "FAILED", 5),
        ("nightly-0", "STOPPED", 143),
    ]
    assert rows[0]["started"] == "1970-01-01T00:00:01+00:00" and rows[0]["output"] == "unknown"
    code, output = told(monkeypatch, "status", str(job), "--address", played.url)
    assert code == 0 and "exit code 5" in output and "hunter2" not in output


def test_a_job_that_runs_tells_its_last_line(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = info(tmp_path, status="RUNNING", driver_exit_code=None, end_time=None)
    played.answers |= {
        "/api/jobs/nightly-1": (200, live),
        "/api/jobs/nightly-1/logs": (200, {"logs": "begun\n17 of 20 \x1b[2Jdocuments\n\n"}),
    }
    code, output = told(monkeypatch, "status", "nightly-1", "--address", played.url)
    assert code == 0 and r"17 of 20 \x1b[2Jdocuments" in output and "\x1b" not in output


def test_what_nobody_submitted_is_told(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path / "work")
    played.answers["/api/jobs/"] = (200, [])
    assert told(monkeypatch, "status", str(job), "--address", played.url)[0] == 0
    code, output = told(monkeypatch, "cancel", str(job), "--address", played.url)
    assert code == 0 and "nothing to cancel" in output
    for command in ("status", "cancel"):
        code, output = told(monkeypatch, command, "x\x1b[2J", "--address", played.url)
        assert code == 12 and "knows no submission" in output and "\x1b" not in output


def test_cancel_ends_what_is_under_way(played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = write_job(tmp_path / "work")
    live = info(tmp_path, status="RUNNING", driver_exit_code=None)
    over = info(tmp_path, submission_id="nightly-0")
    played.answers |= {
        "/api/jobs/": (200, [live, over]),
        "/api/jobs/nightly-1/stop": (200, {"stopped": True}),
        "/api/jobs/nightly-1": (200, {**live, "status": "STOPPED"}),
    }
    code, output = told(monkeypatch, "cancel", str(job), "--address", played.url)
    assert code == 0 and "nightly-1 was told to end. It may take 30 s." in output and "is kept" in output
    played.answers["/api/jobs/"] = (200, [live, {**over, "status": "PENDING"}])
    code, output = told(monkeypatch, "cancel", str(job), "--address", played.url)
    assert code == 2 and "nightly-0" in output and "nightly-1" in output, "nobody guesses which"
