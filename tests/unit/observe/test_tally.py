"""Counts add up in any order, stay bounded, and keep each rate apart."""

from __future__ import annotations

import json
from typing import Any

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
    assert total.statuses == {"valid": 4, "degraded": 3, "rejected": 2}
    assert total.first_pass_format == 2  # the plain one, and the one that broke the schema
    assert total.first_pass_valid == 1
    assert total.repaired == 3
    assert total.retried == 4  # schema, prose, truncation, abort
    assert total.resolved_by_retry == 2
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
