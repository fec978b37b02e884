"""What a reader of numbers, dates or currencies found: where, and how surely it says the value."""

from __future__ import annotations

from dataclasses import dataclass

PLAIN = 0.95
"""As it stands, in another notation."""
DERIVED = 0.9
"""After a percent sign or a multiplier was applied, or in parentheses for a negative amount."""
AMBIGUOUS = 0.8
"""One of two readings: 1,234 as one thousand and as one point two; a date by day or by month first."""
COUNTED = 0.7
"""Read from numerals in words, from repeated stars, or without the sign that stands there."""
WITHIN = 0.6
"""Part of something longer (a date, a time, a fraction, a number with leading zeros), or a sign that several
currencies share."""

MAX_READINGS = 64
"""Places kept of one value."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One place, [`start`, `end`) code points; `score` is one of the constants here: an order, no probability."""

    start: int
    end: int
    score: float
