"""What a budget says about a job: max_tokens and context, with the numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pipeline.schema.budget.judge import judge, truncated
from pipeline.schema.budget.measure import Budget


def given(*tokens: int, shortest: int = 10, worst: int | None = None, by: Any = "samples") -> Budget:
    """A budget with these sample sizes."""
    rising = tuple(sorted(tokens))
    p99 = rising[math.ceil(0.99 * len(rising)) - 1] if rising else shortest
    at = ("/properties/a", "") if worst is None else ()
    return Budget("{}", shortest, p99, p99, 2 * p99, worst, worst, at, by, rising, 0)


def test_max_tokens_below_the_shortest_record_is_refused_with_both_numbers() -> None:
    (finding,) = judge(given(50, shortest=20), max_tokens=19, prompt_tokens=10, context=100)
    assert (finding.code, finding.severity) == ("below_shortest", "refuse")
    assert "19" in finding.message and "20 tokens" in finding.message and "100" in finding.message


def test_prompt_and_answer_beyond_the_context_are_refused_with_the_sum() -> None:
    (finding,) = judge(given(5), max_tokens=600, prompt_tokens=500, context=1024)
    assert (finding.code, finding.severity) == ("beyond_context", "refuse")
    for number in ("500", "600", "1100", "1024", "524"):
        assert number in finding.message
    assert not judge(given(5), max_tokens=524, prompt_tokens=500, context=1024)
    assert not judge(given(5), max_tokens=10**6, prompt_tokens=500, context=None)
    (full,) = judge(given(5), max_tokens=600, prompt_tokens=1030, context=1024)
    assert "holds no legal document" in full.message and "-6" not in full.message


def test_both_refusals_can_come_together() -> None:
    findings = judge(given(50, shortest=20), max_tokens=5, prompt_tokens=100, context=100)
    assert [finding.code for finding in findings] == ["below_shortest", "beyond_context"]


def test_below_twice_p99_is_warned_with_the_predicted_rate() -> None:
    (finding,) = judge(given(*[40] * 95, *[100] * 5), max_tokens=80, prompt_tokens=10, context=8192)
    assert (finding.code, finding.severity) == ("below_recommended", "warn")
    for words in (
        "80",
        "200",
        "P99 of 100",
        "5.0% (5 of 100 samples",
        "Wilson",
        "no bound",
        "/properties/a",
        "the root",
    ):
        assert words in finding.message
    assert not judge(given(40, 100), max_tokens=200, prompt_tokens=10, context=8192)


def test_the_upper_bounds_are_the_rule_of_three_and_wilsons() -> None:
    assert truncated(given(*[10] * 60), 10) == (0, 0.05)
    assert truncated(given(10), 10) == (0, 1.0)
    assert truncated(given(), 10) == (0, 1.0)
    longer, bound = truncated(given(*[10] * 95, *[20] * 5), 10)
    assert longer == 5 and bound == pytest.approx(0.0991, abs=5e-4)
    assert truncated(given(20), 10) == (1, 1.0)


def test_drawn_records_predict_no_rate() -> None:
    (finding,) = judge(given(10, 50, by="drawn"), max_tokens=20, prompt_tokens=10, context=8192)
    assert "1 of 2 records drawn" in finding.message and "%" not in finding.message
    (finding,) = judge(given(shortest=10, by="drawn"), max_tokens=15, prompt_tokens=10, context=8192)
    assert "nothing is known" in finding.message


def test_nothing_is_cut_off_at_the_longest_record() -> None:
    assert not judge(given(40, worst=50), max_tokens=50, prompt_tokens=10, context=8192)
    (finding,) = judge(given(40, worst=50), max_tokens=49, prompt_tokens=10, context=8192)
    assert "at most 50 tokens" in finding.message
