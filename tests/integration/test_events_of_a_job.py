"""A job on Ray that is asked for events: its lines and its tables tell the same story, whatever dies on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.flow import run
from pipeline.observe.events.catalogue import ALWAYS, KINDS
from tests.integration.conftest import MakeJob
from tests.integration.test_sampler_job import rows_of

pytestmark = [pytest.mark.usefixtures("ray_cluster"), pytest.mark.slow]
"""Slow for its deaths; lines of a job in which nothing dies are looked at in test_prometheus.py, too."""


@pytest.mark.parametrize("placement", [{"kind": "local"}, {"kind": "actors"}], ids=["local", "actors"])
def test_lines_and_tables_tell_the_same(
    documents: list[dict[str, Any]], make_job: MakeJob, tmp_path: Path, placement: dict[str, Any]
) -> None:
    def mask(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "team": "blue"}

    faults = [{"kind": "die", "share": 0.02}, {"kind": "empty", "share": 0.1}]
    job = make_job(
        documents[:60], engine={"faults": faults}, placement=placement, events={"path": str(tmp_path / "logs")}
    )
    manifest = run(job, lambda _event, _value: None, hook=mask)
    files = list((tmp_path / "logs").glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="ascii").splitlines()]
    for line in lines:
        assert set(line) == {*ALWAYS, *KINDS[line["event"]].members, "team"}
        assert (line["job"], line["run"]) == ("job", manifest.run_id)
    rows = rows_of(job.output, manifest)
    for status in ("rejected", "degraded"):
        meant = {row["document_id"] for row in rows if row["status"] == status}
        names = (f"document_{status}", *(["document_poison"] if status == "rejected" else []))
        assert {line["document"] for line in lines if line["event"] in names} == meant
    poison = {row["document_id"] for row in rows if "poison" in [problem["code"] for problem in row["problems"]]}
    assert poison
    assert {line["document"] for line in lines if line["event"] == "document_poison"} == poison
    told = [line["event"] for line in lines]
    assert told.count("run_started") == told.count("run_committed") == 1
    assert told.count("engine_started") > 1  # also those in the place of the dead
    assert {"process_died", "unit_committed"} <= set(told)
