"""The same job on the same input is the same run; what changes an outcome is named, what does not is not looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import RECEIPT


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
        {"engine": {"engine": "sampler", "max_num_seqs": 3, "token_seconds": 0.1, "num_gpus": 1}},
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
