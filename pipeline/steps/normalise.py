"""Normalise: what the schema declares under `x-normalise` is done to the values of a draft before they are judged."""

from __future__ import annotations

from pipeline.records import Draft
from pipeline.schema.plan import DecodingPlan


def normalise(draft: Draft, plan: DecodingPlan, attempt: int) -> Draft:
    """The draft with its values normalised; the raw ones stay in its fields."""
    return draft
