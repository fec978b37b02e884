"""Judge: whether a job's max_tokens and the model's context suit a budget; every finding has the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pipeline.schema.budget.measure import Budget
from pipeline.schema.budget.policy import HEADROOM, MAX_POINTERS_SHOWN

_Z = 1.645
"""Of a one-sided 95 % bound."""


@dataclass(frozen=True, slots=True)
class BudgetFinding:
    """`refuse`: no answer can be whole; `warn`: some answers will be cut off."""

    code: Literal["below_shortest", "beyond_context", "below_recommended"]
    severity: Literal["refuse", "warn"]
    message: str


def judge(budget: Budget, *, max_tokens: int, prompt_tokens: int, context: int | None) -> tuple[BudgetFinding, ...]:
    """Findings about a job, in order of severity.

    Args:
        max_tokens: what a first attempt may write: the least of sampling.max_tokens and retry.max_output_tokens.
        prompt_tokens: the system prefix with an empty document, through the chat template.
        context: the engine's max_model_len; None if it has none.
    """
    found: list[BudgetFinding] = []
    if max_tokens < budget.shortest_tokens:
        message = (
            f"max_tokens is {max_tokens}, but the shortest legal document found has {budget.shortest_tokens} tokens "
            f"with its end token: no answer can be whole. Set it to {budget.recommended_tokens} or more."
        )
        found.append(BudgetFinding("below_shortest", "refuse", message))
    if context is not None and prompt_tokens + max_tokens > context:
        message = _beyond(budget, max_tokens, prompt_tokens, context)
        found.append(BudgetFinding("beyond_context", "refuse", message))
    enough = min(budget.recommended_tokens, budget.worst_tokens or budget.recommended_tokens)
    if budget.shortest_tokens <= max_tokens < enough:
        found.append(BudgetFinding("below_recommended", "warn", _below(budget, max_tokens)))
    return tuple(found)


def truncated(budget: Budget, max_tokens: int) -> tuple[int, float]:
    """(sample records of more tokens, the 95 % upper bound of their share among all documents).

    Rule of three (3/n) where no sample is longer, else the one-sided upper bound of Wilson's score interval; 1.0
    without samples. It holds for documents like the samples.
    """
    total = budget.sample_count
    longer = sum(tokens > max_tokens for tokens in budget.sample_tokens)
    if not total:
        return 0, 1.0
    if not longer:
        return 0, min(1.0, 3 / total)
    share, weight = longer / total, _Z**2 / total
    spread = _Z * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return longer, min(1.0, (share + weight / 2 + spread) / (1 + weight))


def _beyond(budget: Budget, max_tokens: int, prompt_tokens: int, context: int) -> str:
    room = context - prompt_tokens
    message = (
        f"a prompt with an empty document has {prompt_tokens} tokens, with max_tokens {max_tokens} that is "
        f"{prompt_tokens + max_tokens}, but the context has {context}. "
    )
    if room < budget.shortest_tokens:
        left = max(room, 0)
        return f"{message}What is left, {left}, holds no legal document: raise max_model_len or shorten the prompt."
    return f"{message}Raise max_model_len, or set max_tokens well below {room}: documents need room as well."


def _below(budget: Budget, max_tokens: int) -> str:
    message = (
        f"max_tokens is {max_tokens}, less than the recommended {budget.recommended_tokens} "
        f"({HEADROOM} x P99 of {budget.p99_tokens} tokens). {_prediction(budget, max_tokens)} {_longest(budget)}"
    )
    return f"{message} An answer that is cut off is no shorter in the next attempt."


def _prediction(budget: Budget, max_tokens: int) -> str:
    longer, bound = truncated(budget, max_tokens)
    total = budget.sample_count
    if not total:
        return (
            "No legal record was given or could be drawn, so nothing is known about usual sizes: give sample records."
        )
    if budget.calibrated_by == "drawn":
        return (
            f"{longer} of {total} records drawn from the schema are longer; they are drawn, not seen, so no truncation "
            "rate is predicted: give sample records."
        )
    rule = "Wilson" if longer else "rule of three"
    return (
        f"Predicted truncation rate: {longer / total:.1%} ({longer} of {total} {budget.calibrated_by} are longer), "
        f"at most {bound:.1%} at 95 % confidence ({rule})."
    )


def _longest(budget: Budget) -> str:
    if budget.worst_tokens is not None:
        return f"The longest legal document has at most {budget.worst_tokens} tokens."
    shown = [pointer or "the root" for pointer in budget.unbounded_at[:MAX_POINTERS_SHOWN]]
    more = len(budget.unbounded_at) - len(shown)
    return f"The longest has no bound: see {', '.join(shown)}{f' and {more} more' if more else ''}."
