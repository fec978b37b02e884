"""Published failure cases that can be told at the level of one document: none may end better than it should.

Every case of the file, known or not, is held to the laws of its kind (`case_laws.py`). What the handed ones expect
beyond that stands in `EXPECTED`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from case_laws import hold_all
from failure_cases import UnknownRecipe, case_of, cases, parameters, plan_for, seen, settings
from support import Answers, codes, completion, plan_of
from support import extracted as run_document

from pipeline.records import Status


@dataclass(frozen=True)
class Expected:
    """How a case ends: the statuses that are right, codes that are named (of each group one), the record."""

    statuses: tuple[Status, ...]
    named: tuple[str, ...] = ()
    record: Any = None
    ground: str = "observe"


REFUSED = Expected(("rejected",), ("schema_refused",))
BROKEN = Expected(("rejected",), ("schema_violation",))

EXPECTED: dict[str, Expected] = {
    "F006": Expected(("rejected",), ("truncated",)),
    "F007": Expected(("rejected",), ("engine_abort",)),
    "F009": Expected(("rejected",), ("channel_mismatch",)),
    "F011": Expected(("valid",), (), {"vendor": "Example", "total": 60}),
    "F014": BROKEN,
    "F015": Expected(("degraded",), ("schema_violation", "required_missing"), {"a": 1}),
    "F016": REFUSED,
    "F019": BROKEN,
    "F020": BROKEN,
    "F021": Expected(("valid",), (), {"title": "5 pipe Blue"}),
    "F023": BROKEN,
    "F024": REFUSED,
    "F026": BROKEN,
    "F030": Expected(("rejected",), ("runaway_whitespace",)),
    "F032": Expected(("degraded",), ("repetition", "list_incomplete"), {"names": ["Ann"]}),
    "F033": Expected(("valid",), (), {"values": [0] * 30}),
    "F035": Expected(("degraded",), ("truncated", "list_incomplete"), {"items": ["a", "b"]}),
    "F036": Expected(("rejected",), ("duplicate_key",)),
    "F037": Expected(("rejected",), ("duplicate_key",)),
    "F039": Expected(("rejected",), ("json_too_large",)),
    "F040": Expected(("rejected",), ("not_json",)),
    "F041": Expected(("rejected",), ("number_noncanonical",)),
    "F043": Expected(("rejected",), ("number_not_finite",)),
    "F045": Expected(("degraded",), ("json_repaired",), {"t": "line1\nline2"}),
    "F046": Expected(("rejected",), ("lone_surrogate",)),
    "F048": BROKEN,
    "F049": Expected(("valid",), (), {"price": 19.99}),
    "F051": BROKEN,
    "F052": Expected(("valid",), (), {"name": "Ana"}),
    "F053": Expected(("rejected",), ("json_too_large",)),
    "F054": BROKEN,
    "F058": Expected(("valid",), (), {"extra": {}}),
    "F061": BROKEN,
    "F091": Expected(("degraded",), ("ungrounded",), {"total": 40.0, "currency": "EUR"}, "degrade"),
    "F092": Expected(("rejected",), ("document_empty",)),
    "F094": Expected(("rejected",), ("truncated", "empty_output")),
    "F095": Expected(("degraded",), ("ungrounded",), {"last_line_code": "unknown"}, "degrade"),
    "F097": BROKEN,
    "F098": REFUSED,
    "F100": Expected(("valid",), (), {"vendor": '=HYPERLINK("http://x.invalid","a")', "delta": -5}),
}
ONE_OF = {"F094": {"truncated", "empty_output"}}
"""Cases of which any of the named codes will do."""


@pytest.mark.parametrize("case", parameters())
def test_a_case_is_held_to_the_laws_of_its_kind(case: dict[str, Any]) -> None:
    try:
        hold_all(case)
    except UnknownRecipe as unknown:
        pytest.skip(str(unknown))


@pytest.mark.parametrize("number", [number for number in sorted(EXPECTED) if number in cases()] or ["F006"])
def test_a_handed_case_ends_as_it_should(number: str) -> None:
    expected = EXPECTED[number]
    outcome = seen(case_of(number), settings(ground=expected.ground)).outcome
    found = {problem.code for problem in outcome.problems}
    assert outcome.status in expected.statuses, outcome.problems
    assert found & ONE_OF.get(number, set(expected.named)) if expected.named else found <= {"ungrounded"}
    assert number in ONE_OF or set(expected.named) <= found
    assert outcome.record == expected.record


def test_f001_the_bad_one_of_two_schemas_is_refused_alone() -> None:
    good, bad = case_of("F001")["input"]["schema"]
    plans = [plan_for({**case_of("F001"), "input": {"schema": body}}) for body in (good, bad)]
    assert [bool(plan.refused) for plan in plans] == [False, True]


def test_f004_schemas_that_differ_in_prose_share_one_grammar() -> None:
    recipe = case_of("F004")["input"]["schema"]
    plans = [plan_of({**recipe["base"], recipe["key"]: f"variant {n}"}) for n in range(50)]
    assert len({plan.grammar_digest for plan in plans}) == 1


@pytest.mark.parametrize("number", ["F016", "F024", "F025", "F098"])
def test_schemas_that_cannot_be_used_cost_no_call(number: str) -> None:
    case = case_of(number)
    looked_at = seen({**case, "input": {"model_output": "{}", **case["input"]}}, settings(max_attempts=9))
    assert looked_at.engine.prompts == []
    assert codes(looked_at.outcome) == ["schema_refused"]


def test_f007_an_abort_is_retried_without_a_word_to_the_model() -> None:
    case = case_of("F007")
    engine = Answers(completion(case["input"]["model_output"], "abort"), {"vendor": "Example", "total": 5})
    outcome = run_document(engine, plan_for(case), max_attempts=1, backoff_seconds=0)
    assert outcome.status == "valid"
    assert engine.prompts[0] == engine.prompts[1]


def test_f006_a_cut_answer_is_asked_again_with_more_room() -> None:
    sent = seen(case_of("F006"), settings(max_tokens=64)).engine.samplings
    assert len(sent) == 2
    assert sent[1].max_tokens > sent[0].max_tokens


def test_f054_the_pointer_in_the_feedback_is_escaped() -> None:
    looked_at = seen(case_of("F054"))
    assert "/a~1b/c~0d" in {problem.pointer for problem in looked_at.outcome.problems}
    assert "/a~1b/c~0d: type" in looked_at.engine.prompts[1].user


def test_f094_an_empty_list_that_stopped_is_valid_and_nothing_at_all_is_not() -> None:
    plan = plan_for(case_of("F094"))
    assert run_document(Answers("[]"), plan).status == "valid"
    assert codes(run_document(Answers(""), plan))[0] == "empty_output"


@pytest.mark.parametrize("rule", ["self.currency == null || input.text_has_currency", "self.currency != 'EUR'"])
def test_f091_a_business_rule_says_it_too(rule: str) -> None:
    """A currency that the rule forbids; a rule that cannot be evaluated is no pass."""
    case = case_of("F091")
    body = {**case["input"]["schema"], "x-validations": [{"rule": rule, "message": "no", "severity": "degrade"}]}
    outcome = seen({**case, "input": {**case["input"], "schema": body}}).outcome
    assert outcome.status == "degraded"
    assert {problem.code for problem in outcome.problems} & {"rule_broken", "rule_not_judged"}
    assert outcome.record == {"total": 40.0, "currency": "EUR"}


def test_f095_a_prompt_that_was_cut_is_no_answer_to_the_document() -> None:
    outcome = seen(case_of("F095"), error="prompt_truncated", finish_reason="error").outcome
    assert (outcome.status, codes(outcome)) == ("rejected", ["prompt_truncated"])


def test_the_table_is_of_cases_that_exist() -> None:
    """A misspelt id would be skipped for ever; where the handed file lies, every one is in it."""
    held = {param.values[0]["id"] for param in parameters() if param.values[0]}
    if "F006" in held and "F100" in held:
        assert EXPECTED.keys() <= held
