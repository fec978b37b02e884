"""`run.json` keeps the job, so that a document can be replayed, and nothing that should stay secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.errors import OutputError
from pipeline.runtime.output.run_record import recorded_job

SECRETS = {
    "engine": "vllm",
    "environment": {"HF_TOKEN": "SECRET", "VLLM_CPU_KVCACHE_SPACE": "2"},
    "engine_args": {
        "hf_token": "SECRET",
        "max_loras": 2,
        "speculative_config": {"api_key": "SECRET", "num_speculative_tokens": 3},
        "hosts": [{"auth": "SECRET", "aws_secret_access_key": "SECRET", "url": "https://me:SECRET@host/v1?sig=SECRET"}],
    },
}


def test_the_job_of_a_run_comes_back_as_it_was(make_work: Any) -> None:
    work = make_work(
        params={"limit": 5},
        policy={"preset": "classification"},
        retry={"ladder": [{"temperature": 0.5, "engine": "big"}]},
        engines={"big": {"engine": "sampler", "seed": 2}},
        slot="2026-11-30",
    )
    store = work.open().store
    assert recorded_job(store) == (work.job, ())
    assert json.loads(store.get("run.json"))["job"]["input"]["schema"] == "receipt@1"


def test_secrets_of_engines_and_paths_are_left_out_and_their_names_kept(make_work: Any, tmp_path: Any) -> None:
    work = make_work(
        engine=SECRETS,
        engines={"big": SECRETS},
        retry={"ladder": [{"engine": "big"}]},
        params={"limit": 1, "credentials": {"user": "SECRET"}},
        input={"path": f"file://{tmp_path}/in.jsonl?key=SECRET", "schema": "receipt@1"},
    )
    lookup = {"pointer": "/vendor", "path": "s3://user:SECRET@bucket/a.csv?k=SECRET", "column": "no"}
    job = type(work.job).model_validate({**work.job.model_dump(by_alias=True), "lookups": [lookup]})
    work.job = job
    store = work.open().store
    assert b"SECRET" not in store.get("run.json")
    kept, lacks = recorded_job(store)
    assert lacks == (
        "engine.environment.HF_TOKEN",
        "engine.environment.VLLM_CPU_KVCACHE_SPACE",
        "engines.big.environment.HF_TOKEN",
        "engines.big.environment.VLLM_CPU_KVCACHE_SPACE",
        "params.credentials",
        "engine.engine_args.hf_token",
        "engine.engine_args.speculative_config.api_key",
        "engine.engine_args.hosts.0.auth",
        "engine.engine_args.hosts.0.aws_secret_access_key",
        "engines.big.engine_args.hf_token",
        "engines.big.engine_args.speculative_config.api_key",
        "engines.big.engine_args.hosts.0.auth",
        "engines.big.engine_args.hosts.0.aws_secret_access_key",
    )
    assert kept.engine.engine_args == {
        "max_loras": 2,
        "speculative_config": {"num_speculative_tokens": 3},
        "hosts": [{"url": "https://host/v1"}],
    }
    assert kept.lookups[0].path == "s3://bucket/a.csv"
    assert job.engine.environment["HF_TOKEN"] == "SECRET"  # the job itself is as it was


def test_a_run_of_an_earlier_version_still_opens_and_says_what_it_lacks(work: Any) -> None:
    run = work.open()
    record = json.loads(run.store.get("run.json"))
    left = {key: value for key, value in record.items() if key not in ("job", "job_lacks", "attempt")}
    run.store.put("run.json", json.dumps(left).encode())
    assert work.open().started == run.started
    assert work.finish(work.open()).documents == 12
    with pytest.raises(OutputError, match=r"earlier version.*give the job file"):
        recorded_job(run.store)


@pytest.mark.parametrize("job", [{}, None, {"name": "x"}, [1]])
def test_a_job_that_is_none_is_told(work: Any, job: Any) -> None:
    store = work.open().store
    store.put("run.json", json.dumps({**json.loads(store.get("run.json")), "job": job}).encode())
    with pytest.raises(OutputError, match="the job in"):
        recorded_job(store)
    store.delete("run.json")
    with pytest.raises(OutputError, match="missing"):
        recorded_job(store)
