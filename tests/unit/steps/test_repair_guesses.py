"""Repair where an answer can be read in several ways: no guess becomes a value, a key or the record."""

from __future__ import annotations

import pytest
from support import Answers, codes, completion, extracted, plan_of

from pipeline.steps.parse import parse
from pipeline.steps.repair import repair

OPEN = plan_of({"type": "object", "additionalProperties": True}, "open@1")


@pytest.mark.parametrize("word", ["undefined", "NaN", "nil", "NIL", "-Infinity", "none"])
def test_a_word_that_means_no_text_becomes_none(word: str) -> None:
    outcome = extracted(Answers(f"{{'a': {word}, 'b': 'x'}}"), OPEN, max_attempts=1)
    assert outcome.record is None or "a" not in outcome.record


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,,"b": 2}',
        '{"a": 1,5}',
        '{"a": x, y}',
        '{"a": x: y}',
        '{"a": 5 kg, "b": "x"}',
        '{"a": `x`}',
        '{"a": "x”}',
        '{"a": "C:\\\\temp\\", "b": "x"}',
        '{"a": "x", "b": "y" z": 1}',
        "{'a\\': 'x', 'b': 1}",
        '{"a": 1//0\n}',
        '{"a": 1#0\n}',
    ],
)
def test_where_an_unquoted_or_half_quoted_text_ends_is_not_guessed(text: str) -> None:
    outcome = extracted(Answers(text), OPEN, max_attempts=1)
    kept = outcome.record or {}
    assert not any(set(key) & set("\"',:") for key in kept)
    assert all(value in (1, "x", "1//0", "1#0") for value in kept.values()), kept
    assert kept.get("a") != 1 or text.startswith('{"a": 1,,')  # which a comma ends; 1//0 is a text, if anything


@pytest.mark.parametrize("mark", ["\x0c", "\u3000", "\xa0", "\ufeff", "\u2028"])
def test_blanks_that_json_does_not_know_are_a_named_change_wherever_they_stand(mark: str) -> None:
    for text in (f'{{"a": 1}}{mark}', f'{mark}{{"a": 1}}', f'{{"a": {mark}1}}'):
        outcome = extracted(Answers(text), OPEN, max_attempts=1)
        assert outcome.record == {"a": 1}
        assert outcome.repairs and outcome.layer == 2


def test_a_fence_inside_a_text_of_the_answer_is_part_of_the_text() -> None:
    answer = '{"a": "see\n```json\n{"b": 1}\n```\n"}'
    draft = repair(parse(completion(answer), 1), completion(answer), 1)
    assert draft.value != {"b": 1}
    quoted = '{"a": "```json\n{}```"}'
    assert extracted(Answers(quoted), OPEN, max_attempts=1).record == {"a": "```json\n{}```"}
    fenced = 'As asked:\n```json\n{"a": 1}\n```'
    assert codes(extracted(Answers(fenced), OPEN, max_attempts=1))[0] == "wrapped_in_prose"


def test_a_repairer_that_repeats_itself_is_quoted_once() -> None:
    outcome = extracted(Answers("{a: x, b: y, c: z}"), OPEN, max_attempts=1)
    assert outcome.record == {"a": "x", "b": "y", "c": "z"}
    assert len(set(outcome.repairs)) == len(outcome.repairs)
