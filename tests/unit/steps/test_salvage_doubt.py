"""Layer 3 on the edge: numbers that may not be over, and lists of which only some are tuples."""

from __future__ import annotations

from typing import Any

import pytest
from support import Answers, completion, extracted, plan_of

ROWS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"x/y": {"type": "integer"}, "z": {"type": "string"}}, "required": ["z"]},
}
PAIR = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}
BODY = {
    "type": "object",
    "properties": {
        "n": {"type": "number"},
        "s": {"type": "string"},
        "m": {"type": "array", "items": {"type": "number"}},
        "c~d": ROWS,
        "pair": PAIR,
        "either": {"anyOf": [PAIR, {"type": "null"}]},
    },
}


@pytest.mark.parametrize(
    ("text", "reason", "kept", "gone"),
    [
        ('{"s": "x", "n": 1,000, "m": [1]}', "stop", {"s": "x"}, "/n"),
        ('{"s": "x", "n": 1,00', "length", {"s": "x"}, "/n"),
        ('{"s": "x", "n": 12,5', "length", {"s": "x"}, "/n"),
        ('{"s": "x", "m": [7, 1,000', "length", {"s": "x", "m": [7]}, "/m"),
        ('{"s": "x", "n": 12,', "length", {"s": "x", "n": 12}, ""),
        ('{"s": "x", "n": 12, "m": [7, 1, 0', "length", {"s": "x", "n": 12, "m": [7, 1]}, "/m"),
        ('{"n": 12, "s": "a" b', "length", {"n": 12}, "/s"),
    ],
)
def test_a_number_before_digits_that_stand_where_none_can_is_given_up_and_named(
    text: str, reason: Any, kept: Any, gone: str
) -> None:
    outcome = extracted(Answers(completion(text, reason)), plan_of(BODY, "doubt@1"), max_attempts=1)
    assert outcome.record == kept
    assert not gone or gone in {problem.pointer for problem in outcome.problems}


def test_only_lists_that_are_tuples_go_whole() -> None:
    text = '{"pair": [1, 2], "c~d": [{"x/y": 1, "z": "a"}, {"x/y": "bad", "z": "b"}, {"x/y": 3}, {"z": "d"}], "m": [1]}'
    outcome = extracted(Answers(text), plan_of(BODY, "doubt@1"), max_attempts=1)
    assert outcome.record == {"c~d": [{"x/y": 1, "z": "a"}, {"z": "b"}, {"z": "d"}], "m": [1]}
    told = {(problem.code, problem.pointer) for problem in outcome.problems}
    assert {("field_dropped", "/pair"), ("field_dropped", "/c~0d/1/x~1y"), ("list_incomplete", "/c~0d")} <= told


@pytest.mark.parametrize("name", ["pair", "either"])
def test_a_tuple_is_never_shifted_also_as_one_of_several_branches(name: str) -> None:
    outcome = extracted(Answers({name: ["bad", "x"], "s": "y"}), plan_of(BODY, "doubt@1"), max_attempts=1)
    assert outcome.record == {"s": "y"}
