"""What a changed run must keep of the one before it: the rules that `gristmill compare` and a canary judge by.

They decide no record and are not in a run's identity.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.jobplacement import Strict


class GateConfig(Strict):
    """Rules for promoting run B over run A on the documents of both; null switches one off. Drops and rises are in
    shares of the paired documents, 0.02 being two in a hundred; `max_cost_rise` is relative, in tokens a document.

    A rule is kept if a confidence bound says that B is no worse than the margin, broken if one says that it is worse,
    open else: an open rule holds. `alpha` is the chance, at most, of promoting a B that is worse than a margin allows,
    and of rolling back or holding for a difference where there is none (half of it for tests, half for bounds).

    `max_field_change` bounds the share of documents whose value of any one field is another. `field_shift` is the
    share of documents by which a field has to move one way, beyond chance, to count as shifted; `on_field_shift` says
    what that does. `max_gold_drop` is of the score against gold, where gold is given.
    """

    min_documents: int = Field(100, ge=1)
    alpha: float = Field(0.01, ge=1e-6, le=0.2)
    max_valid_drop: float | None = Field(0.02, gt=0, le=1)
    max_usable_drop: float | None = Field(None, gt=0, le=1)
    max_format_drop: float | None = Field(0.02, gt=0, le=1)
    max_semantic_drop: float | None = Field(0.02, gt=0, le=1)
    max_completeness_drop: float | None = Field(0.02, gt=0, le=1)
    max_unsupported_rise: float | None = Field(0.05, gt=0, le=1)
    max_truncation_rise: float | None = Field(0.02, gt=0, le=1)
    max_cost_rise: float | None = Field(0.25, gt=0, le=100)
    max_gold_drop: float | None = Field(0.02, gt=0, le=1)
    max_field_change: float | None = Field(None, gt=0, le=1)
    field_shift: float = Field(0.05, ge=0, le=1)
    on_field_shift: Literal["ignore", "hold", "roll_back"] = "hold"
    on_constraint_lost: Literal["ignore", "hold", "roll_back"] = "roll_back"
