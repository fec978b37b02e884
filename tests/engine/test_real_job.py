"""Whole jobs with real vLLM inside a real Ray Data actor, on documents that this project did not write."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline.flow import run
from pipeline.jobfile import load_job
from pipeline.jobplacement import AuditConfig
from pipeline.runtime.cluster import start_ray

ROOT = Path(__file__).resolve().parents[2]
JOBS = ["receipts_sroie.yaml", pytest.param("advisories_rustsec.yaml", marks=pytest.mark.slow)]
DOCUMENTS = 3


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", JOBS)
def test_the_shipped_job_runs_on_real_documents_and_reads_back(
    name: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_SHARED", str(shared.resolve()))
    job = load_job(ROOT / "jobs" / name)
    source = job.input.model_copy(update={"limit": DOCUMENTS})
    job = job.model_copy(update={"input": source, "output": str(tmp_path / "out"), "audit": AuditConfig(fraction=1.0)})
    start_ray()
    manifest = run(job, lambda event, value: None)
    directory = Path(job.output) / f"run={manifest.run_id}"
    rows = [
        {**row, "status": file["status"]}
        for file in manifest.files
        for row in pq.ParquetFile(directory / file["path"]).read().to_pylist()
    ]
    with Path(job.input.path).open(encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line, _ in zip(lines, range(DOCUMENTS), strict=False)]
    assert sorted(row["document_id"] for row in rows) == sorted(ids)
    assert sum(manifest.counts.values()) == DOCUMENTS == len(rows)
    for row in rows:
        assert all(attempt["constrained"] and attempt["prompt_tokens"] > 0 for attempt in row["attempts"])
        if row["status"] == "valid":
            raw = json.loads(row["attempts"][-1]["raw_text"])
            assert row["attempts"][-1]["finish_reason"] == "stop"
            assert {key: value for key, value in row["record"].items() if value is not None} == {
                key: value for key, value in raw.items() if value is not None
            }
    assert any(row["status"] == "valid" for row in rows)
    audits = {row["document_id"]: row["audit"] for row in rows}
    assert "done" in audits.values() and set(audits.values()) <= {"done", "busy"}, audits
    assert all(bool(row["clipped"]) == (row["audit"] == "done") for row in rows)
