"""Attempts: how many answers a document takes, from the chance that one is good enough, and the other way round."""

from __future__ import annotations

from pipeline.cost.estimate import Estimate

_STEPS = 60


def expected_attempts(success: float, most: int) -> float:
    """The mean number of answers if each is good with the same chance p, and at most N are asked for.

    With q = 1 - p it is 1 + q + … + q^(N-1) = (1 - q^N) / (1 - q): the mean of a geometric distribution cut at N.
    """
    failure = 1.0 - success
    return float(sum(failure**number for number in range(most)))


def success_of(mean: float, most: int) -> float:
    """The inverse: the chance under which documents take `mean` answers of at most `most` (two or more)."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_attempts(middle, most) > mean else (low, middle)
    return (low + high) / 2


def attempts_of(success: Estimate | None, most: int) -> Estimate:
    """Answers a document. Where nothing is known of the chance: one at least, and at most as many as the job allows."""
    if success is None:
        return Estimate(1.0, 1.0, float(most), "assumed" if most > 1 else "exact")
    return success.through(lambda chance: expected_attempts(chance, most))
