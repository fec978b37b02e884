"""A run is known before it begins: under the id that it will have, without a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import replay_runs
import yaml

from pipeline.job import JobConfig
from pipeline.runtime.known import KnownRun, input_bytes, known_run
from pipeline.runtime.output.run_record import recorded_job
from pipeline.runtime.store import open_store
from pipeline.runtime.submission.prepare import Options, prepare
from pipeline.runtime.submission.server import RUN


def committed(tmp_path: Path, **job: Any) -> tuple[Path, JobConfig]:
    """A run, and the job that made it."""
    run = replay_runs.commit(tmp_path, None, engine={"engine": "sampler"}, **job)
    return run, recorded_job(open_store(str(run)))[0]


def test_a_committed_run_is_found(tmp_path: Path) -> None:
    run, job = committed(tmp_path)
    known = known_run(job)
    assert run.name == f"run={known.run_id}" and known.where == str(run)
    assert known.manifest is not None and known.manifest.run_id == known.run_id
    assert input_bytes(job) == (tmp_path / "in.jsonl").stat().st_size


def test_a_run_that_is_not_there_is_known_and_leaves_no_trace(tmp_path: Path) -> None:
    run, job = committed(tmp_path)
    elsewhere = job.model_copy(update={"output": str(tmp_path / "on the cluster")})
    known = known_run(elsewhere)
    assert known == KnownRun(run.name.removeprefix("run="), f"{elsewhere.output}/{run.name}", None)
    (tmp_path / "in.jsonl").write_text('{"id": "new", "text": "another"}\n', encoding="utf-8")
    assert known_run(elsewhere).run_id != known.run_id
    before = sorted(Path(job.output).rglob("*"))
    known_run(job)
    assert sorted(Path(job.output).rglob("*")) == before
    assert not Path(elsewhere.output).exists()


def test_the_submission_has_the_id_of_the_run(tmp_path: Path) -> None:
    run, job = committed(tmp_path)
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job.model_dump(mode="json", by_alias=True)), encoding="utf-8")
    found = prepare(path, Options(tmp_path))
    assert found.known is not None and found.known.manifest is not None
    assert found.request.id == f"t-{run.name.removeprefix('run=')}"
    assert found.request.metadata[RUN] == found.known.run_id
    assert replace(found, request=found.attempt("t-x")).request.id == "t-x"
