"""vLLM in this process: AsyncLLM under a JSON Schema constraint, one request per prompt.

Written against vLLM 0.32. Facts it rests on: `VLLMValidationError` from `generate` is about the request (its schema
or its length), never about the engine; `EngineDeadError` is final; a grammar that fails inside the core ends that
request with finish reason `error`; `metrics.scheduled_ts - queued_ts` holds the wait for the grammar; a StatLogger is
called after every step of the core, with `iteration_stats` if the step made tokens, FINAL_ONLY or not.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pipeline.engines import models
from pipeline.engines.alignment import token_ends
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import backend_of
from pipeline.engines.memory import check_memory
from pipeline.engines.startup import prove_and_warm
from pipeline.errors import EngineError, JobFileError
from pipeline.job import VllmConfig
from pipeline.records import Completion, FinishReason, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
"""Set unless the environment or the engine config says otherwise: a batch job fetches nothing while it runs."""

OWN_ARGUMENTS = {"tensor_parallel_size": "tensor_parallel", "pipeline_parallel_size": "pipeline_parallel"}
"""Arguments of vLLM that decide how an engine is placed, so that the engine config has keys for them."""


class VllmEngine:
    """One AsyncLLM. Construction starts it (tens of seconds); `start` proves the constraint and warms the plans."""

    def __init__(self, config: VllmConfig) -> None:
        """Raises EngineError if the model is missing or vLLM does not start, ResourceError if memory is short,
        JobFileError if `engine_args` names what has a key of its own."""
        _check_arguments(config)
        for name, value in (ENVIRONMENT | config.environment).items():
            os.environ.setdefault(name, value)
        path = models.resolve(config.model)
        check_memory(config, path)
        self._config = config
        self._proven = False
        self._moved = float("-inf")
        self._llm = _start_vllm(config, path, self._move)
        self._chat = ChatTokenizer(path)
        # One thread: Hugging Face tokenizers are not safe to share, and a long document must not stop the loop.
        self._tokenizing = ThreadPoolExecutor(1, thread_name_prefix="tokenize")
        import vllm

        self.fingerprint = f"vllm@{vllm.__version__}:{os.path.basename(path)}:{backend_of(config.backend)}"

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        await prove_and_warm(self, plans)
        self._proven = True

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
        return await self._answer(output, tokens, plan, sampling, time.monotonic() - started)

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


def _check_arguments(config: VllmConfig) -> None:
    for argument, key in OWN_ARGUMENTS.items():
        if argument in config.engine_args:
            raise JobFileError(
                f"engine_args.{argument}: write `{key}: {config.engine_args[argument]}` in the engine config instead, "
                "so that the engine's placement knows of it."
            )


def _start_vllm(config: VllmConfig, path: str, moved: Callable[[], None]) -> Any:
    """`moved` is called when the core made tokens."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    structured = {"backend": backend_of(config.backend), "disable_any_whitespace": config.compact_json}
    try:
        arguments = AsyncEngineArgs(
            model=path,
            dtype=config.dtype,
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            tensor_parallel_size=config.tensor_parallel,
            pipeline_parallel_size=config.pipeline_parallel,
            structured_outputs_config=structured,
            **config.engine_args,
        )
        return AsyncLLM.from_engine_args(arguments, stat_loggers=[_mover(moved)])
    except Exception as error:  # vLLM raises whatever its parts raise; any of it means that there is no engine
        raise EngineError(
            f"vLLM did not start with model {config.model}: {type(error).__name__}: {error}\n"
            "--verbose shows vLLM's own log; `gristmill engines` shows what is installed."
        ) from error


def _mover(moved: Callable[[], None]) -> Any:
    """A factory of vLLM's loggers that tells of steps which made tokens; one that made none may be a wait for ever."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Mover(StatLoggerBase):  # type: ignore[misc]  # vLLM is not typed here
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None: ...

        def record(self, scheduler_stats: Any, iteration_stats: Any, *_more: Any, **_named: Any) -> None:
            if iteration_stats is not None:
                moved()

        def log_engine_initialized(self) -> None: ...

    return Mover
