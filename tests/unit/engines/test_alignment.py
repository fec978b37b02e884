"""Where each token's text ends, with the embedded model's tokenizer alone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.alignment import token_ends

TEXTS = [
    '{"dish":"桂圆红枣粥","n":12}',
    '{"a":"é 😀 e\u0301 ﷽ \u200d👩\u200d👧"}',
    '{"company":"Ann & Co","total":19.9}',
    "",
]


def stepwise(chat: Any, ids: list[int]) -> list[str]:
    """What is decoded of every prefix of the tokens, without the characters that are not finished."""
    return [chat.decode(ids[: number + 1]).rstrip("\ufffd") for number in range(len(ids))]


@pytest.mark.parametrize("text", TEXTS)
def test_each_end_is_what_is_decoded_up_to_there(chat: Any, text: str) -> None:
    ids = chat.text_ids(text)
    ends = token_ends(chat.tokenizer, ids, text)
    assert list(ends) == [len(decoded) for decoded in stepwise(chat, ids)]
    assert len(ends) == len(ids)


def test_tokens_that_split_a_character_end_where_it_begins_and_the_last_takes_it(chat: Any) -> None:
    ids = chat.text_ids("é粥")
    ends = token_ends(chat.tokenizer, ids, "é粥")
    assert len(ids) > 2
    assert set(ends) == {0, 1, 2} or set(ends) == {1, 2}
    assert ends[-1] == 2


def test_the_end_token_adds_nothing(chat: Any) -> None:
    end = chat.tokenizer.eos_token_id
    for text in TEXTS[:3]:
        ids = [*chat.text_ids(text), end]
        ends = token_ends(chat.tokenizer, ids, text)
        assert ends[-2:] == (len(text), len(text))
    assert token_ends(chat.tokenizer, [end], "") == (0,)


def test_a_stop_token_that_is_text_need_not_show(chat: Any) -> None:
    """vLLM leaves the token that stopped an answer out of its text, whatever it is."""
    ids = chat.text_ids('{"a":1}\n')
    ends = token_ends(chat.tokenizer, ids, '{"a":1}')
    assert (len(ends), ends[-1]) == (len(ids), 7)


def test_a_character_that_was_cut_at_the_end_is_waited_for(chat: Any) -> None:
    ids = chat.text_ids("ab粥")[:-1]
    assert token_ends(chat.tokenizer, ids, "ab")[-1] == 2  # as vLLM gives it
    whole = chat.decode(ids)
    assert whole.startswith("ab\ufffd")
    assert token_ends(chat.tokenizer, ids, whole)[-1] == len(whole)  # as a whole decoding gives it


def test_the_prompt_before_changes_nothing_for_byte_level_tokens(chat: Any) -> None:
    text = TEXTS[0]
    ids, prompt = chat.text_ids(text), chat.text_ids("桂"[:1] + " before" * 50)
    assert token_ends(chat.tokenizer, ids, text, prompt) == token_ends(chat.tokenizer, ids, text)


def test_tokens_of_another_text_are_not_aligned(chat: Any) -> None:
    ids = chat.text_ids('{"a":1}')
    assert token_ends(chat.tokenizer, ids, '{"b":1}') == ()
    assert token_ends(chat.tokenizer, ids, '{"a":1} and more') == ()
    assert token_ends(chat.tokenizer, [], "") == ()


@settings(max_examples=60)
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_aligned(chat: Any, text: str) -> None:
    ids = chat.text_ids(text)
    decoded = chat.decode(ids)
    ends = token_ends(chat.tokenizer, ids, decoded)
    assert list(ends) == sorted(ends)
    assert ends == () if not ids else ends[-1] == len(decoded)


def test_random_tokens_are_aligned_with_whatever_they_decode_to(chat: Any) -> None:
    chosen = random.Random(1)
    for _ in range(200):
        ids = [chosen.randrange(len(chat.tokenizer)) for _ in range(30)]
        decoded = chat.decode(ids)
        ends = token_ends(chat.tokenizer, ids, decoded)
        assert len(ends) == 30
        assert ends[-1] == len(decoded)


@pytest.mark.asyncio
async def test_the_sampler_aligns_when_it_is_asked_to(either_engine: Any, plan_of: Any, ask: Any) -> None:
    answer = await ask(either_engine, plan_of(), logprobs=1, token_ids=True)
    assert json.loads(answer.text)
    assert len(answer.token_ends) == len(answer.token_ids) == len(answer.logprobs) == answer.output_tokens
    assert answer.token_ends[-1] == len(answer.text)
    assert (await ask(either_engine, plan_of())).token_ends == ()
