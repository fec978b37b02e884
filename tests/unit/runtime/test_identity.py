"""The same job on the same input is the same run; what changes an outcome is named, what does not is not looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support import RECEIPT

from pipeline.job import ExtractConfig
from pipeline.runtime.input import scan
from pipeline.runtime.output.identity import identity_of

SAMPLER = ("backend", "compact_json", "engine", "faults", "max_model_len", "model", "seed")


def test_the_same_work_is_the_same_run(make_work: Any) -> None:
    assert make_work().identity == make_work().identity
    assert make_work().identity.run_id == make_work().identity.run_id


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"sampling": {"temperature": 0.5}}, ["sampling.temperature"]),
        ({"sampling": {"max_tokens": 9}}, ["sampling.max_tokens"]),
        ({"retry": {"max_attempts": 5}}, ["retry.max_attempts"]),
        ({"policy": {"degraded": False}}, ["policy.degraded"]),
        ({"policy": {"ground": "degrade"}}, ["policy.ground"]),
        ({"policy": {"confidence": True}}, ["policy.confidence"]),
        ({"policy": {"abstain": "nullable"}}, ["policy.abstain"]),
        ({"policy": {"preset": "synthetic"}}, ["policy.degraded", "policy.ground", "retry.max_attempts"]),
        ({"clean": ["ocr"]}, ["clean"]),
        ({"cite": "lines"}, ["cite"]),
        ({"params": {"limit": 5}}, ["params.limit"]),
        ({"retry": {"ladder": [{"temperature": 0.7}]}}, ["retry.ladder"]),
        (
            {"retry": {"ladder": [{"engine": "big"}]}, "engines": {"big": {"engine": "sampler", "seed": 9}}},
            [*(f"engines.big.{key}" for key in SAMPLER), "retry.ladder"],
        ),
        ({"engine": {"engine": "sampler", "seed": 3}}, ["engine.seed"]),
        ({"engine": {"engine": "sampler", "backend": "guidance"}}, ["engine.backend"]),
        ({"body": {**RECEIPT, "required": []}}, ["grammar of receipt@1", "prompt of receipt@1", "schema receipt@1"]),
        ({"body": {**RECEIPT, "description": "d"}}, ["prompt of receipt@1", "schema receipt@1"]),
    ],
)
def test_what_changes_outcomes_changes_the_run_and_is_named(make_work: Any, change: Any, names: list[str]) -> None:
    before, after = make_work().identity, make_work(**change).identity
    assert before.run_id != after.run_id
    assert before.origin == after.origin
    assert after.differences(before.work) == names


@pytest.mark.parametrize(
    "change",
    [
        {"placement": {"actors": 3, "unit_documents": 2}},
        {"audit": {"fraction": 0.5, "seed": 7}},
        {"engine": {"engine": "sampler", "max_num_seqs": 3, "token_seconds": 0.1, "num_gpus": 1}},
        {"policy": {"preset": "extraction", "ground": "observe"}},
        {"engines": {"unused": {"engine": "sampler", "seed": 9}}},
    ],
)
def test_speed_and_place_change_no_run(make_work: Any, change: Any) -> None:
    assert make_work(**change).identity.run_id == make_work().identity.run_id


def test_slot_name_and_input_make_another_run_of_other_origin(make_work: Any, tmp_path: Path) -> None:
    before = make_work().identity
    for change in ({"slot": "2026-11-30"}, {"name": "u"}):
        other = make_work(**change).identity
        assert other.run_id != before.run_id
        assert other.origin != before.origin
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write('{"id": "d12", "text": "more"}\n')
    work = make_work()
    assert work.identity.origin != before.origin


def test_secrets_of_an_engine_are_in_no_identity(make_work: Any) -> None:
    plain = {"engine": "vllm", "engine_args": {"max_loras": 2}}
    secret = {"engine": "vllm", "engine_args": {"max_loras": 2, "hf_token": "SECRET"}, "environment": {"K": "SECRET"}}
    before, after = make_work(engine=plain).identity, make_work(engine=secret).identity
    assert before == after
    assert "SECRET" not in str(after.work)
    assert before.work["engine.engine_args"] == {"max_loras": 2}


def test_every_key_that_an_extraction_depends_on_is_in_the_work(make_work: Any) -> None:
    """A key that is added to a job is in the identity, or a run would be continued under another value."""
    work = make_work(params={"a": 1}).identity.work
    for section, field in ExtractConfig.model_fields.items():
        if section == "audit":  # it decides nothing
            assert not any(key.startswith("audit") for key in work)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys = {f"{section}.{key}" for key in field.annotation.model_fields} - {"policy.preset"}
            assert keys <= work.keys()
        else:
            assert section in {key.partition(".")[0] for key in work}, section


def test_other_columns_for_rules_are_other_work_on_the_same_input(make_work: Any) -> None:
    work = make_work()
    job = work.job.model_copy(update={"input": work.job.input.model_copy(update={"columns": ("text",)})})
    after = identity_of(job, scan(job.input, 5), work.plans)
    assert after.differences(work.identity.work) == ["input.columns"]
    assert after.origin == work.identity.origin
