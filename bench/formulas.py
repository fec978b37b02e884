"""The formulas that `bench.confidence` compares, and what they are worth on a set of observed values."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.gold import SETS
from bench.ranking import Scored, reliability, with_interval
from pipeline.steps.confidence import SUPPORT, TOUCHED


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of an answer that gold speaks of, with all that a formula may use. `mean`, `lowest` and `total` are
    natural logarithms of probability of its tokens; `half` is 0 for choosing, 1 for reporting."""

    set: str
    document: str
    half: int
    pointer: str
    null: bool
    right: bool
    tokens: int
    mean: float
    lowest: float
    match: str
    score: float
    touched: bool
    confidence: float


def weighted(tokens: Callable[[Leaf], float], weight: float) -> Callable[[Leaf], float]:
    """Support times what a probability makes of it: between 1 - weight and 1."""
    return lambda leaf: support(leaf) * (1 - weight + weight * tokens(leaf))


TOKENS: dict[str, Callable[[Leaf], float]] = {
    "mean": lambda leaf: math.exp(leaf.mean),
    "lowest": lambda leaf: math.exp(leaf.lowest),
    "product": lambda leaf: math.exp(leaf.mean * leaf.tokens),
}
FORMULAS: dict[str, Callable[[Leaf], float]] = {
    "constant": lambda leaf: 1.0,
    **{f"tokens: {name}": tokens for name, tokens in TOKENS.items()},
    "support only": lambda leaf: support(leaf),
    **{f"support x {name}": weighted(tokens, 1.0) for name, tokens in TOKENS.items()},
    **{f"support x (1 + {name})": weighted(tokens, 0.5) for name, tokens in TOKENS.items()},
    "shipped": lambda leaf: leaf.confidence,
}
"""The shipped one was picked with the figures of both halves of one small run in sight: docs/confidence.md."""


def support(leaf: Leaf) -> float:
    """What the shipped formula makes of grounding and repairs."""
    factor = leaf.score if leaf.match == "fuzzy" else SUPPORT[leaf.match]
    return factor * (TOUCHED if leaf.touched else 1.0)


def of_field(leaves: Sequence[Leaf]) -> Callable[[Leaf], float]:
    """A score that knows nothing of a value but its field: the share of right ones in the half for choosing."""
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for leaf in leaves:
        if leaf.half == 0:
            counts[leaf.set, leaf.pointer.rstrip("0123456789")].append(leaf.right)

    def score(leaf: Leaf) -> float:
        known = counts.get((leaf.set, leaf.pointer.rstrip("0123456789")), [])
        return (sum(known) + 1) / (len(known) + 2)

    return score


def report(found: Sequence[Leaf]) -> dict[str, Any]:
    """Per set, for all leaves and for those that are not null: AUROC of each formula on both halves, reliability."""
    formulas = {**FORMULAS, "which field": of_field(found)}
    sets: dict[str, Any] = {}
    for name in (*SETS, "all"):
        for kind in ("all leaves", "not null"):
            chosen = [leaf for leaf in found if name in (leaf.set, "all") and not (leaf.null and kind == "not null")]
            halves = [[leaf for leaf in chosen if leaf.half == half] for half in (0, 1)]
            sets[f"{name}, {kind}"] = {
                "auroc": {
                    label: [dataclasses.asdict(with_interval(scored(half, formula))) for half in halves]
                    for label, formula in formulas.items()
                },
                "reliability": [dataclasses.asdict(one) for one in reliability(scored(halves[1], FORMULAS["shipped"]))],
            }
    return sets


def scored(leaves: Sequence[Leaf], formula: Callable[[Leaf], float]) -> list[Scored]:
    return [Scored(f"{leaf.set}/{leaf.document}", formula(leaf), leaf.right) for leaf in leaves]


def records(found: Sequence[Leaf]) -> dict[str, Any]:
    """Summaries of the confidence of a record's leaves as ranks of records. Right: a larger share of its leaves is
    right than the set's median share. (Records that are right as a whole are rare with a small model.)"""
    by_document: dict[tuple[str, str], list[Leaf]] = defaultdict(list)
    for leaf in found:
        by_document[leaf.set, leaf.document].append(leaf)
    shares = {key: sum(leaf.right for leaf in leaves) / len(leaves) for key, leaves in by_document.items()}
    result = {}
    for name in SETS:
        of_set = sorted(share for (set_name, _), share in shares.items() if set_name == name)
        median = of_set[len(of_set) // 2] if of_set else 0.0
        ranked = {
            label: [
                Scored(key[1], summary([leaf.confidence for leaf in leaves]), shares[key] > median)
                for key, leaves in by_document.items()
                if key[0] == name
            ]
            for label, summary in SUMMARIES.items()
        }
        result[name] = {label: dataclasses.asdict(with_interval(answers)) for label, answers in ranked.items()}
    return result


SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    "lowest": min,
    "mean": lambda values: sum(values) / len(values),
    "product": math.prod,
}
