"""A job with a candidate, both runs committed without Ray from answers that are listed here."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import replay_runs
from support import GOOD, Answers, completion

from pipeline.canary import candidate_of
from pipeline.compile.plans import plans_of
from pipeline.job import JobConfig
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.commit import open_run, read_manifest
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.sampled import Sample, Sampled
from pipeline.runtime.store import Store, open_store
from pipeline.steps.rules import NO_LOOKUPS

IDS = [f"d{n}" for n in range(60)]
WELL, BADLY = completion(GOOD, constrained=True), completion('{"vendor": "Ann", "tot', "length", constrained=True)
RATES = ("valid", "format", "semantic")
LOOSE = {f"max_{name}_drop": 0.3 for name in RATES} | {"max_truncation_rise": 0.3, "max_unsupported_rise": 0.5}
LOOSE |= {"min_documents": 10, "max_completeness_drop": 0.5, "alpha": 0.1}
"""Margins that a few dozen documents can keep."""


def settings(tmp_path: Path, **canary: Any) -> dict[str, Any]:
    tape = {"engine": "recorded", "recording": str(tmp_path / "tape")}
    return {
        "name": "t",
        "input": {"path": str(tmp_path / "in.jsonl"), "schema": "receipt@1"},
        "output": str(tmp_path / "out"),
        "schemas": str(tmp_path / "schemas"),
        "engine": tape,
        "engines": {"next": {**tape, "recording": str(tmp_path / "next")}},
        "sampling": {"max_tokens": 120},
        "retry": {"max_attempts": 1},
        "canary": {"engine": "next", "share": 0.5, "gate": LOOSE, **canary},
    }


def job_of(tmp_path: Path, **canary: Any) -> JobConfig:
    """A job whose run is committed: 60 good records."""
    job = settings(tmp_path, **canary)
    run = replay_runs.commit(tmp_path, {key: Answers(WELL) for key in IDS}, **job)
    assert read_manifest(open_store(str(run)))
    return JobConfig.model_validate(job)


def main_run(job: JobConfig) -> Store:
    (folder,) = Path(job.output).glob("run=*")
    return open_store(str(folder))


def commit_candidate(job: JobConfig, answer: Any) -> Path:
    """What `flow.run` makes of the candidate."""
    candidate = candidate_of(job)
    assert job.canary is not None
    output = open_store(candidate.output)
    source = Sampled(candidate, Sample(main_run(job), job.canary.share, job.canary.seed), output)
    found = source.scan(None)
    plans = dict(plans_of(candidate, filter(None, found.schema_counts)).by_name)
    units = [read_unit(unit, candidate.input) for unit in found.units]
    answers = {document.id: Answers(answer) for unit in units for document in unit}
    outcomes = [asyncio.run(replay_runs.extracted(candidate, plans, unit, answers, NO_LOOKUPS)) for unit in units]
    run = open_run(candidate, identity_of(candidate, found, plans, None, source.origin), output, fresh=True)
    for unit, written in zip(found.units, outcomes, strict=True):
        write_unit(unit, written, plans, run.store, run.identity.run_id)
    run.commit(found, {name: plan.schema_digest for name, plan in plans.items()})
    return Path(run.where)


def content(folder: str) -> dict[str, str]:
    """What a folder holds, file by file."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
