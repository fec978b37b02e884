"""Counts add up in any order, stay bounded, and keep each rate apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GOOD, Answers, completion, document, extracted

from pipeline.observe.tally import MAX_POINTER, MAX_POINTERS, Tally, tally
from pipeline.records import Outcome, Problem

CUT = completion('{"vendor": "Ann", "total": 1, "lines": ["a', "length", output_tokens=50)


def some_outcomes() -> list[Outcome]:
    return [
        extracted(Answers(completion(GOOD, prompt_tokens=10, cached_tokens=8, output_tokens=20))),
        extracted(Answers("Here: " + json.dumps(GOOD))),
        extracted(Answers('{"vendor": "Ann", "total": 1,}')),
        extracted(Answers({"vendor": 5, "total": 1}, GOOD)),
        extracted(Answers("no", "no, again")),
        extracted(Answers(CUT)),
        extracted(Answers(completion("", "abort"), GOOD)),
        extracted(Answers("Sure: " + json.dumps({"vendor": 5, "total": 1})), max_attempts=1),
        extracted(Answers(GOOD), doc=document(problems=["duplicate_id"])),
    ]


OUTCOMES = some_outcomes()


def test_rates_have_their_own_numerators() -> None:
    total = tally(OUTCOMES)
    assert (total.documents, total.asked) == (9, 8)
    assert total.statuses == {"valid": 3, "degraded": 4, "rejected": 2}
    assert total.first_pass_format == 2  # the plain one, and the one that broke the schema
    assert total.first_pass_valid == 1
    assert total.repaired == 3
    assert total.retried == 3  # schema, prose, truncation
    assert total.resolved_by_retry == 1
    assert total.engine_retries == 1  # abort
    assert total.salvaged == 2
    assert total.truncated == 1
    assert total.attempts == 12
    assert total.codes["truncated"] == 1  # documents, not attempts
    assert total.pointers["receipt@1 /vendor schema_violation"] == 2


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
    total = tally([extracted(Answers(*answers), max_engine_failures=2)])
    assert (total.retried, total.resolved_by_retry, total.engine_retries) == counts
    assert total.asked == 1


def test_totals_of_an_earlier_version_are_read() -> None:
    old = {name: value for name, value in tally(OUTCOMES).to_json().items() if name != "engine_retries"}
    assert Tally.from_json(old).engine_retries == 0


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
