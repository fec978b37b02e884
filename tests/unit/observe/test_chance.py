"""The tests behind `gristmill drift` against published values and against every deal counted out."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest

from pipeline.observe.chance import (
    detectable,
    distance_of,
    holm,
    least_chance,
    ordered,
    tellable,
    unordered,
)
from pipeline.observe.tails import chi_square_tail, kolmogorov_tail


@pytest.mark.parametrize(
    ("value", "freedom", "tail"),
    [(3.841459, 1, 0.05), (6.634897, 1, 0.01), (10.827566, 1, 0.001), (18.307038, 10, 0.05), (124.342113, 100, 0.05),
     (149.449253, 100, 0.001), (0.0, 3, 1.0), (0.554298, 5, 0.99)],
)  # fmt: skip
def test_chi_square_has_the_tails_of_the_tables(value: float, freedom: int, tail: float) -> None:
    assert chi_square_tail(value, freedom) == pytest.approx(tail, rel=1e-5)


def test_far_tails_are_small_and_no_accident_of_rounding() -> None:
    assert chi_square_tail(100.0, 2) == pytest.approx(math.exp(-50), rel=1e-9)
    assert chi_square_tail(1e5, 3) == 0.0
    assert 0 < kolmogorov_tail(5.0) < 1e-20


@pytest.mark.parametrize(("value", "tail"), [(1.22385, 0.10), (1.35810, 0.05), (1.62762, 0.01), (1.94947, 0.001)])
def test_kolmogorov_has_the_tails_of_the_tables(value: float, tail: float) -> None:
    assert kolmogorov_tail(value) == pytest.approx(tail, rel=1e-3)


def test_fisher_and_the_lady_tasting_tea() -> None:
    found = unordered([3, 1], [1, 3], 0.01)
    assert found.statistic == "Fisher's exact test"
    assert found.p == pytest.approx(34 / 70)
    assert unordered([4, 0], [0, 4], 0.01).p == pytest.approx(2 / 70)
    assert found.distance == 0.5


def counted_out(before: list[int], now: list[int], *, is_ordered: bool) -> float:
    """The share of all deals that are at least as different."""
    both = [a + b for a, b in zip(before, now, strict=True)]
    cards = [label for label, count in enumerate(both) for _ in range(count)]
    size = sum(before)

    def differs(some: list[int]) -> float:
        if is_ordered:
            return distance_of(some, [c - a for c, a in zip(both, some, strict=True)], is_ordered=True)
        return sum((a - c * size / len(cards)) ** 2 / c for a, c in zip(some, both, strict=True))

    seen, hits, deals = differs(before), 0, 0
    for dealt in itertools.combinations(cards, size):
        counts = Counter(dealt)
        deals += 1
        hits += differs([counts[label] for label in range(len(both))]) >= seen * (1 - 1e-9)
    return hits / deals


@pytest.mark.parametrize(
    ("before", "now"), [([5, 1, 2], [1, 4, 3]), ([3, 3, 2], [3, 2, 3]), ([4, 2, 1, 1], [1, 1, 3, 3])]
)
def test_a_permuted_chance_is_that_of_all_deals(before: list[int], now: list[int]) -> None:
    for is_ordered, test in ((False, unordered), (True, ordered)):
        found = test(before, now, 1e-4)
        expected = counted_out(before, now, is_ordered=is_ordered)
        assert found.statistic.endswith("permuted")
        assert found.p == pytest.approx(expected, rel=0.6)  # dealing ends at twenty as different: 22 % standard error
        assert test(before, now, 1e-4) == found


def test_what_is_rare_is_dealt_often_enough_to_reach_the_goal() -> None:
    for goal in (1e-3, 1e-4):
        assert unordered([12, 9, 9], [0, 1, 29], goal).p <= goal


def test_where_dealing_cannot_reach_the_goal_formulas_do_or_nothing_is_said() -> None:
    rare = [1, 0, 2, 1, 1, 0] * 10
    many = unordered([400, 300, *rare], [100, 300, *reversed(rare)], 1e-6)
    assert many.statistic == "chi-square test, rare values together"
    assert many.p < 1e-12
    assert unordered([400, 300, *rare], [401, 300, *reversed(rare)], 1e-6).p > 0.01
    few = unordered([3, 3, 0], [0, 0, 6], 1e-6)
    assert (few.statistic, few.p, few.distance) == ("", 1.0, 1.0)
    assert ordered([3, 3, 0], [0, 0, 6], 1e-6).statistic == "Kolmogorov-Smirnov test"


@pytest.mark.parametrize("seed", range(5))
def test_large_counts_agree_with_dealing(seed: int) -> None:
    generator = random.Random(seed)
    before = Counter(generator.choices("abcd", [4, 3, 2, 1], k=400))
    now = Counter(generator.choices("abcd", [4, 3, 2, 1.5], k=300))
    pair = [before[x] for x in "abcd"], [now[x] for x in "abcd"]
    large = unordered(*pair, 1e-3)
    assert large.statistic == "chi-square test"
    few = ordered(*pair, 1e-3)
    assert few.distance <= large.distance + 1e-12
    assert few.p <= kolmogorov_tail(few.distance * math.sqrt(400 * 300 / 700)) * 1.7  # ties make the formula too great


def test_the_least_chance_is_that_of_the_greatest_difference() -> None:
    assert least_chance([3, 0], [0, 3], is_ordered=False) == pytest.approx(1 / 20)
    assert least_chance([50, 1], [50, 0], is_ordered=False) == pytest.approx(50 / 101)
    assert least_chance([5, 5], [5, 5], is_ordered=False) < 1e-5
    assert least_chance([2, 1, 0], [0, 0, 3], is_ordered=True) == pytest.approx(1 / 20)


def test_holm_as_published() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_tests_that_can_say_nothing_do_not_share_alpha() -> None:
    assert tellable([0.5] * 100 + [1e-6] * 3, 0.01) == 3
    assert tellable([0.009, 0.5], 0.01) == 1
    assert tellable([], 0.01) == 1


def test_more_documents_show_smaller_differences() -> None:
    assert detectable(0, 5, 0.01, is_ordered=False) == 1.0
    assert detectable(20, 20, 1e-3, is_ordered=False) > 0.5
    assert detectable(10_000, 10_000, 1e-3, is_ordered=True) < 0.05
    assert 0 < detectable(10, 10, 1e-30, is_ordered=False) <= 1
