"""The report of whole jobs: every figure against the Parquet, faults of all kinds, and a run read in part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recomputed import assert_equal, figures_of, recomputed

from pipeline.flow import run
from pipeline.report.build import write_report
from tests.integration.conftest import MakeJob
from tests.integration.test_sampler_job import FAULTS

pytestmark = pytest.mark.usefixtures("ray_cluster")


def test_every_figure_of_a_job_with_faults(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    rows = [
        *documents[:120],
        {"id": "none", "schema": None, "text": "x"},
        {"id": "blank", "schema": "receipt@1", "text": " "},
    ]
    rows.append(dict(documents[0]))
    parts = {
        "engine": {"faults": FAULTS},
        "policy": {"ground": "degrade"},
        "audit": {"fraction": 0.5},
        "placement": {"unit_documents": 10},
    }
    job = make_job(rows, "faults", stop_if={"rejection": None, "first_pass": None, "truncation": None}, **parts)
    manifest = run(job, lambda event, value: None)
    place = Path(job.output) / f"run={manifest.run_id}"
    page = Path(write_report(str(place))).read_text(encoding="utf-8")
    shown = figures_of(page)
    assert_equal(shown, recomputed(place))
    assert {name for name in shown if name.startswith("alarm|")}
    assert {name for name in shown if name.startswith("clipped|")}
    assert shown["audit|done"][0] > 20
    assert "evenly chosen" not in page
    partly = Path(write_report(str(place), most=40)).read_text(encoding="utf-8")
    read, of = figures_of(partly)["read"]
    assert of == len(rows)
    assert 25 <= read <= 90
    assert "evenly chosen" in partly
    exact = ("status|", "layer|", "path|", "tokens|", "retr", "resolved", "salvaged", "documents", "engine_retries")
    partial = {name: figure for name, figure in figures_of(partly).items() if name.startswith(exact)}
    assert partial == {name: shown[name] for name in partial}  # of all documents, though fewer were read
