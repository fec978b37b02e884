"""When two values are the same: exactly, in another notation, or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluate.same import ALMOST, alike, equality, has_value

SAME = [
    ("9.00", "9"),
    ("RM 9.00", "9"),
    ("$9", "USD 9"),
    ("9,00", "9.00"),
    ("1,234.50", "1234.50"),
    ("(5.00)", "-5.00"),
    ("5%", "5 %"),
    ("2018-04-03", "3 April 2018"),
    ("2018-03-04", "04/03/2018"),
    ("2024-01-01T10:00:00Z", "2024-01-01T11:00:00+01:00"),
    ("ABC Sdn. Bhd", "abc sdn bhd"),
    ("１２", "12"),
    ("糯米（或大米）", "糯米(或大米)"),
    ("de", "DE"),
    (1.5, "1,50"),
    (0.1 + 0.2, 0.3),
]
OTHER = [
    ("1.10", "1.1"),
    ("$9", "€9"),
    ("5%", "5"),
    ("-5", "5"),
    ("0123", "123"),
    ("12 1", "1 21"),
    ("C++", "C"),
    ("04/03/2018", "03/04/2018"),
    ("2024-01-01T10:00:00Z", "2024-01-01"),
    ("1.2.3", "12.3"),
    (1, True),
    (0, False),
    (5, "5%"),
    (5, 6),
    ("", None),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_another_notation_is_the_same_value_whichever_is_expected(one: Any, other: Any) -> None:
    assert equality(one, other) == equality(other, one) == "normalised"
    assert alike(one, other) == 1.0


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_value_is_not_the_same_whichever_is_expected(one: Any, other: Any) -> None:
    assert equality(one, other) == equality(other, one) == "no"
    assert alike(one, other) <= ALMOST


def test_exact_is_equality_of_json_and_code_points() -> None:
    assert equality(1, 1.0) == equality("a", "a") == equality(None, None) == equality(True, True) == "exact"
    assert equality("e\u0301", "é") == "normalised"
    assert not has_value(" \n") and not has_value(None) and has_value(0) and has_value(False)


@given(st.text(max_size=30) | st.integers() | st.floats(allow_nan=False), st.text(max_size=30) | st.integers())
def test_any_two_values_can_be_compared_and_likeness_is_a_share(one: Any, other: Any) -> None:
    assert equality(one, one) == "exact"
    assert equality(one, other) == equality(other, one)
    assert 0.0 <= alike(one, other) <= 1.0
