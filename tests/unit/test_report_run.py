"""The report's numbers about a run as a whole: what it cost, and how it stands against another one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pipeline.job import JobConfig
from pipeline.records import Manifest, Outcome
from pipeline.report.against import differences, pairs_of, two_proportions
from pipeline.report.clipped import ClippedFields
from pipeline.report.completeness import MAX_FIELDS, Completeness
from pipeline.report.cost import cost_of
from pipeline.report.sections import SHOWN_FIELDS, fields
from pipeline.report.sections_run import clipped


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


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (SHOWN_FIELDS, ""),
        (SHOWN_FIELDS + 1, f", {SHOWN_FIELDS} of {SHOWN_FIELDS + 1} fields are shown"),
        (MAX_FIELDS + 1, f", {SHOWN_FIELDS} of {MAX_FIELDS} fields are shown; further places were not counted"),
    ],
)
def test_a_table_says_which_fields_it_leaves_out(there: int, told: str) -> None:
    record = {f"f{number}": 1 for number in range(there)}
    found = Completeness()
    found.add(Outcome("d", "s", "a@1", "valid", 1, record))
    table = fields("a@1", found)
    assert table.caption == f"a@1: 1 records{told}"
    assert len(table.rows) == min(there, SHOWN_FIELDS)


def test_so_does_that_of_clipped_mass() -> None:
    found = ClippedFields()
    place = {"part": "value", "tokens": 1, "mass": 0.5, "highest": 0.5}
    found.add({"audit": "done", "clipped": [{"pointer": f"/f{number}", **place} for number in range(50)]})
    assert clipped("a@1", found).caption.endswith("40 of 50 fields are shown")
