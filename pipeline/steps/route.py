"""Route: from everything that was tried to the one Outcome. The status rules are the caps in `codes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pipeline.job import PolicyConfig
from pipeline.records import STATUSES, Document, Draft, Outcome, Problem, Status
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES
from pipeline.steps.retry import Step
from pipeline.steps.salvage import salvage

MAX_WORDS = 500


def route(document: Document, plan: DecodingPlan, steps: Sequence[Step], policy: PolicyConfig) -> Outcome:
    """Judge the last draft; failing that, save what is certain of the latest attempt that holds anything."""
    draft = steps[-1].draft if steps else Draft()
    number = steps[-1].attempt.number if steps else 0
    status = status_of(draft, document.problems)
    if status == "rejected" and policy.degraded and worth_asking(document):
        for step in reversed(steps):
            if (saved := salvage(step, plan)) is not None:
                draft, number, status = saved, step.attempt.number, "degraded"
                break
    if status == "degraded" and not policy.degraded:
        status = "rejected"
    earlier = [problem for step in steps for problem in step.draft.problems if problem not in draft.problems]
    changed = [change for step in steps for change in step.draft.repairs if change not in draft.repairs]
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status=status,
        layer=_layer(draft, steps, status),
        record=draft.value if status != "rejected" else None,
        problems=(*document.problems, *earlier, *draft.problems),
        repairs=(*changed, *draft.repairs),
        attempts=tuple(step.attempt for step in steps),
        document_text=document.text if status == "rejected" else "",
        work_digest=digest([document.text, plan.digest]),
        record_attempt=number if status != "rejected" else 0,
    )


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
    caps = [CODES[problem.code] for problem in (*before, *draft.problems)]
    statuses: list[Status] = ["degraded" if draft.salvaged and c.salvageable else c.cap for c in caps]
    return max(statuses, key=STATUSES.index, default="valid")


def _layer(draft: Draft, steps: Sequence[Step], status: Status) -> int:
    """Which layer produced the record: 1 first pass, 2 repaired or retried, 3 salvaged, 0 none did."""
    if status == "rejected":
        return 0
    if draft.salvaged:
        return 3
    return 2 if len(steps) > 1 or draft.repairs else 1
