"""Rules: what the schema and the job declare about values beyond JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping, Set

from pipeline.job import ExtractConfig
from pipeline.records import Document, Draft
from pipeline.schema.plan import DecodingPlan

Lookups = Mapping[tuple[str, str], Set[str]]
"""The values of the columns that the job's lookups name, by (path, column)."""

NO_LOOKUPS: Lookups = {}


def check(
    draft: Draft, document: Document, plan: DecodingPlan, config: ExtractConfig, lookups: Lookups, attempt: int
) -> Draft:
    """The draft with every broken rule added as a problem."""
    return draft
