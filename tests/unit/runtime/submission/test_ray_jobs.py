"""Ray's own client before a server that answers what a test says: each failure is told so that one knows what to do."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from played_http import DRIVER, INFO, Played, playing

from pipeline.errors import NotReachedError, SubmissionError
from pipeline.runtime.submission.ray_jobs import ADDRESS, HEADERS, RayJobs, address_of
from pipeline.runtime.submission.server import Request


@pytest.fixture
def played() -> Iterator[Played]:
    with playing() as server:
        yield server


def test_a_submission_is_read_without_its_environment(played: Played) -> None:
    played.answers |= {"/api/jobs/nightly-1": (200, INFO), "/api/jobs/": (200, [INFO, DRIVER])}
    server = RayJobs(played.url)
    found = server.find("nightly-1")
    assert found is not None
    assert (found.id, found.status, found.exit_code, found.over) == ("nightly-1", "FAILED", 5, True)
    assert found.metadata == {"gristmill_job": "nightly"}
    assert "hunter2" not in repr(found)
    assert server.all() == [found], "drivers that nobody submitted are none"
    assert server.find("nightly-2") is None


@pytest.mark.parametrize(("status", "word"), [(401, "asks for a token"), (403, "refused the token")])
def test_a_token_that_is_missing_or_wrong_is_told_with_where_to_put_it(played: Played, status: int, word: str) -> None:
    played.answers["/api/version"] = (status, "Unauthorized")
    with pytest.raises(SubmissionError, match=word) as refused:
        RayJobs(played.url)
    assert not isinstance(refused.value, NotReachedError)
    assert all(one in str(refused.value) for one in ("RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token"))
    assert refused.value.exit_code == 12


@pytest.mark.parametrize(("status", "word"), [(401, "asks for a token"), (500, "HTTP 500"), (403, "refused the token")])
def test_following_is_refused_the_same_way(played: Played, status: int, word: str) -> None:
    server = RayJobs(played.url)
    played.answers["/api/jobs/j/logs/tail"] = (status, "no")

    async def tail() -> list[str]:
        return [text async for text in server.tail("j")]

    with pytest.raises(SubmissionError, match=word) as refused:
        asyncio.run(tail())
    assert isinstance(refused.value, NotReachedError) == (status == 500)


def test_ray_says_nothing_of_packages_and_connections_that_is_not_wrong() -> None:
    script = (
        "from pipeline.runtime.submission.package import quiet_ray, _TALKATIVE; quiet_ray()\n"
        "import logging, ray.job_submission\n"
        "print(*(logging.getLogger(name).level for name in _TALKATIVE))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(map(int, done.stdout.split())) == {logging.ERROR}, "where nothing of Ray was imported before"


def test_nobody_there(played: Played) -> None:
    url = played.url
    played.server_close()
    with pytest.raises(NotReachedError, match="no job server answers at http://127"):
        RayJobs(url)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(played: Played) -> None:
    server = RayJobs(played.url, seconds=0.2)
    played.silent = 2.0
    with pytest.raises(NotReachedError):
        server.find("j")


@pytest.mark.parametrize(("status", "again"), [(400, False), (500, True), (503, True)])
def test_a_refused_submission_shows_no_secret(
    played: Played, tmp_path: Any, capfd: pytest.CaptureFixture[str], status: int, again: bool
) -> None:
    server = RayJobs(played.url)
    played.answers["/api/jobs/"] = (status, "x" * 5000 + "ValueError: KEY was hunter2-and-more")
    request = Request("j", "gristmill run x", f"{_zip(tmp_path)}", env={"KEY": "hunter2-and-more"})
    with pytest.raises(SubmissionError, match=r"KEY was \*\*\*") as refused:
        server.submit(request)
    assert isinstance(refused.value, NotReachedError) == again
    assert "hunter2" not in str(refused.value) and len(str(refused.value)) < 1000
    assert capfd.readouterr() == ("", ""), "Ray says nothing on the way"
    (body,) = played.bodies
    assert body["submission_id"] == "j" and body["runtime_env"]["env_vars"] == {"KEY": "hunter2-and-more"}


def _zip(folder: Any) -> str:
    """A working directory of one file; the played server takes any package."""
    (folder / "w").mkdir()
    (folder / "w" / "a").write_text("a", encoding="utf-8")
    return str(folder / "w")


def test_what_is_given_wins_over_rays_variables(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "http://127.0.0.1:9")
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:9")
    assert RayJobs(played.url.removeprefix("http://")).address == played.url
    assert os.environ[ADDRESS] == "http://127.0.0.1:9", "and they stay as they were"
    monkeypatch.setenv(ADDRESS, played.url)
    assert RayJobs().address == played.url


@pytest.mark.parametrize(
    ("given", "meant"),
    [("head:8265", "http://head:8265"), ("https://ray.example.com/", "https://ray.example.com"), (None, None)],
)
def test_addresses(given: str | None, meant: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert address_of(given) == meant


def test_headers_for_a_proxy(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADERS, '{"X-Team": "a"}')
    RayJobs(played.url)
    assert played.headers[0]["X-Team"] == "a"
    monkeypatch.setenv(HEADERS, "X-Team: secret")
    with pytest.raises(SubmissionError, match=HEADERS) as refused:
        RayJobs(played.url)
    assert "secret" not in str(refused.value)
