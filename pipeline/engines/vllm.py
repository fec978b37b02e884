"""vLLM in this process: AsyncLLM under a JSON Schema constraint, one request per prompt.

Written against vLLM 0.32. Facts it rests on: `VLLMValidationError` from `generate` is about the request (its schema
or its length), never about the engine; `EngineDeadError` is final; a grammar that fails inside the core ends that
request with finish reason `error`; `metrics.scheduled_ts - queued_ts` holds the wait for the grammar; `logprobs` are
taken behind the grammar's mask and before the temperature, `prompt_logprobs` without a mask.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pipeline.engines import models
from pipeline.engines.alignment import token_ends
from pipeline.engines.audit import SHARE, Auditor, most_read
from pipeline.engines.blanks import Blanks
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import backend_of
from pipeline.engines.memory import check_memory
from pipeline.engines.startup import prove_and_warm
from pipeline.engines.vllm_scores import can_force, forced, gives_scores, read
from pipeline.engines.vllm_start import check_arguments, start_vllm
from pipeline.engines.vocabulary import Vocabulary
from pipeline.errors import EngineError
from pipeline.job import VllmConfig
from pipeline.records import Completion, FinishReason, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
"""Set unless the environment or the engine config says otherwise: a batch job fetches nothing while it runs."""


class VllmEngine:
    """One AsyncLLM. Construction starts it (tens of seconds); `start` proves the constraint and warms the plans."""

    def __init__(self, config: VllmConfig, *, constrained: bool = True) -> None:
        """Raises EngineError if the model is missing or vLLM does not start, ResourceError if memory is short,
        JobFileError if `engine_args` names what has a key of its own."""
        check_arguments(config)
        for name, value in (ENVIRONMENT | config.environment).items():
            os.environ.setdefault(name, value)
        path = models.resolve(config.model)
        check_memory(config, path)
        self._config = config
        self._constrained = constrained
        self._proven = False
        self._moved = float("-inf")
        self._llm = start_vllm(config, path, self._move)
        self._chat = ChatTokenizer(path)
        self._auditor = self._made_auditor(config)
        # One thread: Hugging Face tokenizers are not safe to share, and a long document must not stop the loop.
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix="tokenize")
        import vllm

        self.fingerprint = f"vllm@{vllm.__version__}:{os.path.basename(path)}:{backend_of(config.backend)}"

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        await prove_and_warm(self, plans, constrained=self._constrained)
        self._proven = self._constrained

    async def close(self) -> None:
        self._tokenizing.shutdown(wait=False)
        self._llm.shutdown()

    def progress(self) -> float:
        """When the core last made tokens (`time.monotonic`)."""
        return self._moved

    def _move(self) -> None:
        self._moved = time.monotonic()

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        started = time.monotonic()
        if sampling.audit:
            sampling = replace(sampling, token_ids=True, logprobs=sampling.logprobs or 0)
        limit = self._config.max_model_len
        if self._chat.surely_exceeds(prompt, limit):
            size = len(prompt.system) + len(prompt.user)
            detail = f"prompt of {size} characters cannot fit the context of {limit} tokens"
            return self._failed(plan, "prompt_too_long", detail, 0)
        encode = partial(self._chat.encode, prompt)
        tokens = await asyncio.get_running_loop().run_in_executor(self._tokenizing, encode)
        if len(tokens) + sampling.max_tokens > limit:
            detail = (
                f"prompt of {len(tokens)} tokens plus an answer of up to {sampling.max_tokens} "
                f"exceed the context of {limit}"
            )
            return self._failed(plan, "prompt_too_long", detail, len(tokens))
        try:
            output = await self._request(tokens, plan, sampling)
        except VLLMClientError as error:
            return self._failed(plan, "schema_refused", str(error), len(tokens))
        except EngineDeadError as error:
            raise EngineError(f"the vLLM engine died: {error}. Run the same command to continue.") from error
        except Exception as error:  # EngineGenerateError, a full queue, …: this request failed, the engine lives
            return self._failed(plan, "engine_failed", repr(error.__cause__ or error), len(tokens))
        completion = await self._answer(output, tokens, plan, sampling, time.monotonic() - started)
        if not sampling.audit or completion.error or completion.finish_reason == "abort":
            return completion
        if self._auditor is None:
            return replace(completion, audit="unavailable")
        return await self._auditor.audit(tokens, completion, sampling.audit)

    async def _answer(
        self, output: Any, prompt: list[int], plan: DecodingPlan, sampling: Sampling, seconds: float
    ) -> Completion:
        """What an engine's output says of a prompt that was sent, aligned with its tokens if they are asked for."""
        read = len(output.prompt_token_ids or ())
        if read < len(prompt):
            detail = f"the engine read {read} of the {len(prompt)} prompt tokens that it was sent"
            return self._failed(plan, "prompt_truncated", detail, read)
        completion = self._completion(output, plan, sampling, seconds)
        if not sampling.token_ids and sampling.logprobs is None:
            return completion
        align = partial(token_ends, self._chat.tokenizer, output.outputs[0].token_ids, completion.text, prompt)
        ends = await asyncio.get_running_loop().run_in_executor(self._tokenizing, align)
        return replace(completion, token_ends=ends)

    async def _request(self, tokens: list[int], plan: DecodingPlan, sampling: Sampling) -> Any:
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        constraint = StructuredOutputsParams(json=plan.transport) if sampling.constrained else None
        params = SamplingParams(
            temperature=sampling.temperature,
            seed=sampling.seed if sampling.temperature > 0 else None,
            max_tokens=sampling.max_tokens,
            logprobs=sampling.logprobs,
            structured_outputs=constraint,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        last = None
        async for output in self._llm.generate(TokensPrompt(prompt_token_ids=tokens), params, uuid.uuid4().hex):
            last = output
        return last

    def _made_auditor(self, config: VllmConfig) -> Auditor | None:
        """None if this engine's log probabilities are not those of the model."""
        if not gives_scores(config):
            return None
        size, context = int(self._llm.model_config.get_vocab_size()), config.max_model_len
        blanks = partial(self._blanks, size) if config.compact_json else None
        if can_force(config):
            return Auditor(partial(forced, self._llm), blanks, context, at_once=1 + config.max_num_seqs // SHARE)
        return Auditor(partial(read, self._llm), blanks, min(context - 1, most_read(size)))

    async def _blanks(self, size: int) -> Blanks:
        """Of the vocabulary as the grammar library reads it: every tokenizer has notations of its own."""
        vocabulary = Vocabulary(self._chat.tokenizer, size)
        info = await asyncio.get_running_loop().run_in_executor(self._tokenizing, lambda: vocabulary.xgrammar)
        control = self._chat.control_ids
        return Blanks([b"" if id_ in control else text for id_, text in enumerate(info.decoded_vocab)])

    def _completion(self, output: Any, plan: DecodingPlan, sampling: Sampling, seconds: float) -> Completion:
        choice, metrics = output.outputs[0], output.metrics
        logprobs = tuple({token: entry.logprob for token, entry in row.items()} for row in choice.logprobs or ())
        reason = cast(FinishReason, choice.finish_reason)
        return Completion(
            text=choice.text,
            finish_reason=reason,
            constrained=sampling.constrained and self._proven,
            engine=self.fingerprint,
            plan_digest=plan.digest,
            prompt_tokens=len(output.prompt_token_ids),
            cached_tokens=output.num_cached_tokens or 0,
            output_tokens=len(choice.token_ids),
            queue_seconds=max(0.0, metrics.scheduled_ts - metrics.queued_ts) if metrics else 0.0,
            seconds=seconds,
            error="engine_failed" if reason == "error" else "",
            detail="the engine ended the request with an error" if reason == "error" else "",
            token_ids=tuple(choice.token_ids) if sampling.token_ids else (),
            logprobs=logprobs,
        )

    def _failed(self, plan: DecodingPlan, error: str, detail: str, prompt_tokens: int) -> Completion:
        return Completion(
            text="",
            finish_reason="error",
            constrained=False,
            engine=self.fingerprint,
            plan_digest=plan.digest,
            prompt_tokens=prompt_tokens,
            error=error,
            detail=detail,
        )
