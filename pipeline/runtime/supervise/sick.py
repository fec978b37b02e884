"""Whether an engine is sick: a run must not take its failures for what documents are worth."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import EngineError
from pipeline.records import Outcome
from pipeline.steps.route import blames_engine

SICK_DOCUMENTS = 8
"""An engine that fails on this many documents of a unit, and on no fewer than all, is taken for broken."""


def is_answer(outcome: Outcome) -> bool:
    """Whether an outcome says something of its document: one that blames the engine is worth no saving."""
    return not (blames_engine(outcome) or _is_misled(outcome))


def check_engine(outcomes: Sequence[Outcome]) -> None:
    """Stop before a sick engine turns a whole input into rejections that a rerun would take for done.

    Raises:
        EngineError: every document that an engine was asked about, and there were some, ended in the engine's failure
            or with an answer in the reasoning channel alone.
    """
    asked = [outcome for outcome in outcomes if outcome.attempts]
    misled = sum(map(_is_misled, asked))
    others = [outcome for outcome in asked if not _is_misled(outcome)]
    if len(asked) < SICK_DOCUMENTS or not all(map(blames_engine, others)):
        return
    if misled >= SICK_DOCUMENTS or not others:
        raise EngineError(
            f"{misled} of {len(asked)} documents have no answer, but text in the reasoning channel. The engine's "
            "reasoning parser does not fit the model, or the model thinks where it should not: in the engine's config, "
            "name the parser of this model's family, or none for a model that does not reason, or switch thinking off "
            "in its chat template. Nothing of this unit was written: run the command again then, with --fresh."
        )
    last = others[-1].problems[-1]
    raise EngineError(
        f"the engine failed on every one of {len(asked)} documents, the last time with {last.code}: {last.message}. "
        "They were not written: run the same command again when the engine works."
    )


def _is_misled(outcome: Outcome) -> bool:
    return outcome.status == "rejected" and any(problem.code == "channel_mismatch" for problem in outcome.problems)
