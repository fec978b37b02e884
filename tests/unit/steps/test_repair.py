"""Malformed answers: what repair may do, what it must refuse, and that every change leaves a trace."""

from __future__ import annotations

import dataclasses
import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import Answers, codes, completion, extracted, schema_and_record

from pipeline.records import Draft
from pipeline.steps.parse import parse
from pipeline.steps.repair import MAX_REPAIRABLE_CHARACTERS, repair

RECORD = {"vendor": "Ann", "total": 1.5}
JSON = json.dumps(RECORD)


def repaired(text: str, **values: object) -> Draft:
    answer = dataclasses.replace(completion(text), **values)
    return repair(parse(answer, 1), answer, 1)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{JSON}\n```",
        f"\n \ufeff```\n\n{JSON}\r\n```\n",
        f"```json\n{JSON}",
        f"```json {JSON}",
        f"{JSON}\n```",
        f"```{JSON}```",
        f"\ufeff{JSON}",
    ],
)
def test_a_wrapper_without_words_is_taken_away_and_named_and_the_record_stays_valid(text: str) -> None:
    outcome = extracted(Answers(text))
    assert (outcome.status, outcome.layer, outcome.record) == ("valid", 2, RECORD)
    assert [item.kind for item in outcome.repairs] == ["wrapper_removed"]


@pytest.mark.parametrize(
    "text",
    [
        f"Here is it:\n```\n{JSON}\n```\nAnything else?",
        f"```\n{JSON}\n```\nI am not sure about the total.",
        f"```\nfor example {JSON}\n```",
        f"Sure! {JSON} Hope it helps.",
        f"An answer could look like {JSON}",
        f"```json please {JSON}",
        f"{JSON}}}",
    ],
)
def test_json_inside_prose_is_degraded_at_best_and_not_asked_again(text: str) -> None:
    outcome = extracted(Answers(text))
    assert (outcome.status, outcome.layer, outcome.record) == ("degraded", 2, RECORD)
    assert codes(outcome) == ["wrapped_in_prose"]
    assert [item.kind for item in outcome.repairs] == ["wrapper_removed"]
    assert len(outcome.attempts) == 1


def test_what_stood_in_prose_and_was_mended_too_names_both() -> None:
    draft = repaired('Sure: {"a": 1,}')
    assert codes(draft) == ["wrapped_in_prose", "json_repaired"]
    assert [item.kind for item in draft.repairs][:2] == ["wrapper_removed", "json_repair"]


@pytest.mark.parametrize("text", [f"Sure: {JSON}", '{"a": 1,}', '{"code": 00123}', "{'a': 'it is'}"])
def test_every_repair_says_of_which_attempt_it_is(text: str) -> None:
    answer = completion(text)
    draft = repair(parse(answer, 4), answer, 4)
    assert draft.repairs
    assert {item.attempt for item in draft.repairs} == {problem.attempt for problem in draft.problems} == {4}


