"""Route: from everything that was tried to the one Outcome. The status rules are the caps in `codes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pipeline.job import ExtractConfig
from pipeline.records import STATUSES, Document, Draft, Outcome, Problem, Status
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES, cap_of, worst
from pipeline.steps.retry import Step

MAX_WORDS = 500


def route(
    document: Document, plan: DecodingPlan, steps: Sequence[Step], chosen: Step | None, config: ExtractConfig
) -> Outcome:
    """The outcome: `chosen` is the attempt whose record it holds, None if there is none to hold."""
    draft = chosen.draft if chosen else Draft()
    status = status_of(draft, document.problems)
    if status == "degraded" and not config.policy.degraded:
        status = "rejected"
    told = [problem for step in steps for problem in step.draft.problems]
    changed = [change for step in steps for change in step.draft.repairs]
    held = status != "rejected"
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status=status,
        layer=_layer(draft, chosen, status),
        record=draft.value if held else None,
        problems=(*document.problems, *told, *(p for p in draft.problems if p not in told)),
        repairs=(*changed, *(r for r in draft.repairs if r not in changed)),
        attempts=tuple(step.attempt for step in steps),
        document_text="" if held else document.text,
        work_digest=digest([document.text, plan.digest]),
        record_attempt=chosen.attempt.number if chosen and held else 0,
        fields=draft.fields if held else (),
        confidence=draft.confidence if held else None,
    )


def best(steps: Sequence[Step], document: Document) -> Step | None:
    """The attempt whose answer is worth most, the latest of equals; None if no answer is worth anything."""
    ranked = [(STATUSES.index(status_of(step.draft, document.problems)), -step.attempt.number, step) for step in steps]
    rank, _, step = min(ranked, key=lambda item: item[:2], default=(len(STATUSES), 0, None))
    return step if rank < STATUSES.index("rejected") else None


def failed(document: Document, plan: DecodingPlan, steps: Sequence[Step], error: Exception) -> Outcome:
    """The outcome of a document on which a step raised: rejected, with what was raised, and all that is known."""
    problem = Problem("pipeline_failed", message=f"{type(error).__name__}: {error}"[:500], attempt=len(steps) + 1)
    tried = [problem for step in steps for problem in step.draft.problems]
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status="rejected",
        layer=0,
        record=None,
        problems=(*document.problems, *tried, problem),
        repairs=tuple(change for step in steps for change in step.draft.repairs),
        attempts=tuple(step.attempt for step in steps),
        document_text=document.text,
        work_digest=digest([document.text, plan.digest]),
    )


def refused(document: Document, plan: DecodingPlan) -> Document:
    """A document whose schema no engine can decode under: with that problem, no engine is asked."""
    problem = Problem("schema_refused", message=plan.refused[:MAX_WORDS])
    return dataclasses.replace(document, problems=(*document.problems, problem))


def blames_engine(outcome: Outcome) -> bool:
    """Whether a document was rejected for what the engine did in its last attempt, not for itself or its answer."""
    last = outcome.attempts[-1].number if outcome.attempts else 0
    codes = {problem.code for problem in outcome.problems if problem.attempt == last}
    engine = {name for name, code in CODES.items() if code.again == "infrastructure"} | {"deadline_exceeded"}
    return outcome.status == "rejected" and bool(codes & engine)


def worth_asking(document: Document) -> bool:
    """Whether any answer could make this document more than rejected: if not, no engine is asked."""
    return status_of(Draft(parsed=True), document.problems) != "rejected"


def status_of(draft: Draft, before: Sequence[Problem] = ()) -> Status:
    """The best status that a draft and the problems of its document allow, whatever the job's policy."""
    if not draft.parsed:
        return "rejected"
    return worst(cap_of(problem, salvaged=draft.salvaged) for problem in (*before, *draft.problems))


def _layer(draft: Draft, chosen: Step | None, status: Status) -> int:
    """Which layer produced the record: 1 first pass, 2 repaired or retried, 3 salvaged, 0 none did."""
    if status == "rejected" or chosen is None:
        return 0
    if draft.salvaged:
        return 3
    return 2 if chosen.attempt.number > 1 or draft.repairs else 1
