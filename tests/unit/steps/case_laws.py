"""What must hold of a failure case whatever its id: laws for all, and laws by the kind of the failure.

A law raises AssertionError. Kinds that are not known are held to the laws for all.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

from case_texts import count, strict, visible, words
from failure_cases import Seen, seen, settings
from untold import leaves, stands_in, untold

from pipeline.records import STATUSES
from pipeline.schema.walk import resolve
from pipeline.steps.codes import CODES, cap_of
from pipeline.steps.judge import judge_of
from pipeline.steps.prompt import MAX_FEEDBACK, MAX_MESSAGE

SECONDS = 5.0
"""Far more than any of this takes, for machines that are busy."""
CUT = ("length", "abort", "error", "repetition")
FAMILY = {
    "length": {"truncated", "runaway_whitespace", "repetition", "empty_output"},
    "abort": {"engine_abort"},
    "error": {"engine_error"},
    "repetition": {"repetition", "runaway_whitespace"},
}
POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
Law = Callable[[Seen], None]

MAX_ECHO = 12
"""Characters of a value that may stand in feedback by chance."""


def hold_all(case: dict[str, Any]) -> None:
    """Everything that must hold of a case.

    Raises:
        UnknownRecipe: the case is written in a notation that is not known here.
    """
    first = seen(case)
    general(first)
    for reason in CUT:
        cut = seen(case, finish_reason=reason)
        general(cut)
        assert cut.outcome.status != "valid", reason
    general(seen(case, constrained=True))
    for law in LAWS.get(str(case.get("kind", "")), ()):
        law(first)


def general(s: Seen) -> None:
    """No exception, bounded effort, known codes, an outcome that can be written, a status no better than earned."""
    outcome = s.outcome
    assert s.codes <= CODES.keys()
    assert "pipeline_failed" not in s.codes, [p.message for p in outcome.problems]
    assert s.seconds < SECONDS
    json.dumps(dataclasses.asdict(outcome), allow_nan=False)
    json.dumps(outcome.record, allow_nan=False, ensure_ascii=False).encode()
    retry = s.config.retry
    assert len(s.engine.prompts) == len(outcome.attempts) <= retry.max_attempts + retry.max_engine_failures
    assert all(POINTER.fullmatch(problem.pointer) for problem in outcome.problems)
    if s.reason in CUT and outcome.attempts:
        assert outcome.status != "valid"
        assert s.plan.refused or s.codes & FAMILY[s.reason]
    if outcome.status == "valid":
        assert judge_of(s.plan).validator.is_valid(outcome.record)
        last = [p for p in outcome.problems if p.attempt in (0, outcome.record_attempt)]
        assert {cap_of(p) for p in last} <= {"valid"}
    else:
        assert outcome.problems
    assert (outcome.record is None and outcome.document_text == s.document.text) or outcome.status != "rejected"
    assert untold(outcome) == []


def never_valid(s: Seen) -> None:
    assert s.outcome.status != "valid"


def cut_is_cut(s: Seen) -> None:
    """Cut answers are judged in `general`. A finished one that strict JSON cannot hold has lost something."""
    if s.reason == "stop" and s.outcome.attempts and strict(s.text) is None:
        assert s.outcome.status != "valid"


def nothing_lost(s: Seen) -> None:
    """Members of a finished answer are in the record, or the record is not called valid."""
    cut_is_cut(s)
    if s.outcome.status == "valid" and isinstance(found := strict(s.text), dict | list):
        assert count(s.outcome.record) == count(found)


def wrong_channel(s: Seen) -> None:
    """What stands in the reasoning channel is never harvested."""
    reasoning = s.sent[0].reasoning
    if not s.text.strip() and reasoning.strip():
        assert (s.outcome.status, s.outcome.record) == ("rejected", None)
        assert "channel_mismatch" in s.codes
        assert len(s.engine.prompts) == 1  # the configuration is at fault: asking again changes nothing
    elif reasoning.strip() and s.outcome.status != "rejected":
        assert all(stands_in(s.text, leaf) for _, leaf in leaves(s.outcome.record))


def invalid_number(s: Seen) -> None:
    """Numbers that JSON or a double does not hold are no numbers; what is merely long is kept exactly or named."""
    if strict(s.text) is None:
        never_valid(s)
        assert s.codes & {"number_not_finite", "number_noncanonical", "json_repaired", "not_json", "wrapped_in_prose"}


def invalid_json(s: Seen) -> None:
    if strict(s.text) is None:
        never_valid(s)
        assert s.codes & {name for name, code in CODES.items() if code.layer in ("parse", "engine")}


def judged_by_the_schema(s: Seen) -> None:
    """What breaks the schema is never passed: these cases are values that a validator lets through."""
    never_valid(s)
    assert s.plan.refused or s.codes & {"schema_violation", "constraint_leaked", "not_judged", "json_too_large"}


def accepted(s: Seen) -> None:
    """What is right is passed as it is, without a word against it."""
    assert s.outcome.status == "valid", s.outcome.problems
    assert s.outcome.record == strict(s.text)
    assert not {p.code for p in s.outcome.problems if CODES[p.code].layer not in ("ground",)}
    assert not s.outcome.repairs


def narrowed(s: Seen) -> None:
    if strict(s.text) is not None and judge_of(s.plan).validator.is_valid(strict(s.text)):
        accepted(s)


def no_wrong_value(s: Seen) -> None:
    """No scalar of the record is another than in the text; what is not JSON is not valid."""
    cut_is_cut(s)
    told = {field.pointer for field in s.outcome.fields if field.raw is not None}
    for pointer, leaf in leaves(s.outcome.record) if s.outcome.status != "rejected" else ():
        assert pointer in told or stands_in(s.text, leaf), pointer


def pointers_lead_there(s: Seen) -> None:
    """Each pointer resolves in the answer, or its parent does, and the next attempt is told it as it is."""
    value = strict(s.text)
    named = [p.pointer for p in s.outcome.problems if p.code == "schema_violation"]
    assert named
    for pointer in named:
        try:
            resolve(value, f"#{pointer}")
        except (LookupError, TypeError, ValueError):
            resolve(value, f"#{pointer.rpartition('/')[0]}")
    if len(s.engine.prompts) > 1:
        assert any(pointer in s.engine.prompts[1].user for pointer in named)


def never_defaulted(s: Seen) -> None:
    """What the record holds is the model's own; a value that the document does not show is told by grounding."""
    assert untold(s.outcome) == []
    told = seen(s.case, settings(ground="degrade"))
    assert told.outcome.status != "valid"
    assert "ungrounded" in told.codes


