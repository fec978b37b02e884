"""Malformed answers: what repair may do, what it must refuse, and that every change leaves a trace."""

from __future__ import annotations

import dataclasses
import json

import pytest
from support import Answers, codes, completion, extracted, plan_of

from pipeline.records import Draft
from pipeline.steps.codes import cap_of
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
    assert codes(outcome)[0] == "wrapped_in_prose"
    assert [item.kind for item in outcome.repairs] == ["wrapper_removed"]
    assert len(outcome.attempts) == 1


def test_what_stood_in_prose_and_was_mended_too_names_both() -> None:
    draft = repaired('Sure: {"a": 1,}')
    assert codes(draft) == ["wrapped_in_prose", "json_repaired"]
    assert [item.kind for item in draft.repairs] == ["wrapper_removed", "comma_removed"]


@pytest.mark.parametrize("text", [f"Sure: {JSON}", '{"a": 1,}', '{"a": "b" "c"}', "{'a': 'it is'}", '{"a": "b"'])
def test_every_repair_says_of_which_attempt_it_is(text: str) -> None:
    answer = completion(text)
    draft = repair(parse(answer, 4), answer, 4)
    assert draft.repairs
    assert {item.attempt for item in (*draft.repairs, *draft.problems)} == {4}


def test_the_outcome_keeps_the_repairs_of_all_attempts() -> None:
    bad = json.dumps({"vendor": 5, "total": 1})
    outcome = extracted(Answers(f"```\n{bad}\n```", RECORD))
    assert [(item.kind, item.attempt) for item in outcome.repairs] == [("wrapper_removed", 1)]
    assert (outcome.status, outcome.layer, outcome.record_attempt) == ("valid", 2, 2)


@pytest.mark.parametrize(
    ("text", "value", "kinds", "touched"),
    [
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}, "comma_removed", []),
        ("{'a': 'it is'}", {"a": "it is"}, "quotes_changed", ["/a"]),
        ("{'a': 'it's', 'b': 'don\\'t'}", {"a": "it's", "b": "don't"}, "quotes_changed escape_changed", ["/a", "/b"]),
        ('{"a": 1.10, b: None}', {"a": 1.1, "b": None}, "quotes_added literal_changed", ["/b"]),
        ('{"a": True, "b": true}', {"a": True, "b": True}, "literal_changed", ["/a"]),
        ('{"a": "line\nbreak", "b": "x"}', {"a": "line\nbreak", "b": "x"}, "control_escaped", ["/a"]),
        ('{"a": {"c": "d", "e": 5', {"a": {"c": "d", "e": 5}}, "closed", []),
        ('{"a": [1, 2, "b": 3}', {"a": [1, 2], "b": 3}, "json_repair", []),
        ('{"a": [1, 2}', {"a": [1, 2]}, "closer_added", []),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "comma_added", []),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}], "comma_added", []),
        ('{"a": "he said "hi" there"}', {"a": 'he said "hi" there'}, "json_repair", ["/a"]),
        ('{"a": "\\ud83d\\ude00 \\u00e9",}', {"a": "😀 é"}, "comma_removed", []),
        ('{"a": "x" // net\n, "b": 2 /* {} */}', {"a": "x", "b": 2}, "comment_removed", []),
        ("｛“a”：“x，y”，“b”：1｝", {"a": "x，y", "b": 1}, "punctuation_changed quotes_changed", ["/a"]),
        ('{"a"："“x”：，"，"b"：［1，2］}', {"a": "“x”：，", "b": [1, 2]}, "punctuation_changed", []),
        ('{\\"a\\": 1, \\"b\\": \\"x\\"}', {"a": 1, "b": "x"}, "unescaped", []),
    ],
)
def test_a_change_of_form_is_degraded_at_best_named_and_marked_on_the_values_it_touched(
    text: str, value: object, kinds: str, touched: list[str]
) -> None:
    draft = repaired(text)
    assert draft.value == value
    assert codes(draft) in (["json_repaired"], ["json_in_string"])
    assert {item.kind for item in draft.repairs} == set(kinds.split())
    assert [field.pointer for field in draft.fields if field.touched] == touched
    assert cap_of(draft.problems[0]) == "degraded"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x"', {"a": "x"}),
        ('{"a": [1, {"b": true', {"a": [1, {"b": True}]}),
        ('{"a": [1, 2]', {"a": [1, 2]}),
        ('```json\n{"a": [{}\n```', {"a": [{}]}),
        ('{"a": "x"\n```', {"a": "x"}),
    ],
)
def test_closers_after_a_finished_value_leave_the_status_as_it_was(text: str, value: object) -> None:
    draft = repaired(text)
    assert (draft.value, draft.problems) == (value, ())
    assert "closed" in {item.kind for item in draft.repairs}


