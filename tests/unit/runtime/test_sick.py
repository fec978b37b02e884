"""A sick engine stops the job before it turns a unit into rejections; a sick document does not."""

from __future__ import annotations

import pytest
from support import GOOD, attempt

from pipeline.errors import EngineError
from pipeline.flow import extract
from pipeline.job import JobConfig
from pipeline.records import Outcome, Problem
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from pipeline.runtime.supervise.sick import SICK_DOCUMENTS, check_engine


def ended(code: str = "", status: str = "rejected") -> Outcome:
    problems = (Problem(code, message="why", attempt=1),) if code else ()
    record = GOOD if status == "valid" else None
    return Outcome("d", "s", "a@1", status, 0, record, problems, attempts=(attempt(),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (["channel_mismatch"] * SICK_DOCUMENTS, "reasoning parser"),
        (["channel_mismatch"] * SICK_DOCUMENTS + ["engine_error"], "reasoning parser"),
        (["engine_error"] * SICK_DOCUMENTS, "the engine failed on every one of 8 documents"),
        (["engine_error"] * 7 + ["channel_mismatch"], "the engine failed"),
        (["engine_abort"] * 4 + ["deadline_exceeded"] * 4, "deadline_exceeded: why"),
    ],
)
def test_a_unit_that_failed_for_the_engine_alone_stops_the_job(codes: list[str], words: str) -> None:
    with pytest.raises(EngineError, match=words):
        check_engine([ended(code) for code in codes])


@pytest.mark.parametrize(
    "outcomes",
    [
        [ended("channel_mismatch")] * (SICK_DOCUMENTS - 1),
        [ended("channel_mismatch")] * 50 + [ended("", "valid")],
        [ended("channel_mismatch")] * 50 + [ended("not_json")],
        [ended("engine_error")] * 50 + [ended("", "valid")],
        [],
    ],
)
def test_a_unit_with_one_answer_or_with_few_documents_is_written(outcomes: list[Outcome]) -> None:
    check_engine(outcomes)


def test_engines_of_one_process_share_its_gpus() -> None:
    engines = {"big": {"engine": "vllm", "num_gpus": 1}, "unused": {"engine": "vllm", "num_gpus": 4}}
    base = {"name": "t", "input": {"path": "x", "schema": "a@1"}, "output": "o", "engine": {"engine": "vllm"}}
    made = {**base, "engines": engines, "retry": {"ladder": [{"engine": "big"}]}}
    for data, gpus in ((made, 1), ({**base, "engines": engines}, 0)):
        setup = Setup(JobConfig.model_validate(data), {}, open_store("o"), "r", None, extract)
        assert setup.gpus == gpus
