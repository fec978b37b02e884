"""How likely vLLM finds the tokens of an answer without a constraint: two ways to ask, with the same meaning.

`forced` has the answer said again. It runs on the model runner of the CPU, which takes a logits processor of our own.
`read` sends the answer as a part of the prompt. Every engine can do that; it reads nothing from the prefix cache, and
must not (what it reads it does not score), and its runner may hold a row of the vocabulary for each token at once.

Both take the log probabilities before the temperature, as the answer's own are: `logprobs_mode` has to be vLLM's
default, `raw_logprobs`.
"""

from __future__ import annotations

import uuid
from typing import Any

from pipeline.engines.audit import Rows
from pipeline.errors import EngineError
from pipeline.job import VllmConfig

LIKELIEST = 20
"""So many of the likeliest tokens are looked at at every place, for blanks: the most that vLLM gives unless it is told
otherwise. Never 0, for which vLLM does not check that it can score a prompt, and its core may die of that."""

FORCED = "pipeline.engines.vllm_forced:Forced"
KEY = "gristmill_forced"
"""In `SamplingParams.extra_args`, for that class: the ids of the tokens to say, in order."""

_RIVALS = ("logits_processors", "speculative_config")
"""Arguments of vLLM beside which it takes no logits processor of ours."""


def gives_scores(config: VllmConfig) -> bool:
    """Whether an engine's log probabilities are those of the model itself."""
    return bool(config.engine_args.get("logprobs_mode", "raw_logprobs") == "raw_logprobs")


def can_force(config: VllmConfig) -> bool:
    """Whether an engine can be made to say an answer again."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu()) and not any(config.engine_args.get(name) for name in _RIVALS)


async def forced(llm: Any, prompt: list[int], answer: list[int]) -> Rows | None:
    """For each token of the answer, the log probabilities of it and of the likeliest ones; None if vLLM gives none.

    Raises:
        EngineError: it said something else.
    """
    settings = {"max_tokens": len(answer), "ignore_eos": True, "logprobs": LIKELIEST, "extra_args": {KEY: answer}}
    output = await _ask(llm, prompt, settings)
    if output is None:
        return None
    choice = output.outputs[0]
    if list(choice.token_ids) != answer or len(choice.logprobs) != len(answer):
        raise EngineError(f"vLLM said {len(choice.token_ids)} other tokens than the {len(answer)} that it had to")
    return _rows(choice.logprobs, 0, len(answer))


async def read(llm: Any, prompt: list[int], answer: list[int]) -> Rows | None:
    """As `forced`.

    Raises:
        EngineError: not all of it was scored.
    """
    output = await _ask(llm, [*prompt, *answer], {"max_tokens": 1, "prompt_logprobs": LIKELIEST})
    if output is None:
        return None
    scored, whole = len(output.prompt_logprobs or ()), len(prompt) + len(answer)
    if scored != whole:
        raise EngineError(f"vLLM scored {scored} of {whole} tokens")
    return _rows(output.prompt_logprobs, len(prompt), whole)


async def _ask(llm: Any, prompt: list[int], settings: dict[str, Any]) -> Any:
    """The output of a request without a constraint; None if this engine is set up so that it refuses it."""
    from vllm import SamplingParams
    from vllm.exceptions import VLLMClientError
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    kind = RequestOutputKind.FINAL_ONLY
    params = SamplingParams(temperature=0.0, detokenize=False, flat_logprobs=True, output_kind=kind, **settings)
    last = None
    try:
        async for output in llm.generate(TokensPrompt(prompt_token_ids=prompt), params, uuid.uuid4().hex):
            last = output
    except VLLMClientError:
        return None
    return last


def _rows(scored: Any, first: int, after: int) -> Rows:
    return [{id_: entry.logprob for id_, entry in scored[place].items()} for place in range(first, after)]
