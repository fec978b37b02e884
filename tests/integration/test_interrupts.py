"""Ctrl-C and SIGTERM: what is in flight is finished and kept, the exit code says which, the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from one_job import GRISTMILL, Bench

from bench.chaos.judge import answers, outcomes
from pipeline import commands_run

DOCUMENTS = 48

pytestmark = pytest.mark.timeout(600)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(bench: Bench) -> Iterator[Start]:
    """Starts the command in a session of its own: what a terminal sends goes to the whole of it."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        command = [*GRISTMILL, "run", str(bench.path), *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def slow_job(bench: Bench, **safety: Any) -> None:
    """One unit of many documents, of which a few are in flight at any time."""
    bench.write([{"id": f"r{n}", "text": f"Shop {n}\nTOTAL EUR {n}.50"} for n in range(DOCUMENTS)])
    bench.job["engine"] = {"engine": "sampler", "token_seconds": 0.03, "max_num_seqs": 2}
    bench.job["sampling"] = {"max_tokens": 300}
    bench.job["placement"] = {"unit_documents": DOCUMENTS}
    bench.job["safety"] = safety


def recorded(folder: Path) -> int:
    """How many answers the engine has given so far."""
    return sum(answers(folder).values())


def wait_until(process: subprocess.Popen[str], true: Callable[[], bool], seconds: float = 200) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
def test_sigterm_finishes_what_is_in_flight_and_nothing_is_asked_twice(bench: Bench, start: Start) -> None:
    slow_job(bench, drain_seconds=60)
    recording = str(bench.folder / "recording")
    process = start("--record", recording)
    wait_until(process, lambda: recorded(bench.folder) >= 6)
    process.terminate()
    told = process.communicate(timeout=120)[0]
    assert process.returncode == commands_run.TERMINATED, told
    assert "Run the same command to continue" in told.replace("\n", " ")
    assert "Traceback" not in told
    kept = recorded(bench.folder)
    assert 6 <= kept < DOCUMENTS
    assert not list(bench.folder.glob("out/run=*/_commits/*.json")), "the one unit is not done"

    del bench.job["engine"]["token_seconds"]  # speed is not identity
    finished = bench.run("--record", recording)
    assert finished.returncode == 0, finished.stderr
    asked = answers(bench.folder)
    assert len(asked) >= DOCUMENTS
    assert set(asked.values()) == {1}, "a document that was finished before the end was asked again"
    assert set(outcomes(bench.folder)) == {f"r{n}" for n in range(DOCUMENTS)}


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once(bench: Bench, start: Start) -> None:
    slow_job(bench, drain_seconds=300)
    bench.job["engine"] |= {"token_seconds": 2.0}  # nothing in flight will end soon
    process = start("--record", str(bench.folder / "recording"))
    wait_until(process, lambda: any(bench.folder.glob("recording/*.jsonl")))
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(3)
    assert process.poll() is None, "it did not wait for what is in flight"
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == commands_run.INTERRUPTED, told
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.parametrize("when", ["at once", "opened"])
def test_ctrl_c_before_anything_runs_leaves_a_run_that_can_go_on(bench: Bench, start: Start, when: str) -> None:
    process = start()
    if when == "opened":
        wait_until(process, lambda: any(bench.folder.glob("out/run=*/_lease/*")))
    else:
        time.sleep(2.5)
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=120)[0]
    assert process.returncode == commands_run.INTERRUPTED, told
    assert "Traceback" not in told
    finished = bench.run()
    assert finished.returncode == 0, finished.stderr
    assert set(outcomes(bench.folder)) == {"r1"}
