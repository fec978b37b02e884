"""Lengths of answers against the tokens that they were given, by schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.observe.paths import answers_of
from pipeline.records import Outcome

BINS = 20


@dataclass(slots=True)
class Lengths:
    """First answers of one schema's documents: output tokens, prompt tokens and budgets, each with how often it
    occurred. `bins` count answers by the share of their budget that they took (bin 0: up to a twentieth) and `cut`
    those of each bin that were cut for want of tokens."""

    answers: int = 0
    output: Counter[int] = field(default_factory=Counter)
    prompt: Counter[int] = field(default_factory=Counter)
    budgets: Counter[int] = field(default_factory=Counter)
    bins: Counter[int] = field(default_factory=Counter)
    cut: Counter[int] = field(default_factory=Counter)

    def add(self, outcome: Outcome, budget: int) -> None:
        """Count the first answer of an outcome. `budget` is that of a run that did not keep each attempt's own, 0 if
        nobody knows it: then only lengths are counted."""
        first = next((answer.attempt for answer in answers_of(outcome) if not answer.failed), None)
        if first is None:
            return
        given = first.max_tokens or budget
        self.answers += 1
        self.output[first.output_tokens] += 1
        self.prompt[first.prompt_tokens] += 1
        if given > 0:
            place = bin_of(first.output_tokens, given)
            self.budgets[given] += 1
            self.bins[place] += 1
            self.cut[place] += first.finish_reason == "length"


def bin_of(tokens: int, budget: int) -> int:
    """Which twentieth of its budget an answer reached: (i/20, (i+1)/20] of it is bin i."""
    return min(BINS - 1, max(0, -(-tokens * BINS // budget) - 1))


def quantile(counts: Mapping[int, int], percent: int) -> int:
    """The smallest value that at least `percent` of a hundred observations do not exceed (the inverse of the empirical
    distribution function); 0 of none."""
    total, seen = sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if 100 * seen >= percent * total:
            return value
    return 0
