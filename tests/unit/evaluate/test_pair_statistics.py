"""Exact tests and bounds of pairs: against their definitions, and their error rates counted out."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from pipeline.evaluate.bounds import lowest, no_less, share_bounds
from pipeline.evaluate.signs import EXACT, least_p, sign_test, signed_ranks, weighted_holm, worth_testing


@pytest.mark.parametrize(("up", "down"), [(0, 0), (1, 0), (0, 10), (3, 9), (40, 25), (7, 7), (0, 1100), (1300, 1200)])
def test_mcnemar_is_the_sum_of_its_binomial(up: int, down: int) -> None:
    pairs, few = up + down, min(up, down)
    exact = min(1.0, 2 * sum(math.comb(pairs, k) for k in range(few + 1)) / 2**pairs)
    assert sign_test(up, down) == pytest.approx(exact, rel=1e-9)
    assert sign_test(up, down) == sign_test(down, up)


@pytest.mark.parametrize("differences", [[1, 2, -3, 4], [0.5, 0.5, -0.5, 2, 2, 9, 0], [-1, -1, 3, 3, 3, -7, 8, 8]])
def test_signed_ranks_are_counted_over_all_signs(differences: list[float]) -> None:
    sizes = sorted(abs(d) for d in differences if d)
    ranks = [(sizes.index(abs(d)) + 1 + sizes.index(abs(d)) + sizes.count(abs(d))) / 2 for d in differences if d]
    seen = sum(rank for rank, d in zip(ranks, [d for d in differences if d], strict=True) if d > 0)
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(ranks))]
    least = min(seen, sum(ranks) - seen)
    exact = min(1.0, 2 * sum(one <= least + 1e-9 for one in sums) / len(sums))
    assert signed_ranks([(d, 1) for d in differences]) == pytest.approx(exact)


def test_yes_and_no_as_amounts_have_the_same_chance() -> None:
    for up, down in ((3, 9), (0, 20), (60, 31)):
        assert signed_ranks([(1.0, up), (-1.0, down), (0.0, 50)]) == pytest.approx(sign_test(up, down))


@pytest.mark.parametrize("lean", [0.5, 0.56, 0.62])
def test_beyond_the_exact_sum_the_approximation_is_no_bolder(lean: float) -> None:
    """Sizes of one kind: then the sign test is the exact answer."""
    pairs = EXACT + 400
    up = round(pairs * lean)
    exact, approximate = sign_test(up, pairs - up), signed_ranks([(2.0, up), (-2.0, pairs - up)])
    assert exact * 0.999 <= approximate <= exact * 1.5 + 1e-12


def test_holm_with_equal_weights_is_holm_and_weights_share_alpha() -> None:
    assert weighted_holm([0.01, 0.04, 0.03, 0.5], [1, 1, 1, 1]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert weighted_holm([0.004, 0.5], [0.5, 0.5]) == pytest.approx([0.008, 0.5])
    heavy, light = weighted_holm([0.02, 0.02], [0.9, 0.1])
    assert heavy == pytest.approx(0.02 / 0.9)
    assert light == heavy  # its own p times what is left of alpha is less, and an order is kept
    assert weighted_holm([], []) == []


def test_holm_keeps_the_family_wise_rate_of_discrete_tests() -> None:
    generator, called, rounds = random.Random(5), 0, 1500
    for _ in range(rounds):
        pairs = [generator.randint(0, 25) for _ in range(30)]
        ups = [sum(generator.random() < 0.5 for _ in range(n)) for n in pairs]
        is_open = worth_testing([least_p(n) for n in pairs], 0.05)
        ps = [sign_test(up, n - up) for up, n, kept in zip(ups, pairs, is_open, strict=True) if kept]
        called += any(p <= 0.05 for p in weighted_holm(ps, [1.0] * len(ps)))
    assert share_bounds(called, rounds, 0.001)[0] <= 0.05


def test_tests_that_cannot_say_anything_take_no_part_of_alpha() -> None:
    assert worth_testing([least_p(n) for n in (0, 1, 3, 12, 30)], 0.01) == [False, False, False, True, True]
    assert worth_testing([], 0.01) == []


def test_bounds_of_a_share_are_those_of_clopper_and_pearson() -> None:
    assert share_bounds(0, 200, 0.025) == pytest.approx((0, 0.01828), abs=1e-5)
    assert share_bounds(10, 100, 0.025) == pytest.approx((0.04900, 0.17622), abs=1e-5)
    assert share_bounds(5, 5, 0.05) == pytest.approx((0.05**0.2, 1.0))
    assert share_bounds(0, 0, 0.05) == (0.0, 1.0)


def test_where_nothing_differs_the_bound_is_that_of_none_of_so_many() -> None:
    for documents in (50, 300, 2000):
        bound = -lowest(documents, 0, 0, 0.01)
        assert 1 - 0.01 ** (1 / documents) <= bound <= 1.06 * (1 - 0.0095 ** (1 / documents))


def test_bounds_turn_with_their_sides_and_are_near_their_formula_where_many_differ() -> None:
    low, high = lowest(2000, 80, 120, 0.01), -lowest(2000, 120, 80, 0.01)
    spread = 2.326 * math.sqrt(200 / 2000**2 - 0.02**2 / 2000)
    assert low == pytest.approx(-0.02 - spread, abs=0.0015)
    assert high == pytest.approx(-0.02 + spread, abs=0.0015)
    assert low < -0.02 < high


def test_the_level_of_the_bound_holds_for_every_share_that_differs() -> None:
    """The chance that a drop of exactly the margin is called less than that, added up over all outcomes."""
    documents, margin, alpha = 40, 0.1, 0.05
    kept = {
        (up, down)
        for up in range(documents + 1)
        for down in range(documents + 1 - up)
        if up - down > -margin * documents and no_less(documents, up, down, -margin, alpha) <= alpha
    }
    assert kept
    errors = []
    for share in (0.1, 0.12, 0.2, 0.35, 0.6, 1.0):
        rise, fall = (share - margin) / 2, (share + margin) / 2
        errors.append(
            sum(
                math.comb(documents, up)
                * math.comb(documents - up, down)
                * rise**up
                * fall**down
                * max(0.0, 1 - share) ** (documents - up - down)
                for up, down in kept
            )
        )
    assert max(errors) <= alpha
    assert max(errors) > alpha / 4, "a test that never says anything holds its level, too"
