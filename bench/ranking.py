"""How well a score ranks right answers above wrong ones: AUROC with an interval, and a reliability table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

RESAMPLES = 500
SEED = 20_264


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer: which document it is from, its score, and whether it is right."""

    group: str
    score: float
    right: bool


@dataclass(frozen=True, slots=True)
class Auroc:
    """The share of (right, wrong) pairs that a score orders rightly, ties counting half, with a 95 % interval. None:
    all answers are right, or all wrong."""

    value: float | None
    low: float | None
    high: float | None
    right: int
    wrong: int

    def __str__(self) -> str:
        return "n/a" if self.value is None else f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def auroc(answers: Sequence[Scored]) -> float | None:
    """AUROC by ranks (Mann-Whitney U); a constant score has 0.5."""
    right = sum(answer.right for answer in answers)
    wrong = len(answers) - right
    if not right or not wrong:
        return None
    below, won = 0, 0.0
    ordered = sorted(((answer.score, answer.right) for answer in answers), key=itemgetter(0))
    for _, ties in groupby(ordered, key=itemgetter(0)):
        rights = [is_right for _, is_right in ties]
        tied_right = sum(rights)
        tied_wrong = len(rights) - tied_right
        won += tied_right * (below + tied_wrong / 2)
        below += tied_wrong
    return won / (right * wrong)


def with_interval(answers: Sequence[Scored]) -> Auroc:
    """AUROC, and a bootstrap over documents: the answers of one stay together, since they share its difficulty."""
    by_group: dict[str, list[Scored]] = {}
    for answer in answers:
        by_group.setdefault(answer.group, []).append(answer)
    groups, chosen, found = list(by_group.values()), random.Random(SEED), []
    for _ in range(RESAMPLES if groups else 0):
        value = auroc([answer for group in chosen.choices(groups, k=len(groups)) for answer in group])
        found.append(value)
    values = sorted(value for value in found if value is not None)
    right = sum(answer.right for answer in answers)
    if not values or (point := auroc(answers)) is None:
        return Auroc(None, None, None, right, len(answers) - right)
    low, high = values[round(0.025 * (len(values) - 1))], values[round(0.975 * (len(values) - 1))]
    return Auroc(point, low, high, right, len(answers) - right)


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose scores are from `low` to `high`, and which share of them is right."""

    low: float
    high: float
    answers: int
    right: float


def reliability(answers: Sequence[Scored], bins: int = 5) -> list[Bin]:
    """Bins of equally many answers, by rising score; answers of one score stay in one bin."""
    ordered = sorted(answers, key=lambda answer: answer.score)
    found: list[Bin] = []
    taken = 0
    for number in range(bins):
        end = round((number + 1) * len(ordered) / bins)
        while 0 < end < len(ordered) and ordered[end].score == ordered[end - 1].score:
            end += 1
        part = ordered[taken:end]
        if part:
            share = sum(answer.right for answer in part) / len(part)
            found.append(Bin(part[0].score, part[-1].score, len(part), share))
        taken = max(taken, end)
    return found
