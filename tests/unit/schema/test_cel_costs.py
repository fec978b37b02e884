"""What long texts and long fractions cost a rule in CEL, and that they are shown exactly."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.cel import Meter, TooCostly, compile_rule
from tests.bounds import processor_seconds


def holds(rule: str, self: Any, data: Any = None) -> bool:
    return compile_rule(rule).holds([self, data or {}, {}], Meter(200_000, 0.3))


@pytest.mark.parametrize(
    ("rule", "record"),
    [
        ("self.all(x, string(x * 0.0001).size() > 0)", [1.5e-300] * 3000),
        ("self.map(x, input.text.substring(1)).size() > 0", list(range(10_000))),
        ("self.map(x, 1 / x).sum() > 0", list(range(3, 20_000))),
        ("self.map(x, x * 1.7e-300).sum() > 0", [1 / number for number in range(1, 3000)]),
    ],
)
def test_long_texts_and_fractions_are_paid_for(rule: str, record: Any) -> None:
    with processor_seconds(1), contextlib.suppress(TooCostly):  # the first took 4.4 s
        holds(rule, record, {"text": "x" * 225_000})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_a_text_is_that_number(number: float) -> None:
    assert holds("double(string(self)) == self", number)
