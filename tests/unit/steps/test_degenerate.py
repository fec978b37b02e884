"""Why an answer was cut: blanks, a loop of any period, or want of tokens; a finished answer is never called a loop."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import codes, completion

from pipeline.steps.answer.degenerate import periodic_tail
from pipeline.steps.parse import parse


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"total":' + " " * 4000, "runaway_whitespace"),
        ('{"a": "x' + "\n \t" * 100, "runaway_whitespace"),
        ('{"names": [' + '"Ann", ' * 900, "repetition"),
        ('{"rows": [' + '{"name": "Ann", "total": 12.5}, ' * 9 + '{"na', "repetition"),
        ('{"t": "' + "I think that I " * 40, "repetition"),
        ('{"t": "' + "." * 300, "repetition"),
        ('{"t": "' + ("x, " * 50 + "end ") * 5, "repetition"),
        ('{"t": "start ' + "\\n" * 150, "repetition"),
        ('{"readings": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0', "truncated"),
        (json.dumps([{"sku": f"A{i}", "unit": "kg", "total": i * 1.5} for i in range(400)])[:-9], "truncated"),
        ('{"a": 1,\n' + " " * 40, "truncated"),
        ("", "empty_output"),
    ],
)
def test_an_answer_that_was_cut_says_what_it_was_doing(text: str, code: str) -> None:
    assert codes(parse(completion(text, "length"), 1)) == [code]


@given(st.text(min_size=1, max_size=30), st.text(max_size=30), st.integers(0, 29))
def test_any_block_that_is_repeated_often_is_seen(block: str, start: str, cut: int) -> None:
    text = start + block * (400 // len(block) + 30) + block[: cut % len(block)]
    tail = periodic_tail(text)
    assert tail is not None
    assert len(block) % tail.period == 0
    assert tail.start <= len(start)


@given(st.lists(st.integers(0, 3) | st.just("Ann"), max_size=80))
def test_a_finished_answer_is_never_called_a_repetition(items: list[Any]) -> None:
    assert parse(completion(items * 30), 1).problems == ()
