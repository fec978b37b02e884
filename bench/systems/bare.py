"""Bare vLLM: one call of `vllm.LLM.chat` with all documents. What a script without a pipeline does."""

from __future__ import annotations

import sys
import time
from typing import Any

from bench.systems.measured import Measured, steady_rate
from bench.workload import ENGINE_SETTINGS, MAX_TOKENS, Item, Workload


def main(path: str) -> None:
    """Measure one round. Per-document completion times are the engine's own (`last_token_ts`)."""
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    work = Workload.load(path)
    # Statistics are on in AsyncLLM by default and off in LLM. The same for all, and the times are needed.
    llm = LLM(model=work.model, disable_log_stats=False, **ENGINE_SETTINGS)
    constraint = StructuredOutputsParams(json=work.transport)
    sampling = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS, structured_outputs=constraint)

    def chat(items: list[Item]) -> list[Any]:
        return list(llm.chat([item.messages() for item in items], sampling, use_tqdm=False))

    chat(work.warm)
    ready = time.time()
    outputs = chat(work.items)
    done = time.time()
    Measured(
        system="bare",
        documents=len(outputs),
        start_seconds=ready - work.started,
        total_seconds=done - ready,
        steady_rate=steady_rate([output.metrics.last_token_ts for output in outputs]),
        prompt_tokens=sum(len(output.prompt_token_ids) for output in outputs),
        output_tokens=sum(len(output.outputs[0].token_ids) for output in outputs),
        texts={item.id: output.outputs[0].text for item, output in zip(work.items, outputs, strict=True)},
        extra={"cached_tokens": sum(output.num_cached_tokens or 0 for output in outputs)},
    ).print()


if __name__ == "__main__":
    main(sys.argv[1])
