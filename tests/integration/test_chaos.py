"""Three rounds of `bench.chaos`: real processes killed at random moments, and nothing lost, doubled or left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3


@pytest.mark.slow  # minutes
@pytest.mark.timeout(600)
def test_jobs_whose_processes_are_killed_end_with_every_document_once(tmp_path: Path) -> None:
    results = tmp_path / "chaos.json"
    command = [sys.executable, "-m", "bench.chaos", "--rounds", str(ROUNDS), "--documents", "200"]
    done = subprocess.run(
        [*command, "--limit", "120", "--json", str(results)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(results.read_text())
    totals = result["totals"]
    assert (totals["rounds"], totals["failed"], totals["different"]) == (ROUNDS, 0, 0)
    assert totals["poisons_wrongly_found"] == 0
    # Somebody was killed in every round, and more than one kind of victim in all; else the above would show little.
    assert all(one["kills"] for one in result["rounds"]), done.stdout
    assert len(totals["kills"]) > 1
    assert set(result["undisturbed"]["statuses"]) == {"valid", "degraded", "rejected"}
