"""What is made of vLLM's output, without vLLM: prompts that were cut, tokens that are aligned."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.engines.vllm import VllmEngine
from pipeline.records import Sampling


@pytest.fixture
def engine(chat: Any) -> VllmEngine:
    """One that has not been started: only what its answers are made with."""
    made = VllmEngine.__new__(VllmEngine)
    made._proven, made._chat, made.fingerprint = True, chat, "vllm@test"
    made._tokenizing = ThreadPoolExecutor(1)
    return made


def output(chat: Any, text: str, prompt: list[int]) -> Any:
    ids = [*chat.text_ids(text), chat.tokenizer.eos_token_id]
    rows = [{id_: SimpleNamespace(logprob=-0.5)} for id_ in ids]
    choice = SimpleNamespace(text=text, token_ids=ids, logprobs=rows, finish_reason="stop")
    return SimpleNamespace(outputs=[choice], metrics=None, prompt_token_ids=prompt, num_cached_tokens=None)


@pytest.mark.asyncio
async def test_tokens_are_aligned_where_they_are_asked_for(engine: VllmEngine, chat: Any, plan_of: Any) -> None:
    text, prompt = '{"dish":"桂圆粥"}', chat.text_ids("a prompt")
    made = output(chat, text, prompt)
    asked = Sampling(99, logprobs=0, token_ids=True)
    answer = await engine._answer(made, prompt, plan_of(), asked, 0.1)
    assert (answer.text, answer.error, answer.constrained) == (text, "", True)
    assert len(answer.token_ends) == len(answer.token_ids) == len(answer.logprobs)
    assert answer.token_ends[-2:] == (len(text), len(text))
    assert (await engine._answer(made, prompt, plan_of(), Sampling(99), 0.1)).token_ends == ()


@pytest.mark.asyncio
@pytest.mark.parametrize("read", [0, 1])
async def test_a_prompt_of_which_less_was_read_gives_no_answer(
    engine: VllmEngine, chat: Any, plan_of: Any, read: int
) -> None:
    prompt = chat.text_ids("a prompt of some tokens")
    answer = await engine._answer(output(chat, "{}", prompt[:read]), prompt, plan_of(), Sampling(99), 0.1)
    assert (answer.text, answer.error, answer.finish_reason) == ("", "prompt_truncated", "error")
    assert f"read {read} of the {len(prompt)}" in answer.detail
