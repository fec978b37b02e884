"""Hard budgets, and what another attempt is given."""

from __future__ import annotations

import time

import pytest
from retry_steps import again, asked, cut, job, step
from support import GOOD, Answers, attempt, codes, completion, extracted

from pipeline.job import ExtractConfig
from pipeline.records import Attempt, Draft, Problem
from pipeline.steps.codes import CODES
from pipeline.steps.retry import MAX_PAUSE, Step, feedback, good_enough, may_retry, next_sampling, pause

QUICK = {"max_engine_failures": 2, "backoff_seconds": 0}


def test_attempts_are_bounded_and_each_answer_fails_in_its_own_way() -> None:
    answers = [{"vendor": "a"}, {"total": 1}, {}, {"vendor": 5, "total": 1}, GOOD]
    for attempts in (1, 2, 3):
        engine = Answers(*answers)
        outcome = extracted(engine, max_attempts=attempts)
        assert len(engine.prompts) == len(outcome.attempts) == attempts
        assert outcome.status != "valid"


def test_the_same_errors_twice_end_the_loop() -> None:
    engine = Answers({"vendor": "Ann", "total": "5"})
    outcome = extracted(engine, max_attempts=9)
    assert len(engine.prompts) == 2
    assert codes(outcome).count("schema_violation") == 2


def test_the_same_errors_end_it_whatever_came_between_and_whoever_answered() -> None:
    ladder = [{"temperature": 0.9}, {"temperature": 1.5, "engine": "big"}]
    engine = Answers({"vendor": "Ann", "total": "5"}, {"vendor": 5, "total": 1}, {"vendor": "Ann", "total": "5"}, GOOD)
    outcome = extracted(engine, max_attempts=9, ladder=ladder)
    assert (len(engine.prompts), outcome.status) == (3, "degraded")


def test_being_wrong_beside_what_no_retry_mends_is_the_same_error_still() -> None:
    bad = Problem("schema_violation", "/a", "type")
    steps = [step(bad, Problem("ungrounded", "/x")), step(bad, Problem("ungrounded", "/y"), number=2)]
    assert not again(steps, asked(retry={"max_attempts": 9}))


def test_output_tokens_are_bounded_without_those_of_engine_failures() -> None:
    config = asked(retry={"max_attempts": 9, "max_output_tokens": 100})
    assert again([step("not_json", tokens=60)], config)
    assert not again([step("truncated", tokens=50), step("not_json", number=2, tokens=50)], config)
    steps = [step("engine_abort", tokens=500), step("not_json", number=2, tokens=60)]
    assert again(steps, config)
    assert next_sampling(steps, config).max_tokens == 40


def test_an_answer_that_could_not_be_half_as_long_as_the_last_is_not_asked_for() -> None:
    config = asked(retry={"max_attempts": 9, "max_output_tokens": 100})
    assert again([step("not_json", tokens=66)], config)
    assert not again([step("not_json", tokens=68)], config)


def test_an_engine_that_counts_no_tokens_is_charged_what_it_was_given() -> None:
    config = asked(retry={"max_attempts": 9, "max_output_tokens": 100})
    silent = Step(attempt(1, "some text"), Draft(problems=(Problem("not_json"),)))
    assert again([silent], config)
    values = {name: getattr(silent.attempt, name) for name in Attempt.__dataclass_fields__}
    charged = Step(Attempt(**{**values, "max_tokens": 90}), silent.draft)
    assert not again([charged], config)


@pytest.mark.parametrize("code", ["truncated", "engine_abort", "schema_violation"])
def test_the_deadline_ends_every_kind_of_retry(code: str) -> None:
    config = asked(retry={"deadline_seconds": 5})
    assert again([step(code)], config)
    assert not may_retry([step(code)], config, time.monotonic() - 5)


def test_engine_failures_have_a_budget_of_their_own() -> None:
    abort = completion("", "abort")
    bad, worse = {"vendor": 1, "total": 2}, {"vendor": "Ann"}
    engine = Answers(abort, bad, abort, worse, GOOD)
    outcome = extracted(engine, max_attempts=3, **QUICK)
    assert outcome.status == "valid"
    assert [item.finish_reason for item in outcome.attempts] == ["abort", "stop", "abort", "stop", "stop"]
    assert len(extracted(Answers(abort), max_attempts=3, **QUICK).attempts) == 3
    assert len(extracted(Answers(abort), max_attempts=3, max_engine_failures=0).attempts) == 1


def test_what_the_engine_spoilt_is_sent_again_as_it_was() -> None:
    engine = Answers(completion("", "abort"), {"vendor": 1, "total": 2}, completion("", "error"), GOOD)
    extracted(engine, max_attempts=2, ladder=[{"temperature": 0.7}], **QUICK)
    assert engine.prompts[1] == engine.prompts[0]
    assert "/vendor" in engine.prompts[2].user
    assert engine.prompts[3] == engine.prompts[2]
    first, again_, third, fourth = engine.samplings
    assert (first, third) == (again_, fourth)
    assert first != third


def test_the_wait_after_failures_grows_is_random_and_bounded() -> None:
    config = asked(retry={"backoff_seconds": 2, "deadline_seconds": 1000}).retry
    for failures, ceiling in ((1, 2), (2, 4), (3, 8), (9, MAX_PAUSE)):
        waits = [pause([step("engine_abort")] * failures, config) for _ in range(300)]
        assert 0 <= min(waits) < ceiling / 4
        assert ceiling * 3 / 4 < max(waits) <= ceiling
    assert pause([step("engine_abort"), step("not_json")], config) == 0
    begun = time.monotonic() - 999
    assert max(pause([step("engine_abort")] * 9, config, begun) for _ in range(100)) <= 1
    assert pause([step("engine_abort")], config, begun - 5) == 0


