"""Following: every character of a log once and in order, whatever breaks; and nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from submission_scenes import GONE, PlayedServer

from pipeline.errors import SubmissionError
from pipeline.runtime.submission.follow import Patience, follow, until_over
from pipeline.runtime.submission.server import Submitted

QUICK = Patience(look=0.02, pause=0.0, lost=0.02)


def followed(server: PlayedServer, patience: Patience = QUICK) -> tuple[Submitted | None, str]:
    written: list[str] = []
    return asyncio.run(follow(server, "j", written.append, patience)), "".join(written)


def running() -> PlayedServer:
    return PlayedServer(Submitted("j", "RUNNING"))


def test_a_log_is_written_to_its_end() -> None:
    server = running()
    server.tails = [["one\n", "two\n", server.ends("j")]]
    job, text = followed(server)
    assert text == "one\ntwo\n"
    assert job is not None and job.status == "SUCCEEDED"


@given(
    st.lists(st.text("abc\n", min_size=1, max_size=5), max_size=6), st.lists(st.integers(0, 30), max_size=5), st.data()
)
def test_a_connection_that_breaks_anywhere_costs_no_line_and_doubles_none(
    pieces: list[str], breaks: list[int], data: Any
) -> None:
    whole = "".join(pieces)
    server = running()
    for place in breaks:  # the server sends from the first character each time, in pieces of any size
        cut = data.draw(st.integers(0, place))
        server.tails.append([whole[:cut], whole[cut:place], *data.draw(st.sampled_from([[], [GONE]]))])
    server.tails.append([*pieces, server.ends("j")])
    assert followed(server)[1] == whole


def test_a_connection_that_says_nothing_any_more_is_noticed_when_the_job_is_over() -> None:
    server = running()
    server.text = "one\ntwo\n"
    server.tails = [["one\n", server.ends("j"), lambda: asyncio.sleep(60)]]
    job, text = followed(server)
    assert text == "one\ntwo\n"
    assert job is not None and job.over


def test_a_job_that_works_in_silence_is_waited_for() -> None:
    server = running()
    server.tails = [["one\n", lambda: asyncio.sleep(0.1), "two\n", server.ends("j")]]
    assert followed(server)[1] == "one\ntwo\n"


def test_a_server_that_is_away_for_a_moment_is_asked_again() -> None:
    server = running()
    server.finds = [GONE, GONE]
    server.tails = [["one\n", GONE], [GONE], ["one\n", "two\n", server.ends("j")]]
    assert followed(server, Patience(look=0.02, pause=0.0, lost=30)) == (server.jobs["j"], "one\ntwo\n")


@pytest.mark.parametrize("wait", [followed, lambda server: (asyncio.run(until_over(server, "j", QUICK)), "")])
def test_a_server_that_stays_away_is_given_up(wait: Any) -> None:
    server = running()
    server.finds = [GONE] * 10_000
    assert wait(server)[0] is None


@pytest.mark.parametrize("wait", [followed, lambda server: (asyncio.run(until_over(server, "j", QUICK)), "")])
def test_a_job_that_the_server_forgot_is_lost(wait: Any) -> None:
    server = PlayedServer()
    assert wait(server)[0] is None


def test_a_refusal_is_no_silence() -> None:
    server = running()
    server.tails = [[SubmissionError("asks for a token")]]
    with pytest.raises(SubmissionError, match="token"):
        followed(server)


def test_until_over_returns_how_it_ended() -> None:
    server = PlayedServer(Submitted("j", "FAILED", 5))
    assert asyncio.run(until_over(server, "j", QUICK)) == server.jobs["j"]
