"""What `bench.field_drift` counts, on records that need no data set."""

from __future__ import annotations

import random
from typing import Any

from bench.field_drift import Plant, drawn, planted, summed, without_shift

ROWS = [(str(n), {"kind": "ab"[n % 2], "n": n % 7}) for n in range(60)]


def test_a_plant_that_changes_all_is_seen_and_one_that_changes_nothing_is_not() -> None:
    def change(record: dict[str, Any], _: random.Random) -> None:
        record["kind"] = "c"

    plant = Plant("all", ROWS, "/kind", change)
    assert planted(plant, 50, 1.0, 3, random.Random(1)) == {"rounds": 3, "seen": 3, "other fields called": 0}
    assert planted(plant, 50, 0.0, 3, random.Random(1))["seen"] == 0
    assert ROWS[0][1]["kind"] == "a"  # the set itself stays as it is


def test_without_a_shift_tests_are_counted_by_their_p() -> None:
    found = without_shift(ROWS, 4, random.Random(1))
    assert set(found) == {"halves", "samples of 50", "samples of 200", "samples of 1000"}
    for counts in found.values():
        assert counts["comparisons"] == 4
        assert counts["p <= 0.01"] <= counts["p <= 0.05"] <= counts["tests"]
    assert summed([]) == {"comparisons": 0}


def test_a_sample_is_with_replacement_and_each_document_its_own() -> None:
    rows = drawn(ROWS, 500, random.Random(1), "a")
    assert len({key for key, _ in rows}) == 500
