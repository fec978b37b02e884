"""Dates and times are compared by meaning."""

from __future__ import annotations

import datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.moments import before, moment_of


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("2024-01-01", "2024-01-02", True),
        ("2024-01-01", "2024-01-01", False),
        ("2024-01-01T00:00:00+02:00", "2024-01-01T00:00:00Z", True),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00+02:00", False),
        ("2024-01-01T10:00:00+02:00", "2024-01-01t08:00:00z", False),
        ("2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00.10000000000001Z", True),
        ("2024-01-01", "2024-01-01T10:00:00Z", False),  # the day that it says, not its midnight
        ("2024-01-01T10:00:00Z", "2024-01-01", False),
        ("2024-01-01T10:00:00Z", "2024-01-02", True),
        ("2024-01-01T10:00:00", "2024-01-01T09:00:00", False),
        ("2024-01-01T10:00:00", "2024-01-01T09:00:00Z", False),  # one offset is not said: days are compared
        ("1889", "1889-05", False),
        ("1889-05", "1890", True),
        ("10:00", "11:30:00", True),
        ("10:00:00+02:00", "09:00:00Z", True),
        ("10:00", "09:00:00Z", None),
        ("10:00", "2024-01-01", None),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:60-14:00", True),
    ],
)
def test_before(one: str, other: str, expected: bool | None) -> None:
    left, right = moment_of(one), moment_of(other)
    assert left is not None and right is not None
    assert before(left, right) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2023-02-29", "2024-13-01", "20240101", "2024-W01-1", "24:00", "10", "2024T10:00"),
        *("2024-01T10:00Z", "2024-01-0110:00", "T10:00", "２０２４-01-01", "2024-01-01 ", "0000-01-01", "2024-01-01T"),
        "1" * 5000,
    ],
)
def test_what_is_no_moment(text: str) -> None:
    assert moment_of(text) is None


_ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))


@given(*[st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1), timezones=_ZONES)] * 2)
def test_instants_compare_as_the_library_has_them(one: datetime.datetime, other: datetime.datetime) -> None:
    left, right = moment_of(one.isoformat()), moment_of(other.isoformat())
    assert left is not None and right is not None
    assert before(left, right) is (one < other)


def test_nothing_is_before_itself_and_no_two_before_each_other() -> None:
    texts = [
        "2024",
        "2024-01",
        "2024-01-01",
        "2024-01-01T10:00:00",
        "2024-01-01T10:00:00Z",
        "2023-12-31T23:00:00-05:00",
    ]
    for one, other in permutations(map(moment_of, texts), 2):
        assert one is not None and other is not None
        assert not before(one, one)
        assert not (before(one, other) and before(other, one))
