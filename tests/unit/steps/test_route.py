"""Every document ends in one outcome, no better than its problems allow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import GOOD, Answers, attempt, codes, completion, document, extracted, plan_of

from pipeline.job import ExtractConfig
from pipeline.observe.tally import tally
from pipeline.records import STATUSES, Draft, Field, Outcome, Problem, Repair
from pipeline.steps.codes import CODES
from pipeline.steps.retry import Step
from pipeline.steps.route import best, blames_engine, failed, route, status_of, worth_asking

READ = [code for code, entry in CODES.items() if entry.layer == "read"]
LATER = [code for code in CODES if code not in READ]


def step(*found: str | Problem, number: int = 1, value: Any = GOOD, **draft: Any) -> Step:
    problems = tuple(Problem(p, attempt=number) if isinstance(p, str) else p for p in found)
    return Step(attempt(number), Draft(value=value, parsed=True, problems=problems, **draft))


def outcome_of(*steps: Step, before: tuple[Repair, ...] = (), **policy: Any) -> Outcome:
    config = ExtractConfig.model_validate({"policy": policy})
    outcome = route(document(), plan_of(), steps, best(steps, document()), config, before)
    assert (outcome.record is None) == (outcome.status == "rejected") == (outcome.record_attempt == 0)
    assert (outcome.document_text != "") == (outcome.status == "rejected")
    return outcome


@pytest.mark.parametrize("salvaged", [False, True])
@pytest.mark.parametrize("code", LATER)
def test_no_outcome_is_better_than_the_cap_of_its_problem(code: str, salvaged: bool) -> None:
    entry = CODES[code]
    lifted = "degraded" if salvaged and entry.salvageable else entry.cap
    outcome = outcome_of(step(code, salvaged=salvaged))
    assert (outcome.status, outcome.layer) == (lifted, 0 if lifted == "rejected" else 3 if salvaged else 1)


@pytest.mark.parametrize("code", LATER)
def test_without_the_policy_whatever_is_not_valid_is_rejected(code: str) -> None:
    outcome = outcome_of(step(code), degraded=False)
    assert outcome.status == ("valid" if CODES[code].cap == "valid" else "rejected")


@pytest.mark.parametrize(("severity", "status"), [("block", "rejected"), ("degrade", "degraded"), ("observe", "valid")])
def test_a_declared_severity_overrides_the_cap_of_the_code(severity: Any, status: str) -> None:
    assert outcome_of(step(Problem("rule_broken", "/total", "no", 1, severity))).status == status


# --- which attempt


def test_a_later_attempt_never_displaces_a_better_one() -> None:
    observed = Problem("rule_broken", "/a", "m", 2, "observe")
    for first, second, taken in (
        (["number_inexact"], ["schema_violation"], 1),
        (["language_mismatch"], ["language_mismatch", "repeated_item"], 1),
        (["language_mismatch", "repeated_item"], ["language_mismatch"], 2),
        (["language_mismatch"], ["repeated_item"], 2),
        (["language_mismatch"], ["language_mismatch", observed], 2),
    ):
        assert outcome_of(step(*first), step(*second, number=2)).record_attempt == taken


def test_of_what_was_salvaged_the_most_is_kept() -> None:
    more = step("truncated", value={"vendor": "Ann", "lines": ["a", "b"]}, salvaged=True)
    less = step("truncated", number=2, value={"vendor": "Ann"}, salvaged=True)
    assert best([more, less], document()) == more
    worse = step("truncated", "language_mismatch", value={"vendor": "Ann", "lines": ["a", "b"]}, salvaged=True)
    assert best([worse, less], document()) == worse
    assert best([step("truncated", value={}, salvaged=False)], document()) is None


def abstaining(*places: str, number: int = 1, more: str = "schema_violation") -> Step:
    value = {**GOOD, **{place[1:]: None for place in places}}
    told = [Problem("abstained", place, attempt=number) for place in places]
    return step(*told, *([more] if more else []), number=number, value=value)


@pytest.mark.parametrize(
    ("match", "status"), [("", "degraded"), ("none", "degraded"), ("exact", "valid"), ("normalised", "valid")]
)
def test_a_retry_makes_no_value_of_an_abstention_unless_the_document_supports_it(match: Any, status: str) -> None:
    later = step(number=2, fields=(Field("/total", match),))
    outcome = outcome_of(abstaining("/total"), later)
    assert (outcome.status, outcome.record_attempt, outcome.layer) == (status, 2, 2)
    told = [(p.code, p.pointer, p.attempt) for p in outcome.problems if p.code == "abstention_withdrawn"]
    assert told == ([] if status == "valid" else [("abstention_withdrawn", "/total", 2)])


def test_what_an_attempt_that_gives_no_record_abstained_from_counts_for_the_one_that_does() -> None:
    later = step("truncated", number=2, value=GOOD, salvaged=True)
    taken = best([later], document(), [abstaining("/total", more="rule_broken"), later])
    assert taken is not None
    assert [(p.code, p.pointer) for p in taken.draft.problems][1:] == [("abstention_withdrawn", "/total")]


def test_abstaining_again_or_leaving_a_value_out_withdraws_nothing() -> None:
    for later in (abstaining("/total", number=2, more=""), step(number=2, value={"vendor": "Ann"})):
        assert "abstention_withdrawn" not in codes(outcome_of(abstaining("/total"), later))


@pytest.mark.parametrize("pointer", ["/lines/0", "/lines/9", "/lines/x", f"/lines/{'9' * 5000}", "/vendor/x", "/a~1b"])
def test_any_pointer_of_an_abstention_can_be_looked_up(pointer: str) -> None:
    earlier = step(Problem("abstained", pointer), "schema_violation", value={})
    outcome = outcome_of(earlier, step(number=2, value={**GOOD, "a/b": 1}))
    assert outcome.status == ("degraded" if pointer in ("/lines/0", "/a~1b") else "valid")


# --- layers


def test_a_first_answer_stays_a_first_pass_whatever_the_engine_did_before() -> None:
    assert outcome_of(step("engine_abort"), step(number=2)).layer == 1
    assert outcome_of(step("not_json"), step("engine_abort", number=2), step(number=3)).layer == 2


@pytest.mark.parametrize("code", ["number_inexact", "schema_violation"])
def test_a_cleaned_document_says_so_in_its_outcome_and_counts_as_no_repair(code: str) -> None:
    change = Repair("document_cleaned", detail="ocr: 3 places")
    outcome = outcome_of(step(code), before=(change,))
    assert outcome.repairs == (change,)
    assert outcome.layer == (1 if outcome.status == "valid" else 0)
    assert tally([outcome]).repaired == 0
    mended = outcome_of(step("number_inexact", repairs=(Repair("json_repair", attempt=1),)), before=(change,))
    assert (mended.layer, tally([mended]).repaired) == (2, 1)


# --- documents


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


def test_layer_3_takes_an_attempt_that_holds_something() -> None:
    cut = completion('{"vendor": "first", "total": 1, "li', "length")
    better = completion('{"vendor": "second", "total": 2, "li', "length", output_tokens=99)
    empty = completion("{", "length", output_tokens=1)
    outcome = extracted(Answers(cut, better, empty), max_attempts=3)
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == {"vendor": "second", "total": 2}
    assert outcome.record_attempt == 2
    assert sorted(p.attempt for p in outcome.problems if p.code == "truncated") == [1, 2, 3]


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


def test_what_a_step_raises_is_named_with_all_that_was_tried() -> None:
    outcome = failed(document(), plan_of(), [step("not_json")], ValueError("odd"))
    assert (outcome.status, codes(outcome)) == ("rejected", ["not_json", "pipeline_failed"])


@pytest.mark.parametrize("code", list(CODES))
def test_the_engine_is_blamed_for_its_own_failures_in_the_last_attempt_alone(code: str) -> None:
    own = CODES[code].again == "infrastructure" or code == "deadline_exceeded"
    if CODES[code].cap == "rejected":
        assert blames_engine(outcome_of(step("not_json"), step(code, number=2))) == own
    assert not blames_engine(outcome_of(step(code), step("not_json", number=2)))
