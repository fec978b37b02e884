"""From outcomes and the drafts behind them to the rates of `bench.layers`. Each rate carries its own denominator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.gold import Gold
from pipeline.observe.tally import tally
from pipeline.records import STATUSES, Attempt, Draft, Outcome
from pipeline.steps.codes import CODES, cap_of


@dataclass
class Watched:
    """One document: its outcome, whether its first attempt was JSON after repair, and the judged draft of each
    attempt. Its `note` is a trace for `extract`."""

    gold: Gold
    outcome: Outcome | None = None
    repaired_first: bool | None = None
    drafts: list[Draft] = field(default_factory=list)

    def note(self, name: str, made: object) -> None:
        if not isinstance(made, Draft):
            return
        if name == "repair" and self.repaired_first is None:
            self.repaired_first = made.parsed
        if name == "ground" and not made.salvaged:
            self.drafts.append(made)

    @property
    def whole(self) -> Draft | None:
        """The latest draft that satisfies the schema."""
        return next((draft for draft in reversed(self.drafts) if draft.parsed and not _broken(draft, "schema")), None)


def rates(watched: Sequence[Watched], seconds: float) -> dict[str, Any]:
    """Everything that is told of one set on one path."""
    outcomes = [one.outcome for one in watched if one.outcome is not None]
    total = tally(outcomes)
    wholes = [(one, draft) for one in watched if (draft := one.whole) is not None]
    matches = Counter(item.match for _, draft in wholes for item in draft.fields if item.match)
    right = Counter(said for one, draft in wholes for said in _right(one.gold, draft.value))
    valid = total.statuses["valid"]
    return {
        "documents": total.documents,
        "statuses": {status: total.statuses[status] for status in STATUSES},
        "first_pass_format": _rate(total.first_pass_format, total.asked),
        "format_after_repair": _rate(sum(bool(one.repaired_first) for one in watched), total.asked),
        "first_pass_valid": _rate(total.first_pass_valid, total.asked),
        "resolved_by_retry": _rate(total.resolved_by_retry, total.retried),
        "salvaged": _rate(total.salvaged, total.documents),
        "schema_valid": _rate(len(wholes), total.documents),
        "semantic": _rate(sum(not _broken(draft, "rules") for _, draft in wholes), len(wholes)),
        "grounded_leaves": _rate(matches.total() - matches["none"], matches.total()),
        "gold_leaves": _rate(right[True], right.total()),
        "output_tokens_per_valid": round(total.output_tokens / valid, 1) if valid else None,
        "all_tokens_per_valid": round((total.output_tokens + total.prompt_tokens) / valid, 1) if valid else None,
        "cached_on_retries": _cached([a for o in outcomes for a in o.attempts[1:]]),
        "cached_on_first": _cached([a for o in outcomes for a in o.attempts[:1]]),
        "codes": dict(total.codes.most_common()),
        "seconds": round(seconds, 1),
    }


def _broken(draft: Draft, layer: str) -> bool:
    """Whether a problem of the layer costs the draft its status."""
    return any(CODES[problem.code].layer == layer and cap_of(problem) != "valid" for problem in draft.problems)


def _rate(count: int, out_of: int) -> dict[str, Any]:
    return {"count": count, "of": out_of, "rate": round(count / out_of, 4) if out_of else None}


def _cached(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Prompt tokens that the engine's prefix cache served, of those that it was sent."""
    answered = [attempt for attempt in attempts if not attempt.error]
    return _rate(sum(a.cached_tokens for a in answered), sum(a.prompt_tokens for a in answered))


def _right(gold: Gold, value: Any, pointer: str = "") -> list[bool]:
    """Whether each leaf is that of the gold record, where that says anything."""
    if isinstance(value, dict):
        return [said for key, child in value.items() for said in _right(gold, child, f"{pointer}/{key}")]
    if isinstance(value, list):
        return [said for index, child in enumerate(value) for said in _right(gold, child, f"{pointer}/{index}")]
    said = gold.is_right(pointer, value)
    return [] if said is None else [said]
