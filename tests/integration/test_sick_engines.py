"""Engines that fail on everything, die, or need what the cluster lacks: the job stops, says so, and commits nothing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.compile.plans import plans_of
from pipeline.errors import EngineError, ResourceError, StalledError
from pipeline.flow import extract, run
from pipeline.job import JobConfig, RecordedConfig
from pipeline.records import Document
from pipeline.runtime.input import InputScan, scan
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from pipeline.runtime.stream import stream
from tests.integration.conftest import MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")


def manifests(output: str) -> list[Path]:
    return list(Path(output).glob("run=*/manifest.json"))


def ignore(event: str, value: Any) -> None: ...


@pytest.mark.parametrize("kind", ["abort", pytest.param("die", marks=pytest.mark.slow)])
def test_an_engine_that_fails_on_everything_commits_nothing(
    kind: str, documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    job = make_job(documents[:12], kind, engine={"faults": [{"kind": kind, "share": 1.0}]})
    with pytest.raises(EngineError):
        run(job, ignore)
    assert not manifests(job.output)
    assert not list(Path(job.output).glob("run=*/_commits/*.json"))


def test_gpus_that_are_not_there_are_named_at_once(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    job = make_job(documents[:3], "gpu", engine={"num_gpus": 1})
    with pytest.raises(ResourceError, match="GPU"):
        run(job, ignore)


def recorded(job: JobConfig) -> JobConfig:
    """The job with an engine that starts in no time."""
    plans = plans_of(job, ["receipt@1", "package@1", "advisory@1"]).by_name
    recording = Path(job.input.path).with_name("recording.jsonl")
    completion = {"text": "", "finish_reason": "stop", "constrained": True}
    lines = [{"key": "-", "plan": p.name, "digest": p.digest, "completion": completion} for p in plans.values()]
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return job.model_copy(update={"engine": RecordedConfig(engine="recorded", recording=str(recording))})


def setup_of(job: JobConfig, work: Any) -> tuple[InputScan, Setup]:
    found = scan(job.input, 128)
    plans = plans_of(job, filter(None, found.schema_counts)).by_name
    return found, Setup(job, plans, open_store(job.output), "x", None, work)


@pytest.mark.slow
def test_a_process_that_keeps_dying_ends_the_job(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    async def killer(*arguments: Any) -> Any:  # takes its process along, as an engine does that runs out of memory
        os._exit(1)

    found, setup = setup_of(recorded(make_job(documents[:12], "killer")), killer)
    with pytest.raises(EngineError, match=r"died \d+ times"):
        list(stream(found.units, setup))


@pytest.mark.slow
def test_a_job_in_which_nothing_ends_any_more_stops_and_says_how_to_go_on(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    """F070: at the end of a batch, pipelines wait for ever and look as if they worked."""

    endless = {document["id"] for document in documents[20:]}

    async def stuck(document: Document, *arguments: Any, **named: Any) -> Any:
        if document.id in endless:
            await asyncio.Event().wait()
        return await extract(document, *arguments, **named)

    job = recorded(make_job(documents[:40], "stuck", safety={"stall_seconds": 3, "save_documents": 1}))
    found, setup = setup_of(job, stuck)
    with pytest.raises(StalledError, match="run the same command to continue"):
        list(stream(found.units, setup))
    assert not list(Path(job.output).glob("_commits/*.json"))
    found, setup = setup_of(job, extract)
    list(stream(found.units, setup))
    assert sorted(row["document_id"] for row in written(Path(job.output))) == sorted(
        document["id"] for document in documents[:40]
    )


def test_a_document_that_kills_its_process_costs_itself_alone(
    documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    deadly = documents[17]["id"]

    async def fragile(document: Document, *arguments: Any, **named: Any) -> Any:
        if document.id == deadly:
            os._exit(1)
        return await extract(document, *arguments, **named)

    job = recorded(make_job(documents[:40], "fragile"))
    found, setup = setup_of(job, fragile)
    last = list(stream(found.units, setup))[-1]
    rows = {row["document_id"]: row for row in written(Path(job.output))}
    assert sorted(rows) == sorted(document["id"] for document in documents[:40])
    poison = [key for key, row in rows.items() if any(p["code"] == "poison" for p in row["problems"])]
    assert poison == [deadly]
    assert last.alarms["poison"] == 1


def written(directory: Path) -> list[dict[str, Any]]:
    """The rows that commit records name."""
    files = [
        file
        for path in directory.glob("_commits/*.json")
        for file in json.loads(path.read_text(encoding="utf-8"))["files"]
    ]
    return [row for file in files for row in pq.ParquetFile(directory / file["path"]).read().to_pylist()]
