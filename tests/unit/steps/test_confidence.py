"""Confidence ranks: what each of its parts does to a leaf, and that it never hides what it does not know."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import Completion, Draft, Field
from pipeline.steps.answer.spans import spans_of
from pipeline.steps.confidence import SUPPORT, score, tokens_of

VALUE = {"name": "Ann & Co", "n": 12, "empty": "", "tags": ["粥", None], "none": []}
TEXT = json.dumps(VALUE, ensure_ascii=False, separators=(",", ":"))


def completion(text: str = TEXT, unsure: dict[str, float] | None = None, **values: Any) -> Completion:
    """One token per character, each certain but for those within the pieces of text that are `unsure`."""
    logs = [0.0] * len(text)
    for piece, probability in (unsure or {}).items():
        at = text.index(piece)
        logs[at : at + len(piece)] = [math.log(probability)] * len(piece)
    rows = tuple({7: log, 8: -9.0} for log in logs)
    ends = tuple(range(1, len(text) + 1))
    base = Completion(text, "stop", True, token_ids=(7,) * len(text), logprobs=rows, token_ends=ends)
    return dataclasses.replace(base, **values)


def draft(value: Any = VALUE, *fields: Field, **values: Any) -> Draft:
    return Draft(value, parsed=True, fields=fields, **values)


def confidences(made: Draft) -> dict[str, float | None]:
    return {field.pointer: field.confidence for field in made.fields}


def test_without_logprobs_nothing_is_said_and_nothing_is_done() -> None:
    given_draft = draft(VALUE, Field("/name", match="exact"))
    assert score(given_draft, completion(logprobs=())) is given_draft
    assert score(Draft(), completion()) == Draft()


def test_a_certain_supported_leaf_has_one_and_the_record_the_mean() -> None:
    fields = [Field(pointer, match="exact") for pointer in ("/name", "/n", "/empty", "/tags/0", "/tags/1")]
    made = score(draft(VALUE, *fields), completion(unsure={"12": 0.5}))
    assert confidences(made) == {"/name": 1, "/n": 0.75, "/empty": 1, "/tags/0": 1, "/tags/1": 1}
    assert made.confidence == pytest.approx(4.75 / 5)
    assert made.value == VALUE


def test_structure_does_not_count_and_the_least_certain_token_does() -> None:
    everything = {field.pointer for field in score(draft(), completion()).fields}
    assert everything == set(spans_of(TEXT))
    unsure = completion(unsure={'{"name":"': 0.01, '","n":': 0.01, "& ": 0.2})
    assert confidences(score(draft(), unsure))["/name"] == pytest.approx(SUPPORT[""] * 0.6)
    assert confidences(score(draft(), unsure))["/n"] == SUPPORT[""]


def test_the_quotes_are_the_tokens_of_an_empty_text() -> None:
    made = score(draft(), completion(unsure={'""': 0.5}))
    assert confidences(made)["/empty"] == pytest.approx(SUPPORT[""] * 0.75)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (Field("/name", match="exact"), Field("/name")),
        (Field("/name"), Field("/name", match="none")),
        (Field("/name", match="fuzzy", score=0.9), Field("/name", match="fuzzy", score=0.6)),
        (Field("/name", match="normalised"), Field("/name", match="normalised", touched=True)),
    ],
)
def test_support_and_repairs_move_a_leaf(better: Field, worse: Field) -> None:
    high, low = (confidences(score(draft(VALUE, field), completion()))["/name"] for field in (better, worse))
    assert (high or 0) > (low or 0) > 0


def test_tokens_never_outweigh_support() -> None:
    supported = score(draft(VALUE, Field("/name", match="exact")), completion(unsure={"Ann": 1e-9}))
    invented = score(draft(VALUE, Field("/name", match="none")), completion())
    assert (confidences(supported)["/name"] or 0) > (confidences(invented)["/name"] or 0)


def test_a_salvaged_leaf_ranks_below_the_same_one_of_a_whole_answer() -> None:
    cut = completion('{"name":"Ann","total":12', finish_reason="length")
    made = score(draft({"name": "Ann"}, salvaged=True), cut)
    assert confidences(made) == {"/name": pytest.approx(SUPPORT[""] * 0.8)}


def test_a_value_that_the_answer_does_not_hold_has_none() -> None:
    made = score(draft({"name": "Bob", "n": 12}), completion('{"name":"Ann","n":12}'))
    assert confidences(made) == {"/name": 0.0, "/n": SUPPORT[""]}


def test_a_normalised_value_is_that_of_its_raw_text() -> None:
    field = Field("/day", match="normalised", raw='"29.2.24"')
    made = score(draft({"day": "2024-02-29"}, field), completion('{"day":"29.2.24"}', unsure={"29": 0.5}))
    assert confidences(made) == {"/day": 0.75}
    assert made.fields[0].raw == '"29.2.24"'


def test_json_in_prose_and_fences_is_found() -> None:
    text = f"Sure:\n```json\n{TEXT}\n```"
    assert None not in confidences(score(draft(), completion(text))).values()


@pytest.mark.parametrize(
    "made",
    [
        completion(token_ends=()),
        completion(token_ends=(1, 2)),
        completion(token_ids=()),
        completion(token_ids=(9,) * len(TEXT)),
        completion("not json", logprobs=({7: -0.1},), token_ends=(8,), token_ids=(7,)),
        completion(json.dumps(TEXT)),
        completion(logprobs=({7: math.nan},) * len(TEXT)),
        completion(logprobs=({7: -math.inf},) * len(TEXT)),
        completion(logprobs=({},) * len(TEXT)),
    ],
)
def test_odd_completions_give_no_confidence_or_one_in_range(made: Completion) -> None:
    found = score(draft(), made)
    assert found.confidence is None or 0 <= found.confidence <= 1
    assert found.value == VALUE
    if len(made.token_ends) != len(made.logprobs):
        assert found.confidence is None


def test_tokens_that_split_a_character_belong_to_its_value() -> None:
    # {"a":"粥"}: the structure in one token, the character in three, the rest in one
    ends = (6, 6, 6, 7, 9)
    assert tokens_of((6, 7), ends) == (1, 4)
    assert tokens_of((0, 6), ends) == (0, 1)
    assert tokens_of((6, 6), ends) == (0, 4)  # an empty text has its quotes


@given(st.lists(st.integers(0, 3), max_size=20), st.data())
def test_the_tokens_of_a_span_hold_all_of_it(lengths: list[int], data: Any) -> None:
    ends = tuple(sum(lengths[: number + 1]) for number in range(len(lengths)))
    size = ends[-1] if ends else 0
    start = data.draw(st.integers(0, size))
    end = data.draw(st.integers(start, size))
    if start == end:
        return
    first, after = tokens_of((start, end), ends)
    assert (ends[first - 1] if first else 0) <= start < end <= ends[after - 1]
    held = [number for number in range(len(ends)) if max(start, (0, *ends)[number]) < min(end, ends[number])]
    assert set(held) <= set(range(first, after))


def test_a_long_key_above_many_leaves_costs_no_memory() -> None:
    value = {"k" * 400_000: [1] * 100_000}
    text = json.dumps(value)
    started = time.process_time()
    made = score(draft(value), Completion(text, "stop", True, logprobs=({1: 0.0},), token_ends=(len(text),)))
    assert time.process_time() - started < 3
    assert made.confidence is None
