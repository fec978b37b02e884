"""A job spread over two Ray nodes (two raylets on this machine, with declared GPUs) that loses one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.chaos import jobs
from bench.chaos.command import Command, committed_units, is_committed, prepare
from bench.chaos.herd import Herd, kill
from bench.chaos.judge import check, outcomes
from bench.chaos.nodes import Nodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DOCUMENTS = 160
SECONDS = 120
STALL_SECONDS = 15


class Site:
    """Two nodes and a job that is running on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.herd = Herd()
        self.nodes = Nodes(self.herd)
        self.documents = jobs.documents(DOCUMENTS)

    def prepare(self, placement: dict[str, Any], gpus: int = 1, **safety: float) -> None:
        """A job that is slow enough to be met in the middle, with so many GPUs an engine."""
        job = jobs.job("local", "sampler")
        job["placement"] = {"unit_documents": 10, **placement}
        job["engine"] |= {"num_gpus": gpus, "token_seconds": 0.02, "max_num_seqs": 4}
        job["safety"] |= safety
        prepare(self.folder, job, self.documents)

    def start(self) -> Command:
        return Command(self.folder, self.nodes.environment)

    def roles_on(self, raylet: psutil.Process, role: str) -> list[psutil.Process]:
        """Processes of a role that this raylet started."""
        return [one for one in self.herd.of_role(role) if one.ppid() == raylet.pid]

    def verify(self) -> None:
        """Every document once, by the independent checker, and none blamed for the death of a node."""
        assert check(self.folder) == ""
        found = outcomes(self.folder)
        assert set(found) == {row["id"] for row in self.documents}
        assert not any(row.poison for row in found.values())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    one = Site(tmp_path / "job")
    try:
        yield one
    finally:
        left = one.herd.end()
        one.nodes.remove()
        assert not left


def wait_for(command: Command, true: Callable[[], bool]) -> None:
    """Until something is so; fails if the command ends before, or nothing comes of it."""
    while not true():
        assert command.process.poll() is None, command.words()
        assert command.seconds < SECONDS, command.words()
        time.sleep(0.1)


def test_a_job_on_two_nodes_survives_the_loss_of_one(site: Site) -> None:
    head, second = site.nodes.start(gpus=1), site.nodes.start(gpus=1)
    site.prepare({"kind": "actors", "min_engines": 2, "max_engines": 2, "cpu_actors": 2})
    command = site.start()
    wait_for(command, lambda: committed_units(site.folder) >= 1)
    # Engines and the processes that call them are spread, one of each a node.
    for role in ("engine", "worker"):
        assert [len(site.roles_on(raylet, role)) for raylet in (head, second)] == [1, 1], role
    assert kill(second)
    assert command.wait(SECONDS) == 0, command.words()
    site.verify()


def test_a_node_that_replaces_a_lost_one_takes_its_engine_over(site: Site) -> None:
    site.nodes.start(gpus=1)
    second = site.nodes.start(gpus=1)
    site.prepare({"kind": "local", "actors": 2})
    command = site.start()
    wait_for(command, lambda: committed_units(site.folder) >= 1 and len(site.herd.of_role("worker")) == 2)
    assert len(site.roles_on(second, "worker")) == 1
    assert kill(second)
    third = site.nodes.start(gpus=1)
    wait_for(command, lambda: bool(site.roles_on(third, "worker")))
    assert command.wait(SECONDS) == 0, command.words()
    site.verify()


def test_losing_all_engines_ends_the_command_in_finite_time_and_it_can_go_on(site: Site) -> None:
    site.nodes.start(cpus=1)
    second = site.nodes.start(cpus=4, gpus=2)
    site.prepare(
        {"kind": "actors", "max_engines": 2, "cpu_actors": 2, "start_seconds": STALL_SECONDS},
        stall_seconds=STALL_SECONDS,
    )
    command = site.start()
    wait_for(command, lambda: committed_units(site.folder) >= 1)
    assert kill(second)
    code = command.wait(SECONDS)
    assert code in (5, 11), command.words()
    assert "run the same command" in command.words()
    assert not is_committed(site.folder)
    site.nodes.start(cpus=4, gpus=2)
    again = site.start()
    assert again.wait(SECONDS) == 0, again.words()
    assert "resuming" in again.words()
    site.verify()


def test_a_head_that_is_to_do_no_work_gets_no_process_without_gpus(site: Site) -> None:
    head, second = site.nodes.start(cpus=0), site.nodes.start(cpus=3)
    site.prepare({"kind": "local", "actors": 2}, gpus=0)
    command = site.start()
    wait_for(command, lambda: committed_units(site.folder) >= 1)
    assert [len(site.roles_on(raylet, "worker")) for raylet in (head, second)] == [0, 2]
    assert command.wait(SECONDS) == 0, command.words()
    site.verify()
