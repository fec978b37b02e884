"""Intervals: Wilson's against tables, the bootstrap's coverage, and that neither order nor parts change it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pipeline.evaluate.calibration import bin_of, calibration_of
from pipeline.evaluate.intervals import BLOCK, Bootstrap, Name, ratio, wilson
from pipeline.evaluate.judged import ALL

RIGHT, TRIED = (ALL, "right"), (ALL, "tried")


def test_wilson_is_what_the_literature_tabulates() -> None:
    """Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for count, of, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        rate = wilson(count, of)
        assert (rate.low, rate.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert wilson(0, 0).value is None


def clusters(generator: np.random.Generator, documents: int) -> list[dict[Name, float]]:
    """Documents of 1 to 6 values that are read well or badly as a whole: far from independent values."""
    made: list[dict[Name, float]] = []
    for _ in range(documents):
        tried = int(generator.integers(1, 7))
        made.append({RIGHT: float(generator.binomial(tried, generator.beta(0.8, 0.8))), TRIED: float(tried)})
    return made


def interval(documents: list[dict[Name, float]], seed: int = 0, resamples: int = 300) -> tuple[float, float]:
    boot = Bootstrap(resamples, seed)
    for number, values in enumerate(documents):
        boot.add(f"d{number}", values)
    rate = ratio(boot.sums(RIGHT), boot.sums(TRIED), len(documents))
    assert rate.low is not None and rate.high is not None
    return rate.low, rate.high


def test_the_bootstrap_covers_the_truth_as_often_as_it_says_where_values_are_not_independent() -> None:
    generator = np.random.default_rng(5)
    covered = plain = 0
    for seed in range(200):
        documents = clusters(generator, 60)
        low, high = interval(documents, seed)
        covered += low <= 0.5 <= high
        by_value = wilson(sum(one[RIGHT] for one in documents), sum(one[TRIED] for one in documents))
        plain += (by_value.low or 0) <= 0.5 <= (by_value.high or 0)
    assert 0.90 <= covered / 200 <= 0.99
    assert plain < covered  # what counts values as independent is too sure


def test_the_order_of_documents_changes_nothing_but_rounding() -> None:
    documents = clusters(np.random.default_rng(1), 2 * BLOCK + 7)
    named = list(enumerate(documents))
    ends = []
    for seed in (0, 1):
        random.Random(seed).shuffle(named)
        boot = Bootstrap(200)
        for number, values in named:
            boot.add(f"d{number}", values)
        ends.append(boot.sums(RIGHT))
    assert ends[0] == pytest.approx(ends[1])
    assert ends[0][0] == sum(one[RIGHT] for one in documents)


def test_memory_grows_with_names_and_not_with_documents() -> None:
    boot = Bootstrap(100)
    for number in range(3 * BLOCK):
        boot.add(str(number), {(ALL, f"n{number % 90}"): 1.0})
    assert len(boot.names()) == 90
    assert boot._sums.shape[1] <= 4 * 90 and not boot._values


@pytest.mark.parametrize("documents", [3, 8, 15])
def test_intervals_of_few_documents_are_rather_too_wide(documents: int) -> None:
    generator = np.random.default_rng(6)
    ends = [interval(clusters(generator, documents), seed, resamples=100) for seed in range(200)]
    assert sum(low <= 0.5 <= high for low, high in ends) / 200 >= 0.95
    assert all(low < high for low, high in ends)


def test_no_variation_is_no_certainty() -> None:
    boot = Bootstrap(200)
    for number in range(40):
        boot.add(str(number), {TRIED: 2.0})
    rate = ratio(boot.sums(RIGHT), boot.sums(TRIED), 40)
    assert (rate.value, rate.low, rate.interval) == (0.0, 0.0, "wilson")
    assert rate.high == wilson(0, 40).high
    assert ratio(boot.sums(RIGHT), boot.sums((ALL, "never")), 40).value is None


def test_calibration_is_that_of_the_definitions() -> None:
    generator = np.random.default_rng(3)
    scores = [(float(c), bool(generator.random() < c**2)) for c in generator.random(400)] + [(0.5, True), (0.5, False)]
    boot = Bootstrap(100)
    for number, (score, right) in enumerate(scores):
        where = ("confidence", "s@1", str(bin_of(score)))
        boot.add(str(number), {(where, "right" if right else "not"): 1.0, (where, "sum"): score})
    found = calibration_of(boot, "s@1", len(scores))
    assert found is not None and found.values == len(scores)
    rights, wrongs = ([score for score, is_right in scores if is_right is kind] for kind in (True, False))
    won = sum((one > other) + (one == other) / 2 for one in rights for other in wrongs) / (len(rights) * len(wrongs))
    assert found.auroc.value == pytest.approx(won, abs=0.005)
    groups = [[one for one in scores if min(9, int(one[0] * 10)) == group] for group in range(10)]
    apart = sum(abs(sum(right for _, right in one) - sum(score for score, _ in one)) for one in groups)
    assert found.ece.value == pytest.approx(apart / len(scores), abs=0.01)
    assert calibration_of(boot, "other@1", 1) is None


def test_bins_keep_the_order_of_confidences_and_are_few() -> None:
    values = [0.0, 0.3, 0.89, 0.9, 0.99, 0.9991, 0.99999, 1.0]
    bins = list(map(bin_of, values))
    assert bins == sorted(set(bins))
    assert max(bins) < 400
    assert bin_of(float("nan")) == bin_of(-1) == 0 and bin_of(2.0) == bins[-1]
