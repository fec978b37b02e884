"""The gate: whether run B may take the place of run A, by the rules of a job (docs/compare.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.evaluate.comparison import RunComparison
from pipeline.jobgate import GateConfig

Decision = Literal["promote", "hold", "roll_back"]
State = Literal["kept", "open", "broken"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule judged. `change` is the estimate, [`low`, `high`] its bounds, all in the rule's sense: more is worse.
    `needed` is about how many documents would settle an open rule if B is as good as A; 0: nobody knows. `alarm`:
    something is worse or moved beyond chance. `words` say it to a person."""

    name: str
    state: State
    margin: float
    change: float
    low: float
    high: float
    documents: int
    words: str
    needed: int = 0
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Gated:
    """The decision and what it rests on; `reasons` are the words of what keeps B from being promoted."""

    decision: Decision
    rules: tuple[Rule, ...]
    reasons: tuple[str, ...]


def gate(found: RunComparison, rules: GateConfig) -> Gated:
    """`roll_back` if a rule is broken, `hold` if one is open, else `promote`. The same comparison always gives the same
    decision."""
    raise NotImplementedError
