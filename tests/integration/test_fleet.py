"""A fleet of engines on a node with four declared GPUs: see fleet_scenes.py, which plays it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import JobFileError
from pipeline.runtime.bundles import bundles_of
from pipeline.runtime.fleet import Fleet
from tests.integration.fleet_scenes import job_of, setup_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow  # a Ray of its own, some minutes


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened, by scene."""
    command = [sys.executable, "-m", "tests.integration.fleet_scenes", str(tmp_path_factory.mktemp("fleet"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_each_engine_has_a_gpu_of_its_own_and_nothing_else_takes_one(told: dict[str, Any]) -> None:
    places = told["begin"]["places"]
    assert len(places) == 2
    assert len({tuple(place) for place in places}) == 2
    assert all(len(place) == 2 for place in places)  # a node, one GPU
    assert told["begin"]["free_gpus"] == 0


def test_an_engine_joins_when_there_is_room_for_it_and_is_used(told: dict[str, Any]) -> None:
    assert len({tuple(place) for place in told["late"]["places"]}) == 3
    assert told["late"]["errors"] == []


def test_what_a_dead_engine_worked_on_is_answered_and_the_engine_returns(told: dict[str, Any]) -> None:
    assert told["death"] == {"answers": 200, "errors": []}


@pytest.mark.parametrize("kind", ["die", "stick"])
def test_a_request_that_kills_or_stops_its_engine_is_found_and_costs_itself_alone(
    told: dict[str, Any], kind: str
) -> None:
    assert told[kind]["errors"] == {"20": "poison"}
    assert told["poison"] == 2


def test_engines_leave_when_nothing_is_left_for_them_but_not_while_a_pilot_is_out(told: dict[str, Any]) -> None:
    assert told["leave"] == {"before": 3, "after": 1, "errors": []}


def test_two_by_two_gpus(told: dict[str, Any]) -> None:
    assert told["wide"] == {"bundles": [{"GPU": 1.0}] * 4, "strategy": "PACK"}


def test_bundles_follow_the_engine_config(tmp_path: Path) -> None:
    def bundles(**engine: Any) -> Any:
        return bundles_of(job_of(tmp_path, engine, {}))

    assert bundles() == ([], "")
    assert bundles(tensor_parallel=4) == ([{"GPU": 4.0}], "STRICT_PACK")
    assert bundles(tensor_parallel=2, pipeline_parallel=3) == ([{"GPU": 1.0}] * 6, "PACK")
    assert bundles(tensor_parallel=2, num_gpus=0) == ([], "")


def test_an_engine_over_several_gpus_has_its_process_for_itself(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"tensor_parallel": 2}, {})
    other = {"engine": "sampler", "num_gpus": 1, "seed": 5}
    parts = job.model_dump(mode="json", by_alias=True)
    parts |= {"engines": {"large": other}, "retry": {"max_attempts": 2, "ladder": [{"engine": "large"}]}}
    with pytest.raises(JobFileError, match="takes all GPUs of its process"):
        Fleet(setup_of(type(job).model_validate(parts)), "guidance", None)
