"""What the lint reads from patterns."""

from __future__ import annotations

import pytest

from pipeline.schema.lint.patterns import UNBOUNDED, read_pattern


@pytest.mark.parametrize(
    ("pattern", "slow"),
    [
        ("^(a+)+$", True),
        (r"^(\w+\s?)*$", True),
        ("(a|a)*b", True),
        ("^(([a-z]+)(-?))+$", True),
        ("^[a-z]+(-[a-z0-9]+)*$", False),
        (r"^(/[A-Z]{1,3}:[A-Za-z]{1,5}){8,24}$", False),
        (r"^(\d{1,3}\.){3}\d{1,3}$", False),
    ],
)
def test_slow_patterns_are_told_from_separated_ones(pattern: str, slow: bool) -> None:
    reading = read_pattern(pattern)
    assert reading is not None and reading.slow is slow


@pytest.mark.parametrize(
    ("pattern", "anchored", "shortest", "longest"),
    [
        ("^a|b$", False, 1, 1),
        ("^(a|bcd)$", True, 1, 3),
        (r"^[0-9]{4}-[0-9]{2}\$", False, 8, 8),
        ("(?:^a$)|(?:^bb+$)", True, 1, UNBOUNDED),
        (r"^(\d{1,3}\.){3}\d{1,3}$", True, 7, 15),
    ],
)
def test_anchors_and_lengths(pattern: str, anchored: bool, shortest: int, longest: int) -> None:
    reading = read_pattern(pattern)
    assert reading is not None
    assert (reading.anchored, reading.shortest, reading.longest) == (anchored, shortest, longest)


@pytest.mark.parametrize("pattern", ["(" * 950 + "a" + ")" * 950, "a)", "[", "a" * 5_000])
def test_what_it_cannot_read_is_left_unjudged(pattern: str) -> None:
    assert read_pattern(pattern) is None
