"""Submitting twice is submitting once; what ended gets a new id; two runs of a job do not meet unasked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from submission_scenes import PlayedServer, write_job

from pipeline.errors import NotReachedError, RunBusyError, SubmissionError
from pipeline.runtime.submission.names import attempt_of, next_id
from pipeline.runtime.submission.prepare import Options, Prepared, prepare
from pipeline.runtime.submission.receipt import VARIABLE
from pipeline.runtime.submission.sending import Sent, of_job, send
from pipeline.runtime.submission.server import Submitted


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    write_job(tmp_path / "work")
    return prepare(tmp_path / "work/jobs/nightly.yaml", Options(tmp_path / "work", by="job"))


def never(_other: str) -> None:
    raise AssertionError("waited")


def sent(server: PlayedServer, prepared: Prepared, overlap: Any = "refuse", wait: Any = never) -> Sent:
    return send(server, prepared, overlap, wait)


def test_the_second_time_it_is_followed(prepared: Prepared) -> None:
    server, base = PlayedServer(), prepared.request.id
    assert sent(server, prepared) == Sent(base, new=True)
    assert sent(server, prepared) == Sent(base, new=False)
    assert [request.id for request in server.requests] == [base]
    assert server.requests[0].env[VARIABLE] == base


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "SUCCEEDED"])
def test_what_ended_is_attempted_again_under_the_next_id(prepared: Prepared, status: str) -> None:
    server, base = PlayedServer(), prepared.request.id
    for number in (1, 2, 3):
        job_id = sent(server, prepared).id
        assert job_id == (base if number == 1 else f"{base}-{number}")
        assert attempt_of(job_id, base) == number
        assert server.requests[-1].env[VARIABLE] == job_id, "its driver is told its own id"
        server.ends(job_id, status)()


def test_ids_that_left_a_receipt_are_not_used_again_on_a_cluster_that_forgot_them(prepared: Prepared) -> None:
    base, folder = prepared.request.id, Path(prepared.job.output, "_submissions")
    folder.mkdir(parents=True)
    for number in ("", "-2", "-9"):
        (folder / f"{base}{number}.json").write_text("{}", encoding="utf-8")
    assert sent(PlayedServer(), prepared).id == f"{base}-10"


def test_an_id_that_ray_does_not_take_any_more_is_passed_over(prepared: Prepared) -> None:
    server, base = PlayedServer(), prepared.request.id
    server.answers = [NotReachedError(f"HTTP 500: Job with submission_id {base} already exists.")]
    assert sent(server, prepared).id == f"{base}-2"


def test_an_answer_that_got_lost_is_asked_for(prepared: Prepared) -> None:
    server = PlayedServer()
    server.answers = [NotReachedError("lost on the way back")]
    assert sent(server, prepared) == Sent(prepared.request.id, new=True)
    server = PlayedServer()
    server.answers = [NotReachedError("never arrived")]
    with pytest.raises(NotReachedError, match="never arrived"):
        sent(server, prepared)


def test_a_server_that_takes_no_id_is_not_asked_for_ever(prepared: Prepared) -> None:
    server = PlayedServer()
    server.answers = [NotReachedError("already exists")] * 99
    with pytest.raises(SubmissionError, match="Submit again"):
        sent(server, prepared)


@pytest.fixture
def other(prepared: Prepared) -> Submitted:
    return Submitted("nightly-of-yesterday", "RUNNING", metadata=prepared.request.metadata)


def test_another_run_of_the_job_that_is_under_way_refuses(prepared: Prepared, other: Submitted) -> None:
    server = PlayedServer(other)
    with pytest.raises(RunBusyError, match="nightly-of-yesterday") as refused:
        sent(server, prepared)
    assert refused.value.exit_code == 9
    assert not server.requests


def test_it_can_be_waited_for_however_often_the_next_one_is_there(prepared: Prepared, other: Submitted) -> None:
    server, waited = PlayedServer(other), []

    def wait(job_id: str) -> None:
        waited.append(job_id)
        server.ends(job_id)()
        if len(waited) < 12:
            server.jobs[f"x{len(waited)}"] = replace(other, id=f"x{len(waited)}")

    assert sent(server, prepared, "queue", wait).new
    assert len(waited) == 12


def test_it_can_be_allowed(prepared: Prepared, other: Submitted) -> None:
    assert sent(PlayedServer(other), prepared, "allow").new


def test_jobs_of_another_name_or_output_do_not_concern(prepared: Prepared, other: Submitted) -> None:
    strangers = [
        replace(other, id="a", metadata={}),
        replace(other, id="b", metadata={**other.metadata, "gristmill_job": "x"}),
    ]
    assert sent(PlayedServer(*strangers), prepared).new
    assert of_job([*strangers, other], prepared.job.name, prepared.job.output) == [other]


def test_numbers_are_of_their_base_alone() -> None:
    assert next_id("a-1", ["a-1-3", "a-1-x", "a-10", "b", "a-1-03"]) == "a-1-4"
    assert next_id("a", []) == "a"
    assert attempt_of("axb", "a.b") is None
