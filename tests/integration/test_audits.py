"""Audits in a whole job: the same outcomes as without, and their figures in tables and totals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.flow import run
from pipeline.observe.clipped import places_of
from pipeline.records import Manifest
from tests.integration.conftest import MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")

OWN = ("audit", "clipped", "run_id")


def rows_of(output: str, manifest: Manifest) -> dict[str, dict[str, Any]]:
    folder = Path(output) / f"run={manifest.run_id}"
    rows = [row for file in manifest.files for row in pq.ParquetFile(folder / file["path"]).read().to_pylist()]
    return {row["document_id"]: row for row in rows}


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    attempts = [
        {k: v for k, v in one.items() if "seconds" not in k and k != "cached_tokens"} for one in row["attempts"]
    ]
    return {name: value for name, value in row.items() if name not in OWN} | {"attempts": attempts}


def test_an_audited_job_has_the_same_outcomes_and_says_what_was_clipped(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    jobs = [
        make_job(documents[:45], "audited", audit={"fraction": fraction}, slot=str(fraction)) for fraction in (0.0, 0.4)
    ]
    manifests = [run(job, lambda event, value: None) for job in jobs]
    plain, audited = (rows_of(job.output, manifest) for job, manifest in zip(jobs, manifests, strict=True))
    assert {key: without_times(row) for key, row in plain.items()} == {
        key: without_times(row) for key, row in audited.items()
    }
    assert {row["audit"] for row in plain.values()} == {""}
    done = [row for row in audited.values() if row["audit"] == "done"]
    assert 8 < len(done) < 30 and all(row["clipped"] for row in done)
    totals = manifests[1].totals
    assert totals["audits"] == {"done": len(done)}
    places = places_of(totals["clipped"])
    assert sum(place.tokens for place in places) == sum(one["tokens"] for row in done for one in row["clipped"])
    assert sum(place.mass for place in places) == pytest.approx(
        sum(one["mass"] for row in done for one in row["clipped"]), abs=1e-3
    )
    assert {place.schema for place in places} == {"receipt@1", "package@1", "advisory@1"}