def test_a_ladder_is_climbed_by_answers_and_its_last_rung_serves_all_others() -> None:
    ladder = [{"temperature": 0.3}, {"temperature": 0.6, "engine": "big"}]
    config = asked(sampling={"temperature": 0.1, "seed": 7}, retry={"ladder": ladder, "max_attempts": 9})
    steps, seen = [], []
    for number, code in enumerate(["not_json", "engine_abort", "not_json", "not_json"], 1):
        sampling = next_sampling(steps, config)
        seen.append((sampling.temperature, sampling.engine, sampling.seed))
        steps.append(step(code, number=number))
    seen.append((next_sampling(steps, config).temperature, next_sampling(steps, config).engine, 10))
    assert seen == [(0.1, "", 7), (0.3, "", 8), (0.3, "", 8), (0.6, "big", 9), (0.6, "big", 10)]


def test_without_a_ladder_another_attempt_differs_by_its_seed_alone() -> None:
    config = asked(sampling={"temperature": 0.2})
    first, second = next_sampling([], config), next_sampling([step("not_json")], config)
    assert (second.temperature, second.max_tokens, second.engine) == (0.2, 512, "")
    assert first.seed != second.seed


def test_logprobs_are_asked_for_where_the_job_wants_confidence() -> None:
    plain, scored = next_sampling([], asked()), next_sampling([], asked(policy={"confidence": True}))
    assert (plain.logprobs, plain.token_ids) == (None, False)
    assert (scored.logprobs, scored.token_ids) == (0, True)


# --- room


def test_a_cut_answer_is_given_room_and_the_prompt_stays_as_it_was() -> None:
    short = completion('{"vendor": "Ann', "length", output_tokens=99)
    engine = Answers(short, short, GOOD)
    outcome = extracted(engine, max_attempts=3, max_tokens=99)
    assert outcome.status == "valid"
    assert [item.max_tokens for item in engine.samplings] == [99, 198, 396]
    assert len(set(engine.prompts)) == 1
    assert [item.max_tokens for item in outcome.attempts] == [99, 198, 396]


def test_later_answers_keep_the_room_that_an_earlier_one_had() -> None:
    steps = [cut(512), step("not_json", number=2, tokens=700, given=1024)]
    assert next_sampling(steps, asked(retry={"max_attempts": 3})).max_tokens == 1024


@pytest.mark.parametrize(
    ("had", "config"),
    [
        (100, asked(sampling={"max_tokens": 100}, retry={"max_attempts": 9, "max_output_tokens": 200})),
        (100, asked(sampling={"max_tokens": 100}, retry={"max_attempts": 9, "ladder": [{"room": 1}]})),
        (800, job(900, sampling={"max_tokens": 800}, retry={"max_attempts": 9})),
    ],
    ids=["tokens are spent", "the ladder gives none", "the context is full"],
)
def test_where_there_is_no_room_the_answer_is_told_to_be_shorter(had: int, config: ExtractConfig) -> None:
    steps = [cut(had)]
    assert again(steps, config)
    (line,) = feedback(steps, config)
    assert (line.code, line.message.count("keep it shorter")) == ("truncated", 1)
    given = next_sampling(steps, config).max_tokens
    assert given <= had
    assert not again([*steps, cut(given, 2)], config)


def test_feedback_that_leaves_no_half_of_an_answer_in_the_context_is_not_sent() -> None:
    assert again([cut(100)], job(1000, sampling={"max_tokens": 100}))
    assert not again([cut(100)], job(131, sampling={"max_tokens": 100}))
    assert not again([step("not_json", tokens=100)], job(131, sampling={"max_tokens": 100}))


def test_room_never_outgrows_the_context_of_the_engine_that_answers() -> None:
    engines = {"small": {"engine": "sampler", "max_model_len": 700}}
    base = {"sampling": {"max_tokens": 512}, "engines": engines}
    assert next_sampling([cut(512)], job(4096, **base)).max_tokens == 1024
    assert next_sampling([cut(512)], job(800, **base)).max_tokens == 800 - 7  # what the first prompt took
    on_small = job(4096, **base, retry={"ladder": [{"engine": "small"}]})
    assert next_sampling([cut(512)], on_small).max_tokens == 700 - 7


@pytest.mark.parametrize("code", ["repetition", "runaway_whitespace"])
def test_a_loop_is_told_to_end_and_gets_no_room(code: str) -> None:
    steps = [step(code, tokens=512, given=512)]
    assert again(steps, asked())
    assert next_sampling(steps, asked()).max_tokens == 512
    (line,) = feedback(steps, asked())
    assert line.message.startswith("1; ")


# --- what ends it


@pytest.mark.parametrize("code", [name for name, code in CODES.items() if code.again == "never"])
def test_what_no_retry_can_change_is_not_retried(code: str) -> None:
    assert not again([step(code)], asked(retry={"max_attempts": 9}))


def test_a_record_is_good_enough_when_nothing_can_be_mended() -> None:
    assert good_enough(step("wrapped_in_prose", "number_inexact", parsed=True).draft, asked())
    assert not good_enough(step("json_repaired", "schema_violation", parsed=True).draft, asked())
    assert not good_enough(Draft(), asked())
    assert not good_enough(step("engine_abort", parsed=True).draft, asked())
