"""Engines that fail on everything, die, or need what the cluster lacks: the job stops, says so, and commits nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import EngineError, ResourceError
from pipeline.flow import plans_of, run
from pipeline.job import RecordedConfig
from pipeline.runtime.input import scan
from pipeline.runtime.stream import Setup, stream
from tests.integration.conftest import MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")


def manifests(output: str) -> list[Path]:
    return list(Path(output).glob("run=*/manifest.json"))


def ignore(event: str, value: Any) -> None: ...


@pytest.mark.parametrize("kind", ["abort", "die"])
def test_an_engine_that_fails_on_everything_commits_nothing(
    kind: str, documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    job = make_job(documents[:30], kind, engine={"faults": [{"kind": kind, "share": 1.0}]})
    with pytest.raises(EngineError):
        run(job, ignore)
    assert not manifests(job.output)
    assert not list(Path(job.output).glob("run=*/_commits/*.json"))


def test_gpus_that_are_not_there_are_named_at_once(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    job = make_job(documents[:3], "gpu", engine={"num_gpus": 1})
    with pytest.raises(ResourceError, match="GPU"):
        run(job, ignore)


def test_a_process_that_keeps_dying_ends_the_job(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    job = make_job(documents[:3], "killer")
    found = scan(job.input, 128)
    plans = plans_of(job, filter(None, found.schema_counts)).by_name
    recording = Path(job.input.path).with_name("recording.jsonl")
    completion = {"text": "", "finish_reason": "stop", "constrained": True}
    lines = [{"key": "-", "plan": p.name, "digest": p.digest, "completion": completion} for p in plans.values()]
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # An engine that starts in no time, so that dying is all that takes time.
    job = job.model_copy(update={"engine": RecordedConfig(engine="recorded", recording=str(recording))})

    async def killer(*arguments: Any) -> Any:  # takes its process along, as an engine does that runs out of memory
        os._exit(1)

    with pytest.raises(EngineError, match=r"died \d+ times"):
        list(stream(found.units, Setup(job, plans, Path(job.output), "x", None, killer)))