def test_the_outcome_keeps_the_repairs_of_all_attempts() -> None:
    bad = json.dumps({"vendor": 5, "total": 1})
    outcome = extracted(Answers(f"```\n{bad}\n```", RECORD))
    assert [(item.kind, item.attempt) for item in outcome.repairs] == [("wrapper_removed", 1)]
    assert (outcome.status, outcome.layer, outcome.record_attempt) == ("valid", 2, 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ("{'a': 'it is'}", {"a": "it is"}),
        ('{"a": 1.10, b: None}', {"a": 1.1, "b": None}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": [1, 2], "b": {"c": "d"', {"a": [1, 2], "b": {"c": "d"}}),
        ('{"a": "he said "hi" there"}', {"a": 'he said "hi" there'}),
        ('{"a": "\\ud83d\\ude00 \\u00e9",}', {"a": "😀 é"}),
        ('```json\n{"a": "x",}\n```', {"a": "x"}),
    ],
)
def test_what_json_repair_mends_is_degraded_at_best_and_named(text: str, value: object) -> None:
    draft = repaired(text)
    assert draft.value == value
    assert codes(draft) == ["json_repaired"]
    assert [item for item in draft.repairs if item.kind == "json_repair" and item.detail]
    assert extracted(Answers('{"vendor": "Ann", "total": 1.5,}')).status == "degraded"


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{JSON}\n```\nor\n```\n{JSON}\n```",
        '{"a": 1} {"a": 2}',
        "The [answer] is {}: see {",
        '{"code": 00123}',
        '{"a": 1, "a": 2,}',
        '{"a": "abc" "def"}',
        '{"a": "10 000" EUR}',
        '{"a": -}',
        '{"a": 1, "b":',
        '{"a": 1, "b"',
        '{"a',
        '{"a": {"b"',
        '{"a": 1e999, }x',
        '{"a": +5}',
        '{"',
        "no brackets at all",
        "[" * 3000,
        "{" + "(" * 3000,
        '{"a": 1,' + " " * MAX_REPAIRABLE_CHARACTERS + "}",
    ],
)
def test_what_is_ambiguous_or_would_change_a_value_is_not_repaired(text: str) -> None:
    draft = repaired(text)
    assert not draft.parsed
    assert len(draft.problems) == 1


@pytest.mark.parametrize("reason", ["length", "abort", "error", "repetition"])
def test_an_answer_that_did_not_stop_is_not_repaired(reason: str) -> None:
    assert not repaired(f"```json\n{JSON}\n```", finish_reason=reason).parsed


def test_an_answer_under_a_constraint_is_not_repaired() -> None:
    assert not repaired('{"a": 1,}', constrained=True).parsed
    assert codes(repaired("{'a': 1}", constrained=True)) == ["constraint_failed"]


def test_bad_values_in_a_wrapper_keep_their_own_code() -> None:
    assert codes(repaired('```\n{"a": 1, "a": 2}\n```')) == ["duplicate_key"]
    assert codes(repaired("Sure: [NaN]")) == ["number_not_finite"]


def test_a_long_log_of_changes_is_cut_and_counted() -> None:
    draft = repaired("{" + ", ".join(f"k{i}: v{i}" for i in range(40)) + "}")
    assert draft.value == {f"k{i}": f"v{i}" for i in range(40)}
    assert len(draft.repairs) == 21
    assert "further changes" in draft.repairs[-1].detail


@settings(max_examples=80)
@given(st.text(alphabet="{}[]\"',:\\abn01-. \n/*#`“N", max_size=60) | st.text(max_size=30))
def test_repair_never_raises_and_never_calls_its_work_valid(text: str) -> None:
    draft = repaired(text)
    changed = [item for item in draft.repairs if item.kind in ("json_repair", "wrapper_removed")]
    assert not draft.parsed or changed or parse(completion(text), 1).parsed
    if any(item.kind == "json_repair" for item in draft.repairs):
        assert codes(draft)[-1] == "json_repaired"
    assert not draft.parsed or set(codes(draft)) <= {"json_repaired", "wrapped_in_prose"}
    json.dumps(draft.value, allow_nan=False)


@settings(max_examples=60)
@given(st.data(), schema_and_record())
def test_any_prefix_of_json_keeps_only_what_the_text_says(data: st.DataObject, pair: Any) -> None:
    text = json.dumps(pair[1], ensure_ascii=False)
    text = text[: data.draw(st.integers(0, len(text) - 1))]
    draft = repaired(text)
    assert not draft.parsed or codes(draft) == ["json_repaired"]
    if draft.parsed:
        whole = json.dumps(pair[1], ensure_ascii=False)
        assert all(json.dumps(name, ensure_ascii=False)[1:-1] in whole for name in draft.value)
        assert set(list(draft.value)[:-1]) <= set(pair[1])


def test_time_is_bounded_whatever_the_text() -> None:
    rng = random.Random(5)
    pieces = ['"', "“", "}", "]", "\\", "a", "null", ",", ":", "'", "/*", "\\u", "1 ", '"a":', "```", "#\n", "("]
    texts = ['{"a":' + ("".join(rng.choices(pieces, k=4)) * 2000)[: MAX_REPAIRABLE_CHARACTERS - 5] for _ in range(15)]
    texts.append(('{"a":' + "“\\u}" * 2000)[:MAX_REPAIRABLE_CHARACTERS])
    slowest = 0.0
    for text in [*texts, "```\n" * 100_000, "`" * 500_000, '"' * 500_000, "{" * 60 + " " * 900_000]:
        started = time.monotonic()
        repaired(text)
        slowest = max(slowest, time.monotonic() - started)
    assert slowest < 4
