"""The gate: whether run B may take the place of run A, by the rules of a job (docs/compare.md).

A rule is judged by confidence bounds, not by the estimate: *kept* if B is no worse than the margin at level
1 - alpha, *broken* if B is worse than the margin at level 1 - alpha / 2 / rules, so that a false alarm of any rule or
test is as rare as alpha. B is promoted only if every rule is kept, so the chance of promoting one that breaks a margin
is at most alpha without a correction (R. Berger, 1982: an intersection-union test).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from pipeline.evaluate.bounds import lowest, share_bounds
from pipeline.evaluate.comparison import Measure, RunComparison
from pipeline.evaluate.corrected import SHARES_OF_ALPHA
from pipeline.jobgate import GateConfig

Decision = Literal["promote", "hold", "roll_back"]
State = Literal["kept", "open", "broken"]

_RATES = (
    ("max_valid_drop", "valid", "valid documents"),
    ("max_usable_drop", "usable", "valid or degraded documents"),
    ("max_format_drop", "first_format", "first answers that are JSON as they came"),
    ("max_semantic_drop", "first_semantic", "first answers that satisfy schema, rules and grounding"),
    ("max_completeness_drop", "completeness", "fields that are filled"),
    ("max_unsupported_rise", "unsupported", "values that the document does not support"),
    ("max_truncation_rise", "truncated", "documents of which an answer was cut"),
    ("max_gold_drop", "gold", "agreement with gold"),
)
_STATE_OF = {"ignore": "kept", "hold": "open", "roll_back": "broken"}


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
    judged = tuple(_judged(found, rules))
    states = {rule.state for rule in judged}
    decision: Decision = "roll_back" if "broken" in states else "hold" if "open" in states else "promote"
    order = sorted((rule for rule in judged if rule.state != "kept"), key=lambda rule: rule.state)
    return Gated(decision, judged, tuple(rule.words for rule in order))


def _judged(found: RunComparison, rules: GateConfig) -> Iterator[Rule]:
    asked = [(key, *rest) for key, *rest in _RATES if getattr(rules, key) is not None]
    several = len(asked) + (rules.max_cost_rise is not None) + (rules.max_field_change is not None)
    levels = rules.alpha, rules.alpha * SHARES_OF_ALPHA["bounds"] / max(1, several)
    yield _enough(found, rules)
    for key, name, what in asked:
        measure = found.measure(name)
        if measure is not None and measure.documents:
            yield _rate(key, measure, what, getattr(rules, key), levels)
            yield from _by_schema(found, key, measure, what, getattr(rules, key))
        elif name != "gold":
            yield Rule(key, "open", getattr(rules, key), 0, -1, 1, 0, f"{key}: no pair tells about {what}")
    if rules.max_cost_rise is not None:
        yield _cost(found, rules.max_cost_rise, levels)
    if rules.max_field_change is not None:
        yield _field_change(found, rules.max_field_change, levels)
    yield _field_shift(found, rules)
    yield _constraint(found, rules)


def _enough(found: RunComparison, rules: GateConfig) -> Rule:
    documents, least = found.pairing.documents, rules.min_documents
    words = f"min_documents: {documents} paired documents, {least} are asked for"
    return Rule("min_documents", "kept" if documents >= least else "open", least, 0, 0, 0, documents, words, least)


def _rate(key: str, one: Measure, what: str, margin: float, levels: tuple[float, float]) -> Rule:
    """A rate, or a share of each document, against its margin. Shares are counted as parts of a yes or no, rounded to
    the cautious side: of all that lie between -1 and 1 with the same mean rise and fall, those vary most."""
    rise = sum(max(0.0, value) * count for value, count in one.histogram)
    fall = sum(max(0.0, -value) * count for value, count in one.histogram)
    worse, better = (rise, fall) if one.worse > 0 else (fall, rise)
    n = one.documents
    high = -lowest(n, math.floor(better), math.ceil(worse), levels[0])
    low = lowest(n, math.floor(worse), math.ceil(better), levels[1])
    change = (worse - better) / n
    state: State = "broken" if low > margin else "kept" if high <= margin else "open"
    needed = _needed(worse + better, n, margin, levels[0]) if state == "open" and not one.is_worse else 0
    words = f"{key} {margin:.1%}: {what} {_percent(one.a)} → {_percent(one.b)} over {n} documents, worse by "
    words += f"{_signed(low)} to {_signed(high)}" + _verdict(one) + _more(needed)
    return Rule(key, state, margin, change, low, high, n, words, needed, one.is_worse)


def _by_schema(found: RunComparison, key: str, whole: Measure, what: str, margin: float) -> Iterator[Rule]:
    """A schema that got worse beyond chance, and by more than the margin, is not outvoted by the others: it holds."""
    for one in found.measures:
        if one.schema and not one.pointer and one.name == whole.name and one.is_worse and abs(one.change) > margin:
            words = f"{key} {margin:.1%}: of {one.schema} alone, {what} {_percent(one.a)} → {_percent(one.b)} over "
            words += f"{one.documents} documents{_verdict(one)}"
            change = abs(one.change)
            yield Rule(f"{key} of {one.schema}", "open", margin, change, change, change, one.documents, words, 0, True)


def _cost(found: RunComparison, margin: float, levels: tuple[float, float]) -> Rule:
    """Tokens of a document, prompt and answers: the mean difference by the normal approximation, as a share of A's."""
    one = found.measure("tokens")
    if one is None or one.documents < 2 or not one.a:
        return Rule("max_cost_rise", "open", margin, 0, -1, 1, 0, "max_cost_rise: no tokens are known")
    n, mean = one.documents, one.change
    spread = math.sqrt(sum(count * (value - mean) ** 2 for value, count in one.histogram) / (n - 1) / n)
    normal = NormalDist()
    low, high = (
        (mean + sign * normal.inv_cdf(1 - level) * spread) / one.a for sign, level in ((-1, levels[1]), (1, levels[0]))
    )
    state: State = "broken" if low > margin else "kept" if high <= margin else "open"
    words = f"max_cost_rise {margin:.0%}: tokens a document {one.a:,.0f} → {one.b:,.0f}, more by {_signed(low)} to "
    words += f"{_signed(high)}" + _verdict(one)
    return Rule("max_cost_rise", state, margin, mean / one.a, low, high, n, words, 0, one.is_worse)


