"""Advice: which of several models to take, by a rule that is written down and weighs nothing against anything else.

The criteria are asked one after the other. By each, whoever is shown to be worse than the best of those left is out:
the interval of their difference, paired by document and corrected for all comparisons that could be made, does not
reach zero. Who is left when one is left, or when there is no criterion more, is recommended, or they are told to be
alike as far as this was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.evaluate.side_rates import Gap

CRITERIA: Mapping[str, int] = {"gold": -1, "valid": -1, "required": -1, "repeat": 1, "batch": 1}
"""In this order, with 1 if more is worse and -1 if less is."""

WORDS = {
    "gold": "F1 against gold",
    "valid": "valid documents",
    "required": "required values that are filled",
    "repeat": "records that change when the same is run again",
    "batch": "records that change in other batches",
    "cost": "cost per valid record",
}

Value = Callable[[str, str], float | None]
"""By (model, criterion)."""
Difference = Callable[[str, str, str], Gap]
"""By (model, other model, criterion): the other's less the model's."""
Costs = Mapping[str, tuple[float, float, float]]
"""Of each model that it is known of, the cost per valid record and its interval."""


@dataclass(frozen=True, slots=True)
class Out:
    """A model that is out, by which criterion, against whom, and why in words."""

    model: str
    criterion: str
    against: str
    words: str


@dataclass(frozen=True, slots=True)
class Advice:
    """`left` are the models that nothing spoke against; one is the recommendation. `out` are the others, in the order
    in which they went. `words` say it."""

    left: tuple[str, ...]
    out: tuple[Out, ...]
    words: str

    @property
    def recommended(self) -> str | None:
        """The one model to take, None if no difference was shown between several."""
        return self.left[0] if len(self.left) == 1 else None


def comparisons(models: int) -> int:
    """How many differences the rule may look at: each pair by each criterion."""
    return max(1, len(CRITERIA) * models * (models - 1) // 2)


def advise(models: Sequence[str], value: Value, difference: Difference, costs: Costs) -> Advice:
    """The advice on two models or more."""
    left, out = list(models), list[Out]()
    for criterion, worse in CRITERIA.items():
        known = [(worse * found, model) for model in left if (found := value(model, criterion)) is not None]
        if len(left) == 1 or len(known) < 2:
            continue
        best = min(known, key=lambda one: one[0])[1]
        for _, model in known:
            gap = difference(best, model, criterion)
            if model != best and gap.excludes(0.0) and gap.value is not None and worse * gap.value > 0:
                left.remove(model)
                out.append(Out(model, criterion, best, _words(model, best, criterion, gap)))
    if len(left) > 1:
        _by_cost(left, out, costs)
    return Advice(tuple(left), tuple(out), _verdict(left, out))


def _by_cost(left: list[str], out: list[Out], costs: Costs) -> None:
    """Whoever costs more than the cheapest, and whose interval lies above that of the cheapest, is out."""
    if not set(left) <= set(costs):
        return
    best = min(left, key=lambda model: costs[model][0])
    for model in [one for one in left if costs[one][1] > costs[best][2]]:
        left.remove(model)
        words = f"{model}: {WORDS['cost']} {costs[model][0]:.3g} against {costs[best][0]:.3g} of {best}"
        out.append(Out(model, "cost", best, words))


def _words(model: str, best: str, criterion: str, gap: Gap) -> str:
    assert gap.value is not None and gap.low is not None and gap.high is not None
    numbers = f"{100 * gap.value:+.1f} points ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"
    return f"{model}: {WORDS[criterion]} {numbers} against {best}"


def _verdict(left: Sequence[str], out: Sequence[Out]) -> str:
    if len(left) > 1:
        names = f"{', '.join(left[:-1])} and {left[-1]}"
        return f"no difference shown between {names}: more documents, gold or a price may tell them apart."
    if not out:
        return f"{left[0]} is the only model."
    names = ", ".join(dict.fromkeys(WORDS[one.criterion] for one in out))
    return f"take {left[0]}: the others are shown to be worse by {names}."
