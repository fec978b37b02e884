"""Two runs of one job at a time: the second is refused, or waits, wherever the first one is."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import RunBusyError
from pipeline.jobfile import load_job
from pipeline.runtime.lease import Beating, Lease
from pipeline.runtime.overlap import alone, usual
from pipeline.runtime.store import Store, open_store

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "TOTAL EUR 1.00"}\n', encoding="utf-8")
    job = {
        "name": "night",
        "input": {"path": "in.jsonl", "schema": "receipt@1", "since": "last"},
        "output": "out",
        "schemas": str(ROOT / "schemas"),
        "engine": {"engine": "sampler"},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    return tmp_path / "job.yaml"


def job_store(path: Path) -> Store:
    return open_store(str(path.parent / "out")).at("_jobs/night")


def quick(meanwhile: Callable[[], Any] = lambda: None) -> Callable[[Store], Lease]:
    """`Lease.acquire` in which time passes only while it looks, and `meanwhile` then."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        meanwhile()

    return partial(Lease.acquire, sleep=sleep, monotonic=lambda: now[0])


def test_the_second_is_refused_and_told_who_is_at_it(path: Path) -> None:
    first = Lease.acquire(job_store(path))
    with pytest.raises(RunBusyError) as caught, alone(load_job(path), "refuse", print, acquire=quick(first.beat)):
        raise AssertionError("two at a time")
    for words in ("another run of `night`", "process ", "--overlap queue"):
        assert words in str(caught.value)
    assert caught.value.exit_code == 9


def test_the_second_waits_for_the_end_of_the_first_and_says_so_once(path: Path) -> None:
    first = Lease.acquire(job_store(path))
    pauses: list[float] = []
    said: list[str] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            first.release()

    with alone(load_job(path), "queue", said.append, acquire=quick(first.beat), sleep=pause):
        assert len(pauses) == 3
        assert not first.beat(), "two at a time"
    assert len(said) == 1 and "waiting for the end of another run of `night`" in said[0]
    with alone(load_job(path), "refuse", said.append):
        assert len(said) == 1, "whoever waited has left it free"


def test_one_that_takes_no_notice_leaves_no_trace(path: Path) -> None:
    first = Lease.acquire(job_store(path))
    with alone(load_job(path), "allow", print) as wrap:
        assert wrap(print) is print
        assert first.beat()


def test_other_jobs_and_other_outputs_are_not_in_the_way(path: Path) -> None:
    job = load_job(path)
    with alone(job, "refuse", print):
        for changes in ({"name": "other"}, {"output": str(path.parent / "elsewhere")}):
            with alone(job.model_copy(update=changes), "refuse", print):
                pass


def test_a_run_that_lost_the_job_ends_at_its_next_progress(path: Path) -> None:
    seen: list[str] = []
    with alone(load_job(path), "refuse", print, every=0.02) as wrap:
        observe = wrap(lambda event, value: seen.append(event))
        observe("opened", None)
        observe("progress", None)
        store = job_store(path)
        store.put("_lease/000002.json", store.get("_lease/000001.json") or b"")
        with pytest.raises(RunBusyError, match="another driver"):
            while True:
                time.sleep(0.02)
                observe("progress", None)
    assert seen[:2] == ["opened", "progress"]


def test_a_year_of_nights_leaves_the_last_lease_only(path: Path) -> None:
    for _ in range(4):
        with alone(load_job(path), "refuse", print):
            pass
    assert {entry.key.rpartition(".")[0] for entry in job_store(path).list("_lease/")} == {"_lease/000004"}


def test_incremental_runs_are_alone_unless_they_are_told_otherwise(path: Path) -> None:
    job = load_job(path)
    assert usual(job) == "refuse"
    assert usual(job.model_copy(update={"input": job.input.model_copy(update={"since": None})})) == "allow"


def test_the_command_refuses_before_it_reads_anything(path: Path) -> None:
    with Beating(Lease.acquire(job_store(path)), every=0.5):
        busy = CliRunner().invoke(app, ["run", str(path), "--slot", "another"])
    assert isinstance(busy.exception, RunBusyError)
    assert [one.name for one in (path.parent / "out").iterdir()] == ["_jobs"]
    wrong = CliRunner().invoke(app, ["run", str(path), "--overlap", "never"], env={"COLUMNS": "200"})
    assert wrong.exit_code == 2 and "refuse, queue, allow" in wrong.output


def test_a_slot_of_the_command_stands_in_place_of_the_jobs(path: Path) -> None:
    assert (load_job(path).slot, load_job(path, "monday").slot) == ("", "monday")