def _field_change(found: RunComparison, margin: float, levels: tuple[float, float]) -> Rule:
    """The field with the highest bound decides."""
    key, fields = "max_field_change", [one for one in found.fields if one.documents]
    if not fields:
        return Rule(key, "open", margin, 0, 0, 1, 0, f"{key}: no pair has two records")
    shared = levels[1] / len(fields)
    bounds = [(share_bounds(one.differ, one.documents, levels[0])[1], one) for one in fields]
    high, one = max(bounds, key=lambda found: found[0])
    low = max(share_bounds(one.differ, one.documents, shared)[0] for one in fields)
    state: State = "broken" if low > margin else "kept" if high <= margin else "open"
    share = one.differ / one.documents
    words = f"{key} {margin:.1%}: {one.pointer or 'the record'} is another in {one.differ} of {one.documents} documents"
    return Rule(key, state, margin, share, low, high, one.documents, f"{words}, at most {high:.1%}")


def _field_shift(found: RunComparison, rules: GateConfig) -> Rule:
    """Fields that moved one way beyond chance, and far enough."""
    moved: dict[str, tuple[float, str]] = {}
    for one in found.measures:
        share = abs(one.up - one.down) / one.documents if one.group == "field" and one.documents else 0.0
        if one.verdict == "changed" and one.group == "field" and share >= rules.field_shift:
            place = f"{one.schema} {one.pointer}"
            moved[place] = max(moved.get(place, (0.0, "")), (share, one.name))
    for shift in found.shifts.findings:
        if shift.verdict in ("shifted", "slight") and shift.distance >= rules.field_shift:
            place = f"{shift.schema} {shift.pointer}"
            moved[place] = max(moved.get(place, (0.0, "")), (shift.distance, shift.aspect))
    most = sorted(moved.items(), key=lambda item: (-item[1][0], item[0]))
    told = ", ".join(f"{place} ({name}, {share:.0%} of documents)" for place, (share, name) in most[:3])
    told += f" and {len(most) - 3} more" if len(most) > 3 else ""
    largest = most[0][1][0] if most else 0.0
    state: State = _STATE_OF[rules.on_field_shift] if most else "kept"  # type: ignore[assignment]
    words = f"field_shift {rules.field_shift:.0%}: moved beyond chance: {told or 'no field'}"
    margin, documents = rules.field_shift, found.pairing.documents
    return Rule("field_shift", state, margin, largest, largest, largest, documents, words, 0, bool(most))


def _constraint(found: RunComparison, rules: GateConfig) -> Rule:
    """Whether answers that were constrained in A no longer are in B: no statistics, engines say so themselves."""
    one = found.measure("constrained")
    lost, of = (one.down, one.documents) if one else (0, 0)
    state: State = _STATE_OF[rules.on_constraint_lost] if lost else "kept"  # type: ignore[assignment]
    words = f"on_constraint_lost: {lost} of {of} documents were constrained in A and not in B"
    share = lost / of if of else 0.0
    return Rule("on_constraint_lost", state, 0.0, share, share, share, of, words, 0, lost > 0)


def _needed(differ: float, documents: int, margin: float, alpha: float) -> int:
    """About how many documents bring the bound below the margin, if as large a share of them differs as here, half of
    them either way: the normal approximation, or the bound of none that differs where that is greater."""
    normal = NormalDist().inv_cdf(1 - alpha)
    wanted = max(differ / documents * (normal / margin) ** 2, -math.log(alpha) / margin)
    return math.ceil(1.1 * wanted)


def _more(needed: int) -> str:
    return f"; about {needed:,} documents would settle it if B is as good as A" if needed else ""


def _verdict(one: Measure) -> str:
    return f" (beyond chance, p {one.adjusted:.2g})" if one.is_worse else ""


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _signed(share: float) -> str:
    return f"{share:+.1%}"
