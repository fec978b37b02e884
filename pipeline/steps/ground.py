"""Ground: for each leaf of a record the span of the document that supports it."""

from __future__ import annotations

from pipeline.job import ExtractConfig
from pipeline.records import Draft
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.clean import Cleaned


def ground(draft: Draft, cleaned: Cleaned, plan: DecodingPlan, config: ExtractConfig, attempt: int) -> Draft:
    """The draft with what supports each leaf in its fields, and a problem for each required leaf without support."""
    return draft