def bounded_cost(s: Seen) -> None:
    """The same errors end the loop whatever the budget; what no document can satisfy costs nothing at all."""
    many = seen(s.case, settings(max_attempts=9))
    assert len(many.engine.prompts) <= 2
    if s.plan.refused:
        assert not many.engine.prompts
        assert many.codes == {"schema_refused"}


def no_orders(s: Seen) -> None:
    """The model's words do not come back as an instruction, whatever the policy."""
    _short_feedback(s)
    _short_feedback(seen(s.case, settings(ground="retry")))
    if s.outcome.status == "valid":
        assert s.outcome.record == strict(s.text)


def _short_feedback(s: Seen) -> None:
    for prompt in s.engine.prompts[1:]:
        told = prompt.user[len(s.engine.prompts[0].user) :]
        lines = [line for line in told.split("\n") if line.startswith("- ")]
        assert len(lines) <= MAX_FEEDBACK
        assert all(len(line) <= MAX_MESSAGE + 2 for line in lines)
        assert not re.search(r"[<>\x00-\x09\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]", told)
        for _, leaf in leaves(strict(s.text)):
            assert not (isinstance(leaf, str) and len(leaf) > MAX_ECHO and leaf in told)


def survived(s: Seen) -> None:
    assert s.outcome.status in STATUSES


def nothing_invented(s: Seen) -> None:
    """A document without visible text is asked about by nobody; of any other, support is looked for."""
    if any(problem.code == "document_empty" for problem in s.document.problems) or not visible(s.document.text):
        assert s.outcome.status == "rejected"
        assert "document_empty" in s.codes
        assert not s.engine.prompts
    else:
        matches = {field.pointer: field.match for field in s.outcome.fields}
        for pointer, leaf in leaves(s.outcome.record, keys=False) if s.outcome.status != "rejected" else ():
            if isinstance(leaf, str) and pointer in matches and not words(leaf) & words(s.document.text):
                assert matches[pointer] in ("none", "fuzzy"), pointer


def first_answer_stays(s: Seen) -> None:
    """What the first attempt settled is not asked again."""
    if s.outcome.status == "valid":
        assert len(s.engine.prompts) == s.outcome.record_attempt


LAWS: dict[str, tuple[Law, ...]] = {
    "truncation": (cut_is_cut,),
    "runaway": (cut_is_cut,),
    "wrong_status": (cut_is_cut,),
    "data_loss": (nothing_lost,),
    "duplicate_and_loss": (nothing_lost,),
    "wrong_channel": (wrong_channel,),
    "invalid_number": (invalid_number,),
    "invalid_json": (invalid_json,),
    "silent_pass": (judged_by_the_schema,),
    "silent_widening": (judged_by_the_schema,),
    "unsatisfiable": (bounded_cost,),
    "silent_narrowing": (narrowed,),
    "false_positive": (accepted,),
    "false_reject": (accepted,),
    "false_reject_or_crash": (accepted,),
    "wrong_value": (no_wrong_value,),
    "data_corruption": (no_wrong_value,),
    "wrong_pointer": (pointers_lead_there,),
    "wrong_default": (never_defaulted,),
    "cost": (bounded_cost,),
    "security": (no_orders,),
    "crash": (survived,),
    "hang": (survived,),
    "memory": (survived,),
    "fabrication": (nothing_invented,),
    "nondeterminism": (first_answer_stays,),
}
