"""Events of a run: the worker's are those of its outcomes, the driver's those of the run, and neither can fail it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import EngineError, JobFileError, StalledError, Terminated
from pipeline.job import JobConfig
from pipeline.jobfile import load_job
from pipeline.observe.events.catalogue import ALWAYS, KINDS
from pipeline.records import Manifest
from pipeline.runtime.source import source_of
from pipeline.runtime.supervise.control import Control, Look
from pipeline.runtime.supervise.control_calls import DirectControl
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.told import Told
from pipeline.runtime.work import UnitWorker
from tests.crash.core import Oracle
from tests.crash.memory import MemoryStore
from tests.crash.small_job import SmallJob, make

LOOK = Look({}, 0, 0, 0, 0, 0, 0.0, (), {})


def lines_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    return [json.loads(line) for file in files for line in file.read_text(encoding="ascii").splitlines()]


async def _oracle() -> Oracle:
    return Oracle()


async def _at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def worked(small: SmallJob) -> tuple[Manifest, Control]:
    """A run of the job by one worker, committed."""

    async def work() -> None:
        setup = small.setup(run.store)
        worker = UnitWorker(setup, _oracle, Guard("extract-1", calls), calls, 4, offload=_at_once)
        await calls.born("extract-1", "node")
        for unit in small.found.units:
            await worker.work(unit)

    run = small.open(MemoryStore())
    calls = DirectControl(Control(small.job.stop_if))
    asyncio.run(work())
    return small.commit(run), calls.control


def test_each_document_that_is_not_valid_has_its_line_and_each_unit_one(tmp_path: Path) -> None:
    manifest, _ = worked(make(tmp_path, 30, 10, events={"path": str(tmp_path / "logs")}))
    lines = lines_of(tmp_path / "logs")
    told = [line["event"] for line in lines]
    assert told.count("document_rejected") == manifest.counts["rejected"] > 3
    assert told.count("document_degraded") == manifest.counts["degraded"]
    assert told.count("unit_committed") == len({file["path"].rpartition("/")[2] for file in manifest.files})
    assert {(line["job"], line["run"], line["process"]) for line in lines} == {("small", manifest.run_id, "extract-1")}
    assert "tea" not in json.dumps(lines)  # a word of every document and answer


def test_events_change_no_outcome_and_are_not_in_the_identity(tmp_path: Path) -> None:
    quiet, _ = worked(make(tmp_path, 30, 10))
    loud, _ = worked(make(tmp_path, 30, 10, events={"path": str(tmp_path / "logs"), "text": True, "redact": ["tea"]}))
    assert quiet.run_id == loud.run_id
    assert [file["sha256"] for file in quiet.files] == [file["sha256"] for file in loud.files]


def test_a_place_that_cannot_be_written_costs_no_document_and_the_driver_hears_of_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    manifest, control = worked(make(tmp_path, 30, 10, events={"path": str(tmp_path / "file")}))
    assert sum(manifest.counts.values()) == 30
    heard: list[tuple[str, Any]] = []
    with Told(make(tmp_path, 30, 10).job, lambda *event: heard.append(event)) as told:
        told("looked", control.look())
        told("looked", control.look())
    assert [name for name, _ in heard] == ["asking", "warned"], "each once"
    assert "extract-1: " in heard[1][1]


class Driver:
    """A run as its driver tells of it, without one."""

    def __init__(self, folder: Path, **events: Any) -> None:
        self.folder = folder / "logs"
        self.small = make(folder, 4, 4, events={"path": str(self.folder), **events})
        self.job: JobConfig = self.small.job
        self.run = self.small.open(MemoryStore())
        self.heard: list[str] = []

    def end(self, *happened: tuple[str, Any], error: BaseException | None = None) -> list[dict[str, Any]]:
        with Told(self.job, lambda name, _value: self.heard.append(name)) as told:
            for name, value in happened:
                told(name, value)
            if error is not None:
                raise error
        return lines_of(self.folder)


@pytest.mark.parametrize(
    ("error", "event", "code"),
    [
        (StalledError("no document finished"), "run_stalled", 11),
        (EngineError("its words: SECRET"), "run_failed", 5),
        (ValueError("SECRET"), "run_failed", 1),
        (KeyboardInterrupt(), "run_interrupted", 130),
        (Terminated(), "run_interrupted", 143),
    ],
)
def test_a_run_that_ends_with_an_error_says_which_and_raises_it(
    tmp_path: Path, error: BaseException, event: str, code: int
) -> None:
    driver = Driver(tmp_path)
    with pytest.raises(type(error)) as caught:
        driver.end(error=error)
    assert caught.value is error
    (line,) = lines_of(driver.folder)
    assert (line["event"], line["exit_code"], line["run"]) == (event, code, "")
    assert "SECRET" not in json.dumps(line)


def test_looks_at_the_control_become_events_when_something_is_new(tmp_path: Path) -> None:
    dead = dataclasses.replace(LOOK, all_deaths=2, reasons=("said SECRET",))
    poison = dataclasses.replace(dead, all_deaths=3, poison=1, stopped={"a@1": "a@1: of 32 documents, 20 were cut"})
    driver = Driver(tmp_path)
    looks = [("looked", look) for look in (LOOK, dead, dead, poison, poison)]
    first, *lines = driver.end(("opened", driver.run), ("scanned", driver.small.found), *looks)
    assert first["event"] == "run_started"
    assert (first["documents"], first["left"], first["resumed"], first["run"]) == (
        4,
        4,
        False,
        driver.run.identity.run_id,
    )
    told = [(line["event"], line.get("count"), line.get("schema")) for line in lines]
    assert told == [
        ("process_died", 2, None),
        ("process_died", 1, None),
        ("poison_found", 1, None),
        ("schema_stopped", None, "a@1"),
    ]
    for line in lines:
        assert set(line) == {*ALWAYS, *KINDS[line["event"]].members}


def test_the_observer_hears_what_it_heard_before(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.end(("progress", 1), ("looked", LOOK), ("done", f"{tmp_path}/run=abc"), ("committed", None))
    assert driver.heard == ["progress", "done"]
    assert [(line["event"], line["run"]) for line in lines_of(driver.folder)] == [("run_done_before", "abc")]


def test_patterns_are_kept_in_no_file_of_the_run(tmp_path: Path) -> None:
    small = make(tmp_path, 4, 4, events={"path": str(tmp_path / "logs"), "redact": ["hunter2"]})
    store = small.open(MemoryStore()).store
    kept = store.get("run.json") or b""
    assert b"hunter2" not in kept
    assert b"events.redact" in kept


def test_a_job_file_says_where_relative_to_itself_and_not_below_its_input(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("a")
    text = (
        "name: t\ninput: {path: docs, schema: receipt@1}\noutput: out\nengine: {engine: sampler}\nevents: {path: %s}\n"
    )
    (tmp_path / "job.yaml").write_text(text % "logs")
    assert load_job(tmp_path / "job.yaml").events.path == str(tmp_path / "logs")
    (tmp_path / "job.yaml").write_text(text % "docs/logs")
    with pytest.raises(JobFileError, match=r"events\.path .* lies below input\.path"):
        source_of(load_job(tmp_path / "job.yaml"), {}, MemoryStore(), ())
    (tmp_path / "job.yaml").write_text(text % "s3://bucket/logs")
    with pytest.raises(JobFileError, match="cannot be appended to"):
        load_job(tmp_path / "job.yaml")
