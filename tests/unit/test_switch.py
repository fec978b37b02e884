"""The switch: one small file that the next run reads, whatever the job file says, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import replay_runs
from support import GOOD, Answers

from pipeline.errors import JobFileError, OutputError
from pipeline.job import JobConfig
from pipeline.runtime.known import known_run
from pipeline.runtime.output.run_record import read_run_record, recorded_job
from pipeline.runtime.store import open_store
from pipeline.runtime.switch import CONSTRAINED, read_switch, set_switch, switched


def job_of(output: Path, **job: Any) -> JobConfig:
    base = {"name": "t", "input": {"path": "in.jsonl", "schema": "receipt@1"}, "engine": {"engine": "sampler"}}
    return JobConfig.model_validate({**base, "output": str(output), **job})


def test_the_switch_turns_the_constraint_off_and_back_and_nothing_else(tmp_path: Path) -> None:
    job, store = job_of(tmp_path), open_store(str(tmp_path))
    assert read_switch(store, "t") is None and switched(job, None) is job
    set_switch(job, store, "free", "aborts since the upgrade")
    found = read_switch(store, "t")
    assert found is not None and found.state == "free"
    assert "aborts since the upgrade" in found.told("t") and "--switch constrained" in found.told("t")
    free = switched(job, found)
    assert not free.sampling.constrained
    assert free.model_copy(update={"sampling": job.sampling}) == job
    assert read_switch(store, "other") is None
    set_switch(job, store, "constrained")
    assert switched(job, read_switch(store, "t")) == job


def test_a_job_that_has_no_constraint_itself_cannot_be_given_one(tmp_path: Path) -> None:
    job, store = job_of(tmp_path, sampling={"constrained": False}), open_store(str(tmp_path))
    with pytest.raises(JobFileError, match="says `sampling"):
        set_switch(job, store, "constrained")
    assert read_switch(store, "t") is None
    set_switch(job, store, "free")
    assert switched(job, read_switch(store, "t")) == job


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"state": "of"}', b"\xff"])
def test_a_switch_that_cannot_be_read_is_not_guessed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "_switch").mkdir()
    (tmp_path / "_switch" / "t.json").write_bytes(data)
    with pytest.raises(OutputError, match="--switch free"):
        read_switch(open_store(str(tmp_path)), "t")


def test_the_next_run_is_another_one_whose_identity_says_so(tmp_path: Path) -> None:
    run = replay_runs.commit(tmp_path, {"a": Answers(GOOD)})
    job = recorded_job(open_store(str(run)))[0]
    store = open_store(job.output)
    set_switch(job, store, "free")
    assert known_run(job).manifest is None
    free = replay_runs.run(switched(job, read_switch(store, job.name)), {"a": Answers(GOOD)})
    known = known_run(job)
    assert known.manifest is not None and free.name == f"run={known.run_id}"
    record = read_run_record(open_store(str(free))) or {}
    assert record["work"][CONSTRAINED] is False and record["job"]["sampling"]["constrained"] is False
    set_switch(job, store, "constrained")
    assert known_run(job).manifest is None
