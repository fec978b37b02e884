"""Whatever ends first, the caller, the zygote or the sandbox: nothing of it stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from sandbox_jobs import LONG, bare, gone, job, until, written

from pipeline.compile.sandbox import Sandbox
from pipeline.errors import EngineError

HERE = Path(__file__).parent


@contextmanager
def running(sandbox: Sandbox, name: str, payload: str) -> Iterator[None]:
    """A job that another thread waits for, and is told of the end of."""
    told: list[EngineError] = []

    def wait() -> None:
        try:
            sandbox.call(job(name, payload, LONG))
        except EngineError as error:
            told.append(error)

    worker = threading.Thread(target=wait)
    worker.start()
    yield
    worker.join(10)
    assert not worker.is_alive()
    assert told


def test_closing_is_prompt_and_leaves_nothing(tmp_path: Path) -> None:
    own = bare()
    zygote = own.start().pid
    with running(own, "children", str(tmp_path / "pids")):
        pids = written(tmp_path / "pids", 2)
        started = time.monotonic()
        own.close()
        assert time.monotonic() - started < 20
    assert until(lambda: gone(zygote, *pids))


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
sys.path[:0] = sys.argv[2:]
from pipeline.compile.sandbox import Job, Limits, Sandbox
try:
    with Sandbox(None, 1, ("sandbox_jobs",)) as sandbox:
        sandbox.call(Job("self_test_children", sys.argv[1], Limits(60)))
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_parent(tmp_path: Path, sent: signal.Signals) -> None:
    # A group of its own, as the terminal's foreground group would be.
    command = [sys.executable, "-c", PARENT, str(tmp_path / "pids"), str(HERE), str(HERE.parents[2])]
    parent = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    job_pid, sleeper = written(tmp_path / "pids", 2)
    zygote = psutil.Process(job_pid).ppid()
    os.killpg(parent.pid, sent)
    _, said = parent.communicate(timeout=5)
    assert (said.strip() == "interrupted") is (sent == signal.SIGINT)
    assert until(lambda: gone(zygote, job_pid, sleeper))


def test_a_zygote_that_is_killed_takes_its_jobs_along(tmp_path: Path) -> None:
    own = bare()
    zygote = own.start().pid
    with running(own, "hang", str(tmp_path / "pid")):
        (pid,) = written(tmp_path / "pid")
        os.kill(zygote, signal.SIGKILL)
        assert until(lambda: gone(pid))
        own.close()
