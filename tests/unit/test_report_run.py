"""The report's numbers about a run as a whole: what it cost, and how it stands against another one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pipeline.job import JobConfig
from pipeline.records import Manifest
from pipeline.report.against import differences, pairs_of, two_proportions
from pipeline.report.cost import cost_of


@pytest.mark.parametrize(
    ("counts", "p"),
    [((60, 100, 40, 100), 0.004678), ((50, 100, 50, 100), 1.0), ((1, 100, 0, 100), None), ((0, 0, 5, 10), None)],
)
def test_two_proportions(counts: tuple[int, int, int, int], p: float | None) -> None:
    found = two_proportions(*counts)
    assert (found is None) if p is None else found == pytest.approx(p, abs=1e-6)


def manifest(valid: int, documents: int, **totals: Any) -> Manifest:
    counts = {"valid": valid, "degraded": 0, "rejected": documents - valid}
    return Manifest("a", "t", documents, counts, "", {}, (), {"asked": documents, **totals})


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [
        ({"kind": "actors", "max_engines": 4}, 8.0),
        ({"kind": "local", "actors": 2}, 4.0),
        ({"kind": "serve"}, None),  # of a pool that others use, too, nobody knows
    ],
)
def test_gpu_hours_are_all_engines_for_all_of_the_time(placement: dict[str, Any], gpus: float | None) -> None:
    job = JobConfig.model_validate(
        {
            "name": "t",
            "input": {"path": "in.jsonl", "schema": "receipt@1"},
            "output": "out",
            "engine": {"engine": "vllm", "num_gpus": 1, "tensor_parallel": 2},
            "placement": placement,
        }
    )
    times = {"started": "2026-01-01T00:00:00+00:00", "committed": "2026-01-01T00:30:00.000+00:00"}
    found = cost_of(dataclasses.replace(manifest(9, 9), **times), job, 3.0)
    assert found.gpus == gpus
    assert found.gpu_hours == (None if gpus is None else gpus / 2)
    assert found.money == (None if gpus is None else gpus / 2 * 3)
    assert cost_of(manifest(9, 9), None, None).gpu_hours is None


def test_what_an_earlier_version_did_not_count_is_not_compared() -> None:
    names = [pair.name for pair in pairs_of(manifest(9, 9, truncated=1), manifest(9, 9))]
    assert "truncated" not in names
    assert "documents valid" in names
    assert differences({"a": 1, "b": 2}, {"b": 2, "c": 3}) == [("a", None, 1), ("c", 3, None)]
