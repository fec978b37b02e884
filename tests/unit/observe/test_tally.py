"""Counts add up in any order, stay bounded, and keep each rate apart."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import GOOD, Answers, completion, document, extracted

from pipeline.observe.paths import MAX_COUNTS, MAX_ENGINE, MAX_POINTER
from pipeline.observe.tally import MAX_POINTERS, Tally, tally
from pipeline.records import Completion, Field, Outcome, Problem

CUT = completion('{"vendor": "Ann", "total": 1, "lines": ["a', "length", output_tokens=50)


def some_outcomes() -> list[Outcome]:
    return [
        extracted(Answers(completion(GOOD, prompt_tokens=10, cached_tokens=8, output_tokens=20))),
        extracted(Answers("Here: " + json.dumps(GOOD))),
        extracted(Answers('{"vendor": "Ann", "total": 1,}')),
        extracted(Answers({"vendor": 5, "total": 1}, GOOD)),
        extracted(Answers("no", "no, again")),
        extracted(Answers(CUT)),
        extracted(Answers(completion("", "abort"), GOOD), backoff_seconds=0),
        extracted(Answers("Sure: " + json.dumps({"vendor": 5, "total": 1})), max_attempts=1),
        extracted(Answers(GOOD), doc=document(problems=["duplicate_id"])),
    ]


OUTCOMES = some_outcomes()


def test_rates_have_their_own_numerators() -> None:
    total = tally(OUTCOMES)
    assert (total.documents, total.asked) == (9, 8)
    assert total.statuses == {"valid": 3, "degraded": 4, "rejected": 2}
    assert total.first_pass_format == 3  # the plain one, the one that broke the schema, the one after an abort
    assert total.first_pass_valid == 2
    assert total.repaired == 3
    assert total.retried == 4  # schema, prose, truncation, repaired text
    assert total.resolved_by_retry == 1
    assert dict(total.resolved) == {"2 valid": 1}
    assert total.engine_retries == 1  # abort
    assert total.salvaged == 2
    assert total.truncated == 1
    assert total.attempts == 13
    assert total.codes["truncated"] == 1  # documents, not attempts
    assert total.pointers["receipt@1 /vendor schema_violation"] == 2
    assert dict(total.alarms) == {"engine_abort": 1}


def rates_of(*outcomes: Outcome) -> dict[tuple[str, bool, str], Any]:
    return {(rates.engine, rates.constrained, rates.place): rates for rates in tally(outcomes).rates()}


def test_rates_are_kept_by_engine_constraint_and_answer() -> None:
    def answer(text: Any, engine: str, constrained: bool, tokens: int) -> Completion:
        return completion(text, engine=engine, constrained=constrained, output_tokens=tokens)

    small, big = "sampler:a b:xgrammar", "big"
    found = rates_of(
        extracted(Answers(answer({"vendor": 5, "total": 1}, small, True, 10), answer(GOOD, big, False, 20))),
        extracted(Answers(answer(GOOD, small, True, 30))),
        extracted(Answers(answer(f"```\n{json.dumps(GOOD)}\n```", big, False, 40))),
    )
    assert set(found) == {(small, True, "1"), (big, False, "1"), (big, False, "2")}
    one = found[small, True, "1"]
    assert (one.answers, one.format_first, one.format_repaired, one.schema, one.output_tokens) == (2, 2, 0, 1, 40)
    fenced = found[big, False, "1"]
    assert (fenced.answers, fenced.format_first, fenced.format_repaired, fenced.schema) == (1, 0, 1, 1)
    assert (found[big, False, "2"].semantic, found[big, False, "2"].output_tokens) == (1, 20)


def test_a_format_failure_under_a_constraint_shows_in_its_path_and_as_an_alarm() -> None:
    broken = completion("{", constrained=True)
    total = tally([extracted(Answers(broken, completion(GOOD, constrained=True)), backoff_seconds=0)])
    (rates,) = total.rates()
    assert (rates.place, rates.answers, rates.format_first, rates.schema) == ("1", 2, 1, 1)
    assert dict(total.alarms) == {"constraint_failed": 1}
    assert (total.retried, total.first_pass_format) == (0, 1)


@pytest.mark.parametrize(("severity", "semantic"), [("block", 0), ("degrade", 0), ("observe", 1)])
def test_findings_that_only_observe_leave_an_answer_semantically_valid(severity: Any, semantic: int) -> None:
    outcome = extracted(Answers(GOOD))
    ruled = dataclasses.replace(outcome, problems=(Problem("rule_broken", "/total", "", 1, severity),))
    assert rates_of(ruled)["", False, "1"].semantic == semantic == tally([ruled]).first_pass_semantic
    assert rates_of(ruled)["", False, "1"].schema == 1
    inexact = dataclasses.replace(outcome, problems=(Problem("number_inexact", "/total", "", 1),))
    assert tally([inexact]).first_pass_semantic == 1


def test_answers_from_the_third_on_share_a_line() -> None:
    answers = [{"vendor": "a"}, {"total": 1}, {}, {"vendor": 5, "total": 1}, GOOD]
    found = rates_of(extracted(Answers(*answers), max_attempts=5))
    assert [(place, rates.answers) for (_, _, place), rates in sorted(found.items())] == [("1", 1), ("2", 1), ("3+", 3)]


def test_engines_are_bounded_in_number_and_no_answer_is_lost() -> None:
    total = Tally()
    outcome = extracted(Answers({"vendor": 5, "total": 1}, GOOD))
    for number in range(300):
        for name in (f"engine {number}", "common", "x" * 9000):
            attempts = tuple(dataclasses.replace(item, engine=name) for item in outcome.attempts)
            total.add(dataclasses.replace(outcome, attempts=attempts))
    assert len(total.paths) <= MAX_COUNTS
    rates = {(item.engine, item.place): item.answers for item in total.rates()}
    assert rates["common", "1"] == rates["common", "2"] == rates["x" * MAX_ENGINE, "1"] == 300
    assert sum(rates.values()) == 1800
    assert sum(item.answers for item in _travelled(total).merge(total).rates()) == 3600


def test_what_retries_took_and_what_the_cache_spared_is_told() -> None:
    tokens = {"prompt_tokens": 100, "output_tokens": 7}
    bad = completion({"vendor": 5, "total": 1}, cached_tokens=10, **tokens)
    good = completion(GOOD, cached_tokens=96, **tokens)
    total = tally([extracted(Answers(bad, good)), extracted(Answers(completion("", "abort"), good), backoff_seconds=0)])
    assert (total.retry_prompt_tokens, total.retry_cached_tokens, total.retry_output_tokens) == (100, 96, 7)


def test_a_retry_that_is_no_better_resolved_nothing() -> None:
    trailing = '{"vendor": "Ann", "total": 1,}'
    total = tally([extracted(Answers(trailing, trailing))])
    assert (total.retried, total.resolved_by_retry, dict(total.resolved)) == (1, 0, {})


def test_leaves_are_counted_by_how_the_document_supports_them() -> None:
    fields = (Field("/a", "exact"), Field("/b", "none"), Field("/c", "none"), Field("/d"))
    total = tally([dataclasses.replace(extracted(Answers(GOOD)), fields=fields)])
    assert dict(total.matches) == {"exact": 1, "none": 2}


def test_tokens_that_gave_no_record_are_wasted() -> None:
    good, bad = completion(GOOD, output_tokens=20), completion({"vendor": 5}, output_tokens=30)
    assert tally([extracted(Answers(good))]).wasted_tokens == 0
    assert tally([extracted(Answers(bad, good))]).wasted_tokens == 30
    lost = tally([extracted(Answers(completion("no", output_tokens=7)), max_attempts=1)])
    assert (lost.wasted_tokens, lost.output_tokens) == (7, 7)


def test_tokens_of_the_attempt_that_was_salvaged_are_not_wasted() -> None:
    cut = completion('{"vendor": "Ann", "total": 1, "li', "length", output_tokens=50)
    empty = completion("{", "length", output_tokens=3)
    assert tally([extracted(Answers(cut, empty))]).wasted_tokens == 3
    assert tally([extracted(Answers(empty, cut))]).wasted_tokens == 3
    assert tally([extracted(Answers(cut, empty), degraded=False)]).wasted_tokens == 53


@pytest.mark.parametrize("first", ["```\n{}\n```", "Sure: {}", "{},"])
@pytest.mark.parametrize("then", [None, "retry"])
def test_a_first_answer_that_had_to_be_made_json_never_counts_as_json(first: str, then: str | None) -> None:
    wrapped = first.format(json.dumps({"vendor": 5, "total": 1}))
    total = tally([extracted(Answers(wrapped, GOOD), max_attempts=2 if then else 1)])
    assert (total.asked, total.first_pass_format, total.first_pass_valid) == (1, 0, 0)
    assert (total.repaired, total.retried) == (1, int(then is not None))


def test_a_first_answer_that_was_json_counts_although_the_second_was_wrapped() -> None:
    total = tally([extracted(Answers({"vendor": 5, "total": 1}, f"```\n{json.dumps(GOOD)}\n```"))])
    assert (total.first_pass_format, total.first_pass_valid, total.repaired) == (1, 0, 1)


@pytest.mark.parametrize("error", ["prompt_too_long", "schema_refused", "recording_missing", "recording_stale"])
def test_documents_that_the_engine_refused_were_not_asked(error: str) -> None:
    refused = completion("", "error", error=error, output_tokens=0)
    total = tally([extracted(Answers(refused)), extracted(Answers(GOOD))])
    assert (total.documents, total.asked, total.first_pass_valid, total.attempts) == (2, 1, 1, 2)


@pytest.mark.parametrize(
    ("answers", "counts"),
    [
        ([completion("", "abort")], (0, 0, 2)),
        ([completion("", "error", error="engine_failed"), GOOD], (0, 0, 1)),
        ([completion("{", constrained=True), GOOD], (0, 0, 1)),
        ([completion("", "abort"), {"vendor": 5}, completion("", "abort"), GOOD], (1, 1, 2)),
        ([{"vendor": 5}, completion("", "error", error="prompt_too_long")], (0, 0, 0)),
        ([{"vendor": 5}, completion("", "error", error="deadline")], (0, 0, 0)),
        ([{"vendor": 5}, GOOD], (1, 1, 0)),
    ],
)
def test_only_another_answer_of_the_model_is_a_retry(answers: list[Any], counts: tuple[int, int, int]) -> None:
    total = tally([extracted(Answers(*answers), max_engine_failures=2, backoff_seconds=0)])
    assert (total.retried, total.resolved_by_retry, total.engine_retries) == counts
    assert total.asked == 1


def test_totals_of_an_earlier_version_are_read() -> None:
    new = {"engine_retries", "paths", "alarms", "repairs", "matches", "resolved", "retry_output_tokens"}
    old = Tally.from_json({name: value for name, value in tally(OUTCOMES).to_json().items() if name not in new})
    assert (old.engine_retries, old.rates(), old.asked) == (0, [], 8)


@given(st.permutations(OUTCOMES), st.integers(0, 9), st.integers(0, 9))
def test_parts_add_up_to_the_whole_in_any_order(shuffled: Any, one: int, two: int) -> None:
    first, second = sorted((one, two))
    a, b, c = (tally(part) for part in (shuffled[:first], shuffled[first:second], shuffled[second:]))
    left = tally([]).merge(_travelled(a)).merge(_travelled(b)).merge(c)
    right = _travelled(a).merge(_travelled(b).merge(_travelled(c)))
    assert left == right == tally(OUTCOMES)


def _travelled(part: Tally) -> Tally:
    return Tally.from_json(json.loads(json.dumps(part.to_json())))


def test_json_comes_back_as_it_was() -> None:
    total = tally(OUTCOMES)
    assert _travelled(total) == total
    _travelled(total).add(OUTCOMES[0])  # its counters still count


def test_pointers_are_bounded_in_number_and_length_and_none_is_lost() -> None:
    total = Tally()
    for number in range(1000):
        names = [f"/k{number}", "/common", f"/{'x' * 9000}{number}"]
        problems = tuple(Problem("schema_violation", name) for name in names)
        total.add(Outcome(f"d{number}", "", "s@1", "rejected", 0, None, problems))
    assert len(total.pointers) <= 2 * MAX_POINTERS
    assert max(map(len, total.pointers)) < MAX_POINTER + 40
    assert total.pointers["s@1 /common schema_violation"] == 1000
    assert total.pointers.total() == 3000
    assert total.pointers["other"] > 500
    doubled = _travelled(total).merge(total)
    assert doubled.pointers.total() == 6000


def test_array_indexes_share_a_place() -> None:
    problems = tuple(Problem("schema_violation", f"/lines/{number}/2024x/7") for number in range(5))
    total = tally([Outcome("d", "", "s@1", "rejected", 0, None, problems)])
    assert dict(total.pointers) == {"s@1 /lines/*/2024x/* schema_violation": 1}


@given(st.floats(), st.floats())
@example(0.0, 1.7e305)
def test_a_time_that_is_none_ends_nothing(seconds: float, queue: float) -> None:
    outcome = extracted(Answers(completion(GOOD, seconds=seconds, queue_seconds=queue)))
    counted = tally([outcome])
    assert counted.generation_ms["sum"] >= 0 and counted.queue_ms["sum"] >= 0
    assert Tally.from_json(json.loads(json.dumps(counted.to_json()))) == counted
