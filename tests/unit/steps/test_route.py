"""Every document ends in one outcome, no better than its problems allow."""

from __future__ import annotations

import json

import pytest
from support import GOOD, Answers, attempt, codes, completion, document, extracted, plan_of

from pipeline.job import PolicyConfig
from pipeline.records import STATUSES, Draft, Problem
from pipeline.steps.codes import CODES
from pipeline.steps.retry import Step
from pipeline.steps.route import route, status_of, worth_asking

READ = [code for code, entry in CODES.items() if entry.layer == "read"]
LATER = [code for code in CODES if code not in READ]


def routed(code: str, *, degraded: bool = True, text: str = "not an object") -> tuple[str, int]:
    draft = Draft(value=GOOD, parsed=True, problems=(Problem(code, attempt=1),))
    outcome = route(document(), plan_of(), [Step(attempt(text=text), draft)], PolicyConfig(degraded=degraded))
    assert (outcome.record is None) == (outcome.status == "rejected")
    assert (outcome.document_text != "") == (outcome.status == "rejected")
    return outcome.status, outcome.layer


@pytest.mark.parametrize("code", LATER)
def test_no_outcome_is_better_than_the_cap_of_its_problem(code: str) -> None:
    entry = CODES[code]
    lifted = "degraded" if entry.salvageable else entry.cap
    assert routed(code) == (lifted, {"rejected": 0, "degraded": 3 if entry.salvageable else 1}[lifted])
    assert status_of(Draft(value=GOOD, parsed=True, problems=(Problem(code),))) == entry.cap


@pytest.mark.parametrize("code", LATER)
def test_without_the_policy_whatever_is_not_valid_is_rejected(code: str) -> None:
    assert routed(code, degraded=False) == ("rejected", 0)


@pytest.mark.parametrize("code", READ)
def test_problems_of_the_document_cap_it_and_fatal_ones_never_reach_the_engine(code: str) -> None:
    engine = Answers(GOOD)
    outcome = extracted(engine, doc=document(problems=[code]))
    assert outcome.status == CODES[code].cap
    assert len(engine.prompts) == len(outcome.attempts) == (CODES[code].cap != "rejected")
    assert codes(outcome) == [code]


def test_a_degraded_document_is_not_asked_about_more_than_once_it_answers_well_and_policy_rejects_it() -> None:
    doc = document(problems=["document_characters_replaced"])
    assert extracted(Answers(GOOD), doc=doc).record == GOOD
    outcome = extracted(Answers(GOOD), doc=doc, degraded=False)
    assert (outcome.status, outcome.record) == ("rejected", None)


def test_the_worst_problem_decides() -> None:
    for worst in STATUSES[1:]:
        found = [code for code in CODES if STATUSES.index(CODES[code].cap) <= STATUSES.index(worst)]
        assert status_of(Draft(parsed=True, problems=tuple(map(Problem, found)))) == worst
    assert status_of(Draft(parsed=True)) == "valid"
    assert status_of(Draft()) == "rejected"


def test_layer_3_takes_the_latest_attempt_that_holds_anything() -> None:
    cut = completion('{"vendor": "first", "total": 1, "li', "length")
    better = completion('{"vendor": "second", "total": 2, "li', "length", output_tokens=99)
    empty = completion("{", "length", output_tokens=1)
    outcome = extracted(Answers(cut, better, empty), max_attempts=3)
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == {"vendor": "second", "total": 2}
    assert outcome.record_attempt == 2
    assert [p.attempt for p in outcome.problems if p.code == "truncated"] == [1, 3, 2]


def test_an_answer_in_force_keeps_its_raw_text_beside_the_record() -> None:
    outcome = extracted(Answers({"vendor": 1}, GOOD))
    assert [item.raw_text for item in outcome.attempts] == [json.dumps({"vendor": 1}), json.dumps(GOOD)]


def test_the_work_digest_follows_the_document_and_the_plan() -> None:
    outcomes = [
        extracted(Answers(GOOD), doc=document(text), plan=plan_of(name=name))
        for text, name in (("a", "receipt@1"), ("b", "receipt@1"), ("a", "receipt@1"))
    ]
    assert outcomes[0].work_digest == outcomes[2].work_digest != outcomes[1].work_digest


def test_only_documents_that_can_end_well_are_worth_asking_about() -> None:
    assert worth_asking(document())
    assert worth_asking(document(problems=["document_characters_replaced"]))
    assert not worth_asking(document(problems=["document_characters_replaced", "duplicate_id"]))
