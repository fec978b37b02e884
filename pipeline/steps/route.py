"""Route: from everything that was tried to the one Outcome. The status rules are the caps in `codes`."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.job import PolicyConfig
from pipeline.records import STATUSES, Document, Draft, Outcome, Problem, Status
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES
from pipeline.steps.retry import Step
from pipeline.steps.salvage import salvage


def route(document: Document, plan: DecodingPlan, steps: Sequence[Step], policy: PolicyConfig) -> Outcome:
    """Judge the last draft; failing that, save what is certain of the latest attempt that holds anything."""
    draft = steps[-1].draft if steps else Draft()
    status = status_of(draft, document.problems)
    if status == "rejected" and policy.degraded and worth_asking(document):
        saved = next((found for step in reversed(steps) if (found := salvage(step, plan)) is not None), None)
        draft = saved or draft
        status = "degraded" if saved else status
    if status == "degraded" and not policy.degraded:
        status = "rejected"
    earlier = [problem for step in steps for problem in step.draft.problems if problem not in draft.problems]
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status=status,
        layer=_layer(draft, steps, status),
        record=draft.value if status != "rejected" else None,
        problems=(*document.problems, *earlier, *draft.problems),
        repairs=draft.repairs,
        attempts=tuple(step.attempt for step in steps),
        document_text=document.text if status == "rejected" else "",
        work_digest=digest([document.text, plan.digest]),
    )


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