@pytest.mark.parametrize(
    "text", ['{"a": "x', '{"a": 1,', '{"a":', '{"a"', '{"a": tru', '["x",', '{"a": [', '{"a": "x\\"']
)
def test_an_end_that_is_open_is_not_closed_by_guessing(text: str) -> None:
    assert not repaired(text).parsed


def test_json_in_a_string_is_taken_out_where_the_schema_refuses_the_string_and_only_there() -> None:
    plan = plan_of()
    inside = json.dumps({"vendor": '{"a": 1}', "total": 1.5})
    for text in (json.dumps(inside), json.dumps(json.dumps(inside))):
        outcome = extracted(Answers(text), plan, max_attempts=1)
        answer = completion(text)
        draft = repair(parse(answer, 1), answer, 1, plan)
        assert draft.value == {"vendor": '{"a": 1}', "total": 1.5}
        assert codes(draft) == ["json_in_string"]
        assert outcome.status != "valid"
    answer = completion(json.dumps({"vendor": "A", "total": 1, "lines": '["x"]'}))
    draft = repair(parse(answer, 1), answer, 1, plan)
    assert draft.value["lines"] == ["x"]
    assert [(p.code, p.pointer) for p in draft.problems] == [("json_in_string", "/lines")]
    answer = completion(json.dumps('{"a": 1}'))
    assert repair(parse(answer, 1), answer, 1, plan_of({"type": "string"}, "text@1")).value == '{"a": 1}'


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
        "{a: b " + " " * MAX_REPAIRABLE_CHARACTERS + "}",
        '{"a": none}',
        '{"a": "x" "b"}',
        "[1 2]",
        "[1,,2]",
        '["a" "b"]',
        '{"a", 1}',
        '{"a": 1; "b": 2}',
        '{"a": 5"}',
        '{"a": １}',
        '{"a": "b", ...}',
    ],
)
def test_what_is_ambiguous_or_would_change_a_value_is_not_repaired(text: str) -> None:
    draft = repaired(text)
    assert not draft.parsed
    assert len(draft.problems) == 1


def test_several_values_are_told_from_no_value() -> None:
    assert codes(repaired(f"```\n{JSON}\n```\nor\n```\n{JSON}\n```")) == ["multiple_json"]
    assert codes(repaired(f"First {JSON} and then {JSON}")) == ["multiple_json"]
    assert codes(repaired("The [answer] is {}: see {")) == ["not_json"]
    assert codes(repaired("I do not know.")) == ["no_json"]


@pytest.mark.parametrize("reason", ["length", "abort", "error", "repetition"])
def test_an_answer_that_did_not_stop_is_not_repaired(reason: str) -> None:
    assert not repaired(f"```json\n{JSON}\n```", finish_reason=reason).parsed


def test_an_answer_under_a_constraint_is_not_repaired() -> None:
    assert not repaired('{"a": 1,}', constrained=True).parsed
    assert codes(repaired("{'a': 1}", constrained=True)) == ["constraint_failed"]


def test_bad_values_in_a_wrapper_keep_their_own_code() -> None:
    assert codes(repaired('```\n{"a": 1, "a": 2}\n```')) == ["duplicate_key"]
    assert codes(repaired("Sure: [NaN]")) == ["number_not_finite"]
