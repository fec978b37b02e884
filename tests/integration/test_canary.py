"""A candidate on local Ray: its share, a kill in the middle of it, its verdict, and a run that knows nothing of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from pipeline.canary import Judged, candidate_of, try_candidate
from pipeline.flow import run
from pipeline.job import JobConfig
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.gather import committed_units
from pipeline.runtime.sampled import Sample
from pipeline.runtime.store import open_store
from tests.integration.conftest import MakeJob
from tests.integration.test_sampler_job import rows_of

pytestmark = pytest.mark.usefixtures("ray_cluster")

LOOSE = {f"max_{name}_drop": 0.3 for name in ("valid", "format", "semantic")} | {"max_truncation_rise": 0.3}
LOOSE |= {"min_documents": 20, "max_completeness_drop": 0.5, "max_unsupported_rise": 0.5, "alpha": 0.1}


class KilledError(Exception):
    """Stands for the death of the driver."""


def content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def killed_after_a_unit(job: JobConfig, of: Any) -> None:
    """Begin the candidate; the driver dies as soon as one of its units is committed."""
    opened: list[Any] = []

    def observe(event: str, value: Any) -> None:
        if event == "opened":
            opened.append(value)
        if event == "progress" and committed_units(opened[0].store):
            raise KilledError

    with pytest.raises(KilledError):
        try_candidate(job, of, observe)
    assert read_manifest(opened[0].store) is None


def test_a_candidate_is_killed_goes_on_and_is_judged(
    documents: list[dict[str, Any]], make_job: MakeJob, tmp_path: Path
) -> None:
    rows = [row for row in documents if row["schema"] == "package@1"][:72]
    tape = {"engine": "recorded", "recording": str(tmp_path / "tape")}
    parts = {"engines": {"next": tape}, "canary": {"engine": "next", "share": 0.5, "gate": LOOSE}}
    job = make_job(rows, placement={"unit_documents": 6}, **parts)
    manifest = run(job, lambda _event, _value: None, record=tape["recording"])
    of = open_store(job.output).at(f"run={manifest.run_id}")
    before = content(Path(of.where))
    killed_after_a_unit(job, of)
    judged = try_candidate(job, of, lambda _event, _value: None)
    assert (judged.verdict, judged.error) == ("promote", None)  # the same answers, played by another engine
    check(job, judged, {row["id"] for row in rows if Sample(of, 0.5, 0).holds(row["id"])})
    events: list[str] = []
    again = try_candidate(job, of, lambda event, _value: events.append(event))
    assert again.before and again.verdict == "promote" and events == ["compared", "done"]
    assert content(Path(of.where)) == before


def check(job: JobConfig, judged: Judged, expected: set[str]) -> None:
    """The candidate's run holds each document of the share once, and no other."""
    candidate = read_manifest(open_store(str(judged.told["run"])))
    assert candidate is not None and candidate.job == "job.canary"
    written = [row["document_id"] for row in rows_of(candidate_of(job).output, candidate)]
    assert sorted(written) == sorted(expected) and 20 < len(written) < 60
    assert judged.told["documents"] == len(written)
