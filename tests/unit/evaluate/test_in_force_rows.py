"""Rows: what counts prove, how sure that is, and what is required of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from pipeline.evaluate.in_force_rows import (
    LEVEL,
    Counts,
    ForceRow,
    chance_of_following,
    falls_short,
    rendered,
    rounds_for,
    totals,
)


def verdict(asked: int, broke: int, other_asked: int, other_broke: int) -> str:
    counts = Counts(asked, broke, other_asked, other_broke)
    return counts.verdict(counts.of_pair())


@pytest.mark.parametrize(("trials", "least"), [(7, 7), (8, 8), (12, 9), (20, 10)])
def test_as_many_have_to_break_it_as_the_documents_say(trials: int, least: int) -> None:
    assert verdict(trials, 0, trials, least) == "proven"
    assert verdict(trials, 0, trials, least - 1) == "suggested"


def test_a_single_broken_answer_is_a_leak_and_no_answer_decides_nothing() -> None:
    assert verdict(12, 1, 12, 12) == "leaked"
    assert verdict(0, 0, 12, 12) == "undecided"
    assert verdict(12, 0, 0, 0) == "suggested"
    assert verdict(6, 0, 6, 6) == "suggested"  # the most that six can show is not enough


def test_answers_that_break_it_more_rarely_without_the_keyword_prove_nothing() -> None:
    assert Counts(asked=4, other_asked=12).of_pair() == 1.0


@pytest.mark.parametrize("schemas", [2, 3, 4, 5])
def test_no_answers_that_ignore_the_schema_follow_it_more_often_than_said(schemas: int) -> None:
    """Over distributions on a grid, and one answer for each schema."""
    grid = [step / 10 for step in range(1, 10)]
    most = 0.0
    for shares in product(grid, repeat=schemas):
        if abs(sum(shares) - 1) < 1e-9:
            chance = 1.0
            for share in shares:
                chance *= share
            most = max(most, chance)
    assert most <= chance_of_following(schemas, 1) + 1e-12
    assert chance_of_following(schemas, rounds_for(schemas)) <= LEVEL < chance_of_following(schemas, 1) or schemas == 5


def test_one_schema_alone_proves_nothing() -> None:
    assert rounds_for(1) == rounds_for(0) == 0 and chance_of_following(0, 3) == chance_of_following(1, 3) == 1.0


ROWS = [
    ForceRow("/a", "enum", verdict="proven", how="taken away", asked=12, other_asked=12, other_broke=12),
    ForceRow("/b", "minimum", verdict="left"),
    ForceRow("/c", "type", verdict="suggested", asked=12),
    ForceRow("/d", "type", verdict="undecided", unanswered=3),
    ForceRow("", "*", verdict="leaked", asked=4, broke=1, example="{{"),
]


@pytest.mark.parametrize(
    ("rows", "short"),
    [
        (ROWS[:2], {"no-leak": False, "tried": False, "proven": False}),
        (ROWS[:3], {"no-leak": False, "tried": False, "proven": True}),
        (ROWS[:4], {"no-leak": False, "tried": True, "proven": True}),
        (ROWS, {"no-leak": True, "tried": True, "proven": True}),
    ],
)
def test_more_is_required_step_by_step(rows: list[ForceRow], short: dict[Any, bool]) -> None:
    assert {require: falls_short(rows, require) for require in short} == short


def test_a_site_that_nothing_could_be_asked_for_says_so() -> None:
    assert ForceRow("/a", "not").told() == "undecided /a not: no value was found that could be asked for"


def test_leaks_come_first_with_what_was_seen() -> None:
    lines = rendered(ROWS)
    assert lines[0] == "leaked    / *: 1 of 4 answers broke it, such as {{"
    assert lines[1] == "undecided /d type: 0 of 0 answers broke it; 3 requests without an answer"
    assert lines[-1].endswith("with the keyword taken away the same requests did in 12 of 12")
    assert totals(ROWS) == dict.fromkeys(("leaked", "undecided", "suggested", "left", "proven"), 1)
