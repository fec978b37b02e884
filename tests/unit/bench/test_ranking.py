"""AUROC, its interval and the reliability table, against what they are by definition."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.gold import same
from bench.ranking import Scored, auroc, reliability, with_interval

ANSWERS = st.lists(st.builds(Scored, st.sampled_from("abc"), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()))


@given(ANSWERS)
def test_auroc_is_the_share_of_pairs_in_the_right_order(answers: list[Scored]) -> None:
    right = [answer.score for answer in answers if answer.right]
    wrong = [answer.score for answer in answers if not answer.right]
    won = sum((one > other) + (one == other) / 2 for one in right for other in wrong)
    expected = won / (len(right) * len(wrong)) if right and wrong else None
    assert auroc(answers) == (None if expected is None else pytest.approx(expected))


def test_a_constant_is_worth_one_half_and_the_truth_one() -> None:
    truth = [Scored(str(number % 5), float(number % 3 == 0), number % 3 == 0) for number in range(30)]
    assert with_interval(truth).value == 1.0
    constant = with_interval([Scored(one.group, 1.0, one.right) for one in truth])
    assert (constant.value, constant.low, constant.high) == (0.5, 0.5, 0.5)
    assert with_interval([]).value is None


@given(ANSWERS, st.integers(1, 6))
def test_bins_hold_every_answer_once_and_never_split_a_score(answers: list[Scored], bins: int) -> None:
    found = reliability(answers, bins)
    assert sum(one.answers for one in found) == len(answers)
    assert all(one.high < other.low for one, other in pairwise(found))
    assert sum(one.answers * one.right for one in found) == pytest.approx(sum(answer.right for answer in answers))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("ＡＢＣ Sdn.", "abc sdn", True),
        ("9.00", 9, True),
        ("9.00", "9", True),
        ("12/01/2018", "12/01/18", False),
        (None, "", False),
        (None, None, True),
        ("桂圆 红枣粥", "桂圆红枣粥", True),
        ("1" * 30, "1" * 29 + "2", False),
    ],
)
def test_values_are_compared_as_people_would(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal
