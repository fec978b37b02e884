"""A completion becomes a draft: the finish reason first, then strict JSON, and never an exception."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GOOD, Answers, codes, completion, extracted, schema_and_record

import pipeline
from pipeline.steps.codes import CODES, cap_of
from pipeline.steps.parse import ENGINE_ERRORS, MAX_CHARACTERS, MAX_DEPTH, Unparsable, loads, parse
from tests.bounds import processor_seconds


def refused(text: str) -> str:
    with pytest.raises(Unparsable) as caught:
        loads(text)
    return caught.value.code


@given(st.data(), schema_and_record())
def test_no_prefix_of_a_valid_output_is_valid_when_the_answer_was_cut(data: st.DataObject, pair: Any) -> None:
    _, record = pair
    text = json.dumps({**GOOD, "lines": [str(record)]}, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(0, len(text)))
    outcome = extracted(Answers(completion(text[:cut], "length", constrained=data.draw(st.booleans()))))
    assert outcome.status != "valid"
    assert {"truncated", "empty_output"} & set(codes(outcome))


@pytest.mark.parametrize("reason", ["length", "abort", "error", "repetition", "tool_calls", ""])
def test_only_an_answer_that_stopped_by_itself_is_parsed(reason: str) -> None:
    draft = parse(completion(GOOD, reason), 3)
    assert not draft.parsed
    assert [problem.attempt for problem in draft.problems] == [3]


def test_an_engine_error_is_not_parsed_even_with_whole_text() -> None:
    draft = parse(completion(GOOD, "stop", error="engine_failed", detail="CUDA"), 1)
    assert codes(draft) == ["engine_error"]
    assert draft.problems[0].message == "CUDA"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_output"),
        (" \n\t", "empty_output"),
        ('{"a": 1, "a": 1}', "duplicate_key"),
        ('[{"b": {"a": 1, "\\u0061": 2}}]', "duplicate_key"),
        ('{"p": NaN}', "number_not_finite"),
        ("[-Infinity]", "number_not_finite"),
        ("[1e400]", "number_not_finite"),
        ("[-1e400]", "number_not_finite"),
        ("[1e-400]", "number_not_finite"),
        ("[" + "9" * 5000 + "]", "number_not_finite"),
        ("[" * 3000, "json_too_large"),
        ('{"a":' * 3000, "json_too_large"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "json_too_large"),
        ('"' + "x" * MAX_CHARACTERS + '"', "json_too_large"),
        ("\ufeff{}", "not_json"),
        ("{} {}", "multiple_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": "\n"}', "not_json"),
        ("Sure!", "no_json"),
        ("[2024-01-05]", "not_json"),
        ("[1 2]", "not_json"),
        ("[-]", "not_json"),
    ],
)
def test_what_is_not_one_bounded_json_value_is_refused_with_its_code(text: str, code: str) -> None:
    assert refused(text) == code
    assert codes(parse(completion(text), 1)) == [code]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, None),
        (json.dumps(["[" * 100 + '"{{' * 90]), ["[" * 100 + '"{{' * 90]),
        ("[0.0, -0, 0e5, 0e-999]", [0.0, 0, 0.0, 0.0]),
        ("[123456789012345678901234567890]", [123456789012345678901234567890]),
        (r'"\ud83d\ude00"', "😀"),
        (' \n"x"\t', "x"),
    ],
)
def test_what_strict_json_allows_is_parsed_as_it_stands(text: str, value: object) -> None:
    assert value is None or loads(text) == value
    assert parse(completion(text), 1).parsed


def test_a_lone_surrogate_is_parsed_here_and_rejected_by_validation() -> None:
    outcome = extracted(Answers('{"vendor": "\\ud800", "total": 1}'), max_attempts=1)
    assert (outcome.status, outcome.record) == ("degraded", {"total": 1})
    assert "lone_surrogate" in codes(outcome)


@pytest.mark.parametrize(
    "text", ["", '{"vendor": "x"', "Sure!", '```json\n{"vendor": "x", "total": 1}\n```', "\ufeff{}"]
)
def test_a_finished_constrained_answer_that_is_not_json_is_the_engines_fault(text: str) -> None:
    outcome = extracted(Answers(completion(text, constrained=True)), max_engine_failures=1)
    assert outcome.status == "rejected"
    assert set(codes(outcome)) == {"constraint_failed"}
    assert len(outcome.attempts) == 2


def test_text_in_the_reasoning_channel_is_named_and_not_harvested() -> None:
    draft = parse(completion("", reasoning=json.dumps(GOOD)), 1)
    assert codes(draft) == ["channel_mismatch"]
    assert not draft.parsed
    assert codes(parse(completion("", "length", reasoning="well, "), 1)) == ["truncated"]


def test_what_a_provider_declined_is_told_in_its_words() -> None:
    draft = parse(completion("", refusal="I cannot help with that."), 1)
    assert [(p.code, p.message) for p in draft.problems] == [("model_refused", "I cannot help with that.")]


@pytest.mark.parametrize("number", ["00123", "+1", ".5", "1.", "0x1F", "1_000", "-01", "１２", "1.e5", "2.5e", "٣"])
def test_a_number_that_json_does_not_know_is_told_with_its_place(number: str) -> None:
    draft = parse(completion(f'{{"a": ["x", {number}]}}'), 1)
    assert [(p.code, p.pointer) for p in draft.problems] == [("number_noncanonical", "/a/1")]


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ('{"rows": [{"n": 1, "v": 2, "n": 3}]}', "duplicate_key", "/rows/0/n"),
        ('{"a": {"p": NaN}}', "number_not_finite", "/a/p"),
        ('{"NaN": "NaN", "b": [1, NaN]}', "number_not_finite", "/b/1"),
        ('{"a": [1e400]}', "number_not_finite", "/a/0"),
    ],
)
def test_what_json_refuses_is_told_with_its_place(text: str, code: str, pointer: str) -> None:
    assert [(p.code, p.pointer) for p in parse(completion(text), 1).problems] == [(code, pointer)]


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ('{"a": 9007199254740993}', "integer_beyond_double", "/a"),
        ('{"a": [0.1234567890123456789]}', "number_inexact", "/a/0"),
        ('{"a": 1.234567e-320}', "number_inexact", "/a"),
        ('{"a": "x\u200by"}', "invisible_characters", "/a"),
        ('{"a\\u202e": "x"}', "invisible_characters", "/a\u202e"),
        ('{"a": "\\u0000"}', "invisible_characters", "/a"),
        ('["a\x7f"]', "invisible_characters", "/0"),
        ('["ad\u200cmin"]', "invisible_characters", "/0"),
    ],
)
def test_what_is_odd_about_a_value_is_told_and_costs_nothing(text: str, code: str, pointer: str) -> None:
    draft = parse(completion(text), 1)
    assert draft.parsed
    assert [(p.code, p.pointer) for p in draft.problems] == [(code, pointer)]
    assert cap_of(draft.problems[0]) == "valid"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 9007199254740992}',
        "[1e22, 0.1, 123456789012.5, 1e-300]",
        '["می\u200cخواهم ❤\ufe0f क्\u200dष"]',
        '["👩\u200d👧 a\\tb\\r\\n"]',
    ],
)
def test_what_belongs_to_a_number_or_a_script_is_not_odd(text: str) -> None:
    assert parse(completion(text), 1).problems == ()


def test_many_odd_places_are_counted_and_not_all_named() -> None:
    draft = parse(completion("[" + ",".join(["9007199254740993"] * 5000) + "]"), 1)
    assert len(draft.problems) == 20
    assert "4981" in draft.problems[-1].message


@given(st.text() | st.text(alphabet='[]{}":,\\0123456789.eE+-truefalsn \ud800', max_size=60))
def test_no_text_raises_anything_but_unparsable(text: str) -> None:
    try:
        loads(text)
    except Unparsable as error:
        assert error.code in CODES


def test_many_distinct_keys_before_a_repeated_one_take_no_quadratic_time() -> None:
    text = "{" + ",".join(f'"{i}":0' for i in range(30_000)) + ',"29999":0}'
    with processor_seconds(3):
        assert refused(text) == "duplicate_key"


def test_every_code_that_the_package_uses_is_in_the_table() -> None:
    used = set()
    for path in Path(pipeline.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        used |= set(re.findall(r'(?:Problem|Unparsable)\(\s*"(\w+)"', text))
        used |= set(re.findall(r'(?<![=!]= )code = "(\w+)"', text))
    assert used <= CODES.keys()
    assert {"truncated", "schema_violation", "duplicate_id", "required_missing"} <= used


def test_every_error_that_an_engine_can_report_has_a_code_of_the_engine_layer() -> None:
    source = Path(pipeline.__file__).parent
    reported = set()
    for path in [*source.glob("engines/*.py"), source / "flow.py"]:
        reported |= set(re.findall(r'error="(\w+)"', path.read_text(encoding="utf-8")))
    assert reported >= {"prompt_too_long", "deadline"}
    for error in [*reported, "something new"]:
        problem = parse(completion("", "error", error=error), 1).problems[0]
        assert CODES[problem.code].layer == "engine"
        assert (problem.code == "engine_error") == (error not in ENGINE_ERRORS)
