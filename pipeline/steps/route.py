"""Route: from everything that was tried to the one Outcome. The status rules are the caps in `codes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pipeline.job import ExtractConfig
from pipeline.records import STATUSES, Document, Draft, JsonValue, Outcome, Problem, Repair, Status
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.walk import unescape
from pipeline.steps.codes import CODES, cap_of, worst
from pipeline.steps.retry import Step, answers_of

MAX_WORDS = 500

DECLARED = frozenset({"document_cleaned"})
"""Kinds of changes that the job asks for: they mend no answer, and a first pass stays one."""


def route(
    document: Document,
    plan: DecodingPlan,
    steps: Sequence[Step],
    chosen: Step | None,
    config: ExtractConfig,
    before: Sequence[Repair] = (),
) -> Outcome:
    """The outcome: `chosen` is the attempt whose record it holds, None if there is none to hold. `before` are changes
    to the document's text, made before any attempt."""
    draft = chosen.draft if chosen else Draft()
    status = status_of(draft, document.problems)
    if status == "degraded" and not config.policy.degraded:
        status = "rejected"
    told = [problem for step in steps for problem in step.draft.problems]
    changed = [*before, *(change for step in steps for change in step.draft.repairs)]
    held = status != "rejected"
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status=status,
        layer=_layer(steps, chosen, status),
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


def best(steps: Sequence[Step], document: Document, tried: Sequence[Step] = ()) -> Step | None:
    """The attempt whose answer is worth most; None if no answer is worth anything. `tried` are all attempts, where
    `steps` are some of them: what any of them abstained from counts.

    The status comes first, then, of what layer 3 kept, how much it is, then how few problems keep the record from
    being valid; the latest of equals. So a later attempt never displaces a better one.
    """
    judged = [
        _with_withdrawals(step, [other for other in tried or steps if other.attempt.number < step.attempt.number])
        for step in steps
    ]
    ranked = [(_worth(step, document), step) for step in judged]
    worth, step = min(ranked, key=lambda item: item[0], default=((len(STATUSES), 0, 0, 0), None))
    return step if worth[0] < STATUSES.index("rejected") else None


def _worth(step: Step, document: Document) -> tuple[int, int, int, int]:
    """Less is better."""
    draft = step.draft
    faults = sum(cap_of(problem, salvaged=draft.salvaged) != "valid" for problem in draft.problems)
    kept = _leaves(draft.value) if draft.salvaged else 0
    return STATUSES.index(status_of(draft, document.problems)), -kept, faults, -step.attempt.number


def _leaves(value: JsonValue) -> int:
    """How many values a value holds that hold no others."""
    count, todo = 0, [value]
    while todo:
        item = todo.pop()
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else None
        count += inner is None
        todo += inner or ()
    return count


def _with_withdrawals(step: Step, earlier: Sequence[Step]) -> Step:
    """The step with a problem for each value that an earlier answer abstained from and that nothing supports now: no
    retry makes a value out of "the document does not say"."""
    draft = step.draft
    before = {p.pointer for other in earlier for p in other.draft.problems if p.code == "abstained"}
    before -= {p.pointer for p in draft.problems if p.code == "abstained"}
    if not before or not draft.parsed:
        return step
    found = {field.pointer for field in draft.fields if field.match not in ("", "none")}
    told = "an earlier answer said that the document does not say this, and nothing found in it does"
    withdrawn = tuple(
        Problem("abstention_withdrawn", pointer, told, step.attempt.number)
        for pointer in sorted(before - found)
        if _holds(draft.value, pointer)
    )
    known = {(p.code, p.pointer) for p in draft.problems}
    new = tuple(problem for problem in withdrawn if (problem.code, problem.pointer) not in known)
    return dataclasses.replace(step, draft=dataclasses.replace(draft, problems=(*draft.problems, *new)))


def _holds(value: JsonValue, pointer: str) -> bool:
    """Whether a value other than null stands at a JSON pointer."""
    for part in map(unescape, pointer.split("/")[1:]):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return value is not None


def failed(document: Document, plan: DecodingPlan, steps: Sequence[Step], error: Exception) -> Outcome:
    """The outcome of a document on which a step raised: rejected, with what was raised, and all that is known."""
    message = f"{type(error).__name__}: {error}"[:MAX_WORDS]
    return _given_up(document, plan, steps, Problem("pipeline_failed", message=message, attempt=len(steps)))


def poisoned(document: Document, plan: DecodingPlan) -> Outcome:
    """The outcome of a document that is not worked on any more, because the process that does so dies."""
    message = "the process that worked on it died, and died again while it worked on nothing else"
    return _given_up(document, plan, (), Problem("poison", message=message))


def _given_up(document: Document, plan: DecodingPlan, steps: Sequence[Step], problem: Problem) -> Outcome:
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


def _layer(steps: Sequence[Step], chosen: Step | None, status: Status) -> int:
    """Which layer produced the record: 1 the model's first answer, 2 repaired or retried, 3 salvaged, 0 none did."""
    if status == "rejected" or chosen is None:
        return 0
    if chosen.draft.salvaged:
        return 3
    first = next((step.attempt.number for step in answers_of(steps)), chosen.attempt.number)
    mended = any(change.kind not in DECLARED for change in chosen.draft.repairs)
    return 2 if chosen.attempt.number > first or mended else 1
