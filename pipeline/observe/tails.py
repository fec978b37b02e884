"""Tails: the distributions behind the tests of `chance.py`.

Fisher's test and chi-square as in A. Agresti, Categorical Data Analysis, 3.2 and 3.5; the incomplete gamma function by
its series and by Lentz's continued fraction, and Kolmogorov's distribution, as in W. Press et al., Numerical Recipes,
6.2 and 14.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MAX_SUPPORT = 5000
"""Deals that Fisher's test adds up."""


def chi_square_tail(value: float, freedom: int) -> float:
    """The chance of a chi-square of at least `value`: the regularised upper incomplete gamma function."""
    a, x = freedom / 2, value / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - total * scale)
    b, c = x + 1 - a, 1e300
    d = 1 / b
    fraction = d
    for i in range(1, 1000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b or 1e-300)
        c = b + step / c or 1e-300
        fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return min(1.0, scale * fraction)


def kolmogorov_tail(value: float) -> float:
    """The chance of D times sqrt(nm/(n+m)) of at least `value`, for many values without ties."""
    if value < 0.2:
        return 1.0
    terms = ((2.0 if k % 2 else -2.0) * math.exp(-2 * (k * value) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, sum(terms)))


def fisher(before: Sequence[int], now: Sequence[int]) -> float | None:
    """Fisher's exact test of two values, two-sided: the chance of all deals that are no likelier than this one. None if
    there are more than MAX_SUPPORT."""
    row, column, total = sum(before), before[0] + now[0], sum(before) + sum(now)
    low, high = max(0, row + column - total), min(row, column)
    if high - low > MAX_SUPPORT:
        return None
    whole = log_choose(total, row)
    logs = [log_choose(column, x) + log_choose(total - column, row - x) - whole for x in range(low, high + 1)]
    limit = logs[before[0] - low] + 1e-7
    return min(1.0, math.fsum(math.exp(one) for one in logs if one <= limit))


def log_choose(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
