"""A completion becomes a draft: the finish reason first, then strict JSON, and never an exception."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GOOD, Answers, codes, completion, extracted, schema_and_record

import pipeline
from pipeline.steps.codes import CODES
from pipeline.steps.parse import ENGINE_ERRORS, MAX_CHARACTERS, MAX_DEPTH, Unparsable, loads, parse


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
    assert "truncated" in codes(outcome)


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
        ("{} {}", "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": "\n"}', "not_json"),
        ("[１]", "not_json"),
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
    assert codes(draft) == ["empty_output"]
    assert "reasoning" in draft.problems[0].message


@given(st.text() | st.text(alphabet='[]{}":,\\0123456789.eE+-truefalsn \ud800', max_size=60))
def test_no_text_raises_anything_but_unparsable(text: str) -> None:
    try:
        loads(text)
    except Unparsable as error:
        assert error.code in CODES


def test_many_distinct_keys_before_a_repeated_one_take_no_quadratic_time() -> None:
    text = "{" + ",".join(f'"{i}":0' for i in range(30_000)) + ',"29999":0}'
    started = time.monotonic()
    assert refused(text) == "duplicate_key"
    assert time.monotonic() - started < 3


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


STRICTER = {"duplicate_key", "json_too_large"}


def test_the_json_parsing_suite_is_judged_as_expected(shared: Path) -> None:
    lines = (shared / "data/schemas/json_parsing_nst.jsonl").read_text(encoding="utf-8").strip().split("\n")
    wrong = []
    for case in map(json.loads, lines):
        text = base64.b64decode(case["bytes_b64"]).decode("utf-8", "surrogateescape")
        try:
            loads(text)
            verdict = "accept"
        except Unparsable as error:
            verdict = "stricter" if error.code in STRICTER else "reject"
        if case["expect"] != "either" and verdict != case["expect"] and verdict != "stricter":
            wrong.append((case["id"], verdict))
    assert len(lines) > 150
    assert not wrong
