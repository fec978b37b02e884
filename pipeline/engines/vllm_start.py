"""Starting vLLM: what of its arguments a config gives, and how to know that its core moves.

Written against vLLM 0.32, whose StatLogger is called after every step of the core, with `iteration_stats` if the step
made tokens, FINAL_ONLY or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.engines.grammar import backend_of
from pipeline.engines.vllm_scores import FORCED, can_force
from pipeline.errors import EngineError, JobFileError
from pipeline.job import VllmConfig

OWN_ARGUMENTS = {"tensor_parallel_size": "tensor_parallel", "pipeline_parallel_size": "pipeline_parallel"}
"""Arguments of vLLM that decide how an engine is placed, so that the engine config has keys for them."""


def check_arguments(config: VllmConfig) -> None:
    """Raises JobFileError if `engine_args` names what has a key of its own."""
    for argument, key in OWN_ARGUMENTS.items():
        if argument in config.engine_args:
            raise JobFileError(
                f"engine_args.{argument}: write `{key}: {config.engine_args[argument]}` in the engine config instead, "
                "so that the engine's placement knows of it."
            )


def start_vllm(config: VllmConfig, path: str, moved: Callable[[], None]) -> Any:
    """An AsyncLLM with the model in `path`; `moved` is called when the core made tokens.

    Raises:
        EngineError: it does not start.
    """
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
            **({"logits_processors": [FORCED]} if can_force(config) else {}),
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
