"""Estimates of a cost plan: intervals that hold as often as they say, attempts, hours, engines for a deadline."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.attempts import attempts_of, expected_attempts, success_of
from pipeline.cost.estimate import Estimate, added, count_of, point, ratio_of, share_of, student, total_of
from pipeline.cost.given import Given
from pipeline.cost.hours import Hours, hours_of
from pipeline.cost.tokens import Tokens, together
from pipeline.errors import JobFileError

CHANCE = st.floats(0, 1)
DRAWS = 400


def test_the_interval_of_a_total_holds_about_as_often_as_it_says() -> None:
    rng = random.Random(0)
    lengths = [rng.lognormvariate(6, 0.8) for _ in range(3000)]  # few long documents, many short ones
    held = 0
    for _ in range(DRAWS):
        estimate = total_of(rng.sample(lengths, 100), len(lengths))
        held += estimate.low <= sum(lengths) <= estimate.high
    assert 0.90 <= held / DRAWS <= 0.99
    assert estimate.high - estimate.low < 0.6 * sum(lengths)  # and says something


def test_the_interval_of_a_count_holds_where_hits_are_rare() -> None:
    rng, held = random.Random(1), []
    for there in (15, 30, 45, 90, 600):
        kinds = [number < there for number in range(3000)]
        found = [count_of(sum(rng.sample(kinds, 100)), 100, 3000) for _ in range(DRAWS)]
        held.append(sum(one.low <= there <= one.high for one in found) / DRAWS)
    assert min(held) >= 0.93
    assert count_of(20, 100, 3000).high < 3000 / 3
    assert count_of(0, 100, 3000).high > 30  # none seen is not none there


def test_the_interval_of_a_ratio_holds_over_units_of_different_size() -> None:
    rng, held = random.Random(2), 0
    for _ in range(DRAWS):
        sizes = [rng.randint(20, 60) for _ in range(12)]
        estimate = ratio_of([(sum(rng.expovariate(1 / 80) for _ in range(size)), size) for size in sizes])
        held += estimate.low <= 80 <= estimate.high
    assert 0.88 <= held / DRAWS <= 0.99


def test_what_was_seen_whole_is_exact_and_what_was_seen_is_there() -> None:
    assert total_of([3, 5], 2) == point(8, "exact")
    assert count_of(1, 2, 2) == point(1, "exact")
    assert total_of([0] * 20 + [900], 100).low >= 900
    assert count_of(2, 40, 41).high <= 3
    assert total_of([], 0) == point(0, "exact")


def test_nothing_to_do_takes_nothing() -> None:
    nothing = together([])
    assert {nothing.asked.value, nothing.attempts.value, nothing.outputs.high, nothing.uncached.high} == {0}
    assert hours_of(nothing, point(5, "given"), 1, Given(tokens_per_second=5)).work.value == 0


def test_one_unit_gives_no_interval_and_one_without_answers_is_no_unit() -> None:
    assert ratio_of([(10, 5), (0, 0)]) == point(2.0, "measured")


@pytest.mark.parametrize(("freedom", "table"), [(1, 12.706), (2, 4.303), (3, 3.182), (9, 2.262), (99, 1.984)])
def test_students_quantile_is_that_of_the_tables(freedom: int, table: float) -> None:
    assert student(freedom) == pytest.approx(table, rel=0.01)


def test_sampling_errors_add_in_squares_and_assumptions_as_they_are() -> None:
    sampled = [Estimate(10, 7, 13, "sampled"), Estimate(10, 6, 14, "sampled")]
    assert added(sampled) == Estimate(20, 15, 25, "sampled")
    assumed = added([*sampled, Estimate(10, 8, 11, "assumed"), Estimate(1, 0, 1, "assumed")])
    assert assumed == Estimate(31, 31 - 5 - 3, 31 + 5 + 1, "assumed")


@given(CHANCE, st.integers(1, 10))
def test_expected_attempts_are_the_mean_of_a_cut_geometric_distribution(success: float, most: int) -> None:
    failure = 1 - success
    by_definition = sum(n * failure ** (n - 1) * success for n in range(1, most)) + most * failure ** (most - 1)
    assert expected_attempts(success, most) == pytest.approx(by_definition)
    if failure < 0.999:
        assert expected_attempts(success, most) == pytest.approx((1 - failure**most) / (1 - failure))


@given(CHANCE, st.integers(2, 10))
def test_the_chance_is_found_again_from_the_mean(success: float, most: int) -> None:
    mean = expected_attempts(success, most)
    assert expected_attempts(success_of(mean, most), most) == pytest.approx(mean)


def test_less_success_means_more_attempts_and_none_known_means_up_to_the_most() -> None:
    estimate = attempts_of(share_of(80, 100, "measured"), 3)
    assert 1 < estimate.low < estimate.value < estimate.high < 3
    assert estimate.value == pytest.approx(1 + 0.2 + 0.04)
    assert attempts_of(None, 3) == Estimate(1, 1, 3, "assumed")
    assert attempts_of(None, 1) == point(1, "exact")


@settings(max_examples=200)
@given(st.floats(0.01, 1e5), st.floats(0.1, 100), st.floats(0, 2), st.floats(0, 5))
def test_as_many_engines_as_the_deadline_wants_and_no_more(
    work: float, deadline: float, reserve: float, start: float
) -> None:
    told = Given(tokens_per_second=1, deadline_hours=deadline, reserve=reserve, start_minutes=start)
    hours = Hours(point(work * (1 + reserve), "given"), 1, told, start / 60)
    needed = Hours(point(work, "given"), 1, told, start / 60).needed()
    assert needed is not None
    slack = 1 + 1e-9
    assert hours.with_engines(int(needed.value))["hours"]["value"] <= deadline * slack
    if needed.value > 1:
        assert hours.with_engines(int(needed.value) - 1)["hours"]["value"] > deadline / slack


def test_prompts_come_on_top_where_their_own_rate_is_given_and_cached_ones_do_not() -> None:
    one, zero = point(1, "exact"), point(0, "exact")
    tokens = Tokens(one, one, one, one, one, point(9000, "exact"), point(1800, "exact"), point(3600, "exact"))
    alone = hours_of(tokens, point(10, "given"), 2, Given(tokens_per_second=10, price_per_gpu_hour=3))
    both = hours_of(tokens, point(10, "given"), 2, Given(tokens_per_second=10, prompt_tokens_per_second=40))
    assert alone.work.value == pytest.approx(0.1)
    assert both.work.value == pytest.approx(0.1 + 7200 / 40 / 3600)
    assert alone.with_engines(4)["cost"]["value"] == pytest.approx(0.1 * 2 * 3)  # as dear with one engine or four
    assert alone.with_engines(4)["hours"]["value"] == pytest.approx(0.025)
    assert both.with_engines(1)["cost"] is None
    assert tokens.uncached.value == 7200
    assert zero.over(one) == zero


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"success": 1.5}, "--success"),
        ({"sample": 1}, "--sample"),
        ({"tokens_per_second": 0}, "--tokens-per-second"),
        ({"tokens_per_second": math.inf}, "--tokens-per-second"),
        ({"output_tokens": math.nan}, "--output-tokens"),
        ({"reserve": -1}, "--reserve"),
        ({"reserve": math.nan}, "--reserve"),
        ({"deadline_hours": 2}, "--deadline asks for hours"),
        ({"price_per_gpu_hour": 2}, "--price-per-gpu-hour asks for hours"),
        ({"run": "out", "prompt_tokens_per_second": 2}, "needs --tokens-per-second"),
        ({"tokens_per_second": 1, "deadline_hours": 1, "start_minutes": 60}, "leaves no time"),
    ],
)
def test_figures_that_mean_nothing_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(JobFileError, match=words):
        Given(**wrong).check()
