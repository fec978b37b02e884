"""Jobs by the job server of a real Ray head with a token: submitted, done once, killed, cancelled, resumed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from one_job import GRISTMILL, ROOT, Bench

from bench.chaos.herd import Herd, kill
from bench.chaos.nodes import Nodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMAND = shlex.join([sys.executable, "-c", "from pipeline.cli import main; main()"])
DOCUMENTS = 16
DRAIN = 60
WAIT = 300
RAYS_OWN_WAIT = 3.0
"""Seconds after which Ray kills a driver that it was not told to wait for."""


@pytest.fixture(scope="module")
def head() -> Iterator[tuple[Herd, Nodes]]:
    """A Ray head that takes jobs from who has its token."""
    herd = Herd()
    nodes = Nodes(herd, dashboard=True)
    try:
        nodes.start(cpus=2)
        yield herd, nodes
    finally:
        left = herd.end()
        nodes.remove()
        assert not left


class Site:
    """A job folder beside its output, and commands that talk to the head."""

    def __init__(self, folder: Path, herd: Herd, nodes: Nodes) -> None:
        self.herd, self.nodes = herd, nodes
        (folder / "work").mkdir()
        self.bench = Bench(folder / "work")
        self.folder = folder
        self.bench.job["output"] = str(folder / "out")
        self.bench.job["schemas"] = "schemas"
        (folder / "work/schemas").symlink_to(ROOT / "schemas")
        self.bench.write([{"id": f"r{n}", "text": f"Shop {n}\nTOTAL EUR {n}.50"} for n in range(DOCUMENTS)])

    def call(self, command: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(command, *words, **environment)
        out = process.communicate(timeout=WAIT)[0]
        return subprocess.CompletedProcess(words, process.returncode, out)

    def start(self, command: str, *words: str, **environment: str) -> subprocess.Popen[str]:
        mine = {**self.nodes.environment, "COLUMNS": "200", **environment}
        del mine["RAY_ADDRESS"]
        more = ["--command", COMMAND, "--working-dir", str(self.folder / "work")] if command == "submit" else []
        line = [*GRISTMILL, command, *words, "--address", self.nodes.job_server, *more]
        return subprocess.Popen(line, env=mine, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def status(self) -> list[dict[str, Any]]:
        told = self.call("status", str(self.bench.path), "--json")
        assert told.returncode == 0, told.stdout
        found: list[dict[str, Any]] = json.loads(told.stdout)
        return found

    def slow(self, name: str, token_seconds: float) -> None:
        """A job with documents of 30 tokens; four are in flight at a time."""
        self.bench.job |= {
            "name": name,
            "engine": {"engine": "sampler", "token_seconds": token_seconds, "max_num_seqs": 4},
            "sampling": {"max_tokens": 30},
            "placement": {"unit_documents": 4},
            "safety": {"drain_seconds": DRAIN},
        }

    def committed(self) -> int:
        return len(list(self.folder.glob("out/run=*/_commits/*.json")))

    def verify(self) -> None:
        """The run is committed with every document once, by the independent checker."""
        (run,) = self.folder.glob("out/run=*")
        command = [sys.executable, "-m", "tests.crash.checker", str(run), str(self.bench.input)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: Path, head: tuple[Herd, Nodes]) -> Site:
    return Site(tmp_path, *head)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)


def drivers(herd: Herd) -> list[psutil.Process]:
    """The processes that drive a job on the cluster."""
    found = []
    for one in herd.all():
        try:
            words = one.cmdline()
        except psutil.Error:
            continue
        if words[:1] == [sys.executable] and "run" in words and words[-1].endswith("job.yaml"):
            found.append(one)
    return found


def test_a_job_is_followed_to_its_manifest_and_the_same_again_does_nothing(site: Site) -> None:
    site.bench.job["name"] = "once"
    first = site.call("submit", str(site.bench.path), "--env", "SECRET_OF_A_TEST", SECRET_OF_A_TEST="hunter2-and-more")
    assert first.returncode == 0, first.stdout
    (run,) = site.folder.glob("out/run=*")
    assert "by the run's id" in first.stdout and f"id: once-{run.name[4:]}" in first.stdout, "known before it began"
    assert first.stdout.count(f"{DOCUMENTS} documents: {DOCUMENTS} receipt@1") == 1, "the log, once"
    assert "hunter2" not in first.stdout and "SECRET_OF_A_TEST" in first.stdout
    receipt = json.loads((site.folder / f"out/_submissions/once-{run.name[4:]}.json").read_text(encoding="utf-8"))
    assert f"run={receipt['run_id']}" == run.name
    second = site.call("submit", str(site.bench.path))
    assert second.returncode == 0 and "nothing to do" in second.stdout, second.stdout
    third = site.call("submit", str(site.bench.path), "--id-by", "job")
    assert third.returncode == 0 and "nothing to do" in third.stdout, "the cluster says so, too"
    assert [(row["status"], row["exit_code"], row["output"]) for row in site.status()] == [
        ("SUCCEEDED", 0, "committed")
    ] * 2


def test_a_second_command_follows_and_a_driver_that_is_killed_is_gone_on_after(site: Site) -> None:
    site.slow("killed", 0.1)
    started = site.call("submit", str(site.bench.path), "--no-follow")
    assert started.returncode == 0, started.stdout
    interrupted = site.start("submit", str(site.bench.path))
    lines = iter(interrupted.stdout or ())
    assert any("Running entrypoint" in line for line in lines)
    interrupted.send_signal(signal.SIGINT)
    assert "goes on" in interrupted.communicate(timeout=WAIT)[0]
    assert interrupted.returncode == 130
    follower = site.start("submit", str(site.bench.path))
    until(lambda: site.committed() > 0)
    assert [row["status"] for row in site.status()][:1] == ["RUNNING"]
    killed = [one for one in drivers(site.herd) if kill(one)]
    assert killed
    told = follower.communicate(timeout=WAIT)[0]
    assert "runs already" in told
    assert follower.returncode == 137, told
    kept = site.committed()
    site.slow("killed", 0)  # speed is not identity
    again = site.call("submit", str(site.bench.path))
    assert again.returncode == 0, again.stdout
    assert "submitted: killed-" in again.stdout and "-2\n" in again.stdout
    assert "resuming" in again.stdout and kept, "what was committed was not done again"
    site.verify()


def test_ray_waits_for_the_drain_of_a_job_that_is_cancelled(site: Site) -> None:
    site.slow("cancelled", 0.3)  # a document takes longer than Ray's own patience
    started = site.call("submit", str(site.bench.path), "--no-follow")
    assert started.returncode == 0, started.stdout
    site.bench.job["slot"] = "another"
    busy = site.call("submit", str(site.bench.path))
    assert busy.returncode == 9 and "another submission of this job" in busy.stdout, busy.stdout
    del site.bench.job["slot"]
    until(lambda: site.committed() > 0)
    began = time.monotonic()
    cancelled = site.call("cancel", str(site.bench.path))
    assert cancelled.returncode == 0 and "What was finished is kept" in cancelled.stdout, cancelled.stdout
    row = site.status()[0]
    assert (row["status"], row["exit_code"], row["output"]) == ("STOPPED", 143, "absent")
    assert time.monotonic() - began > RAYS_OWN_WAIT
    log = site.nodes.folder.glob(f"session_*/logs/job-driver-{row['id']}.log")
    assert "Documents finished so far are kept" in next(log).read_text(encoding="utf-8"), "it was killed in its drain"
    site.slow("cancelled", 0)
    again = site.call("submit", str(site.bench.path))
    assert again.returncode == 0, again.stdout
    assert f"{row['id']}-2" in again.stdout
    site.verify()


def test_a_wrong_token_and_none_are_told(site: Site) -> None:
    wrong = site.call("submit", str(site.bench.path), RAY_AUTH_TOKEN="a-wrong-token")
    assert wrong.returncode == 12 and "refused the token" in wrong.stdout, wrong.stdout
    assert "a-wrong-token" not in wrong.stdout
    none = site.call("status", "t-1", RAY_AUTH_MODE="disabled")
    assert none.returncode == 12 and "asks for a token" in none.stdout, none.stdout
    unknown = site.call("status", "t-1")
    assert unknown.returncode == 12 and "knows no submission t-1" in unknown.stdout
