"""Ray Data's own vLLM processor (`ray.data.llm`): messages in, generated text out, results to the driver.

Warm-up and measured documents must be rows of one dataset, since its actors live for one execution. So the first block
holds the warm-up, and `preprocess` holds every other block back until the last warm-up row has left the pipeline.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.systems.measured import Measured, steady_rate
from bench.workload import CACHE_GIB, ENGINE_SETTINGS, MAX_TOKENS, WARM_DOCUMENTS, Item, Workload

BATCH = WARM_DOCUMENTS
SMALL = 0.05
"""CPUs of the stages beside the engine, which otherwise take a whole one each and starve one another on two cores."""
POLL_SECONDS = 0.02

Map = Callable[[dict[str, Any]], dict[str, Any]]


def main(path: str) -> None:
    """Measure one round. The clock starts at the first measured request's arrival at the engine."""
    import ray
    from ray.data import DataContext

    work = Workload.load(path)
    ray.init(include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory(prefix="bench-ray-llm-") as folder:
        gate = Path(folder) / "warm"
        dataset = _processor(work, gate)(_dataset(work))
        rows: list[dict[str, Any]] = []
        for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
            rows += batch.to_pylist()
            done = time.time()
        ready = gate.stat().st_mtime
    _report(work, [row for row in rows if not row["warm"]], ready, done)
    ray.shutdown()


def _report(work: Workload, rows: list[dict[str, Any]], ready: float, done: float) -> None:
    first = min(row["arrived"] for row in rows)
    Measured(
        system="ray.data.llm",
        documents=len(rows),
        start_seconds=ready - work.started,
        total_seconds=done - first,
        steady_rate=steady_rate([row["last_token"] for row in rows]),
        prompt_tokens=sum(row["prompt_tokens"] for row in rows),
        output_tokens=sum(row["output_tokens"] for row in rows),
        texts={row["id"]: row["text"] for row in rows},
        extra={"seconds_before_first_request": first - ready},
    ).print()


def _dataset(work: Workload) -> Any:
    """One block per batch, the warm-up first."""
    import pyarrow as pa
    import ray.data

    batches = [work.warm] + [work.items[at : at + BATCH] for at in range(0, len(work.items), BATCH)]
    return ray.data.from_arrow([pa.Table.from_pylist([_row(work, item) for item in batch]) for batch in batches])


def _row(work: Workload, item: Item) -> dict[str, Any]:
    sampling = {"temperature": 0.0, "max_tokens": MAX_TOKENS, "structured_outputs": {"json": work.transport}}
    return {
        "id": item.id,
        "warm": item in work.warm,
        "messages": item.messages(),
        "sampling_params": sampling,
    }


def _processor(work: Workload, gate: Path) -> Any:
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    stage = {"num_cpus": SMALL}
    config = vLLMEngineProcessorConfig(
        model_source=work.model,
        engine_kwargs=dict(ENGINE_SETTINGS),
        runtime_env={"env_vars": {"VLLM_CPU_KVCACHE_SPACE": CACHE_GIB}},
        batch_size=BATCH,
        concurrency=1,
        placement_group_config={"bundles": [{"CPU": 1}]},  # without it the engine asks for a GPU
        chat_template_stage=stage,
        tokenize_stage=stage,
        # The engine hands out text already; the stage would make it a second time.
        detokenize_stage=False,
        log_engine_metrics=False,  # they go to a Prometheus exporter, which the others do not feed either
    )
    return build_processor(
        config,
        preprocess=_hold_back(gate),
        postprocess=_kept(gate),
        preprocess_map_kwargs=dict(stage),
        postprocess_map_kwargs=dict(stage),
    )


def _hold_back(gate: Path) -> Map:
    def preprocess(row: dict[str, Any]) -> dict[str, Any]:
        while not row["warm"] and not gate.exists():
            time.sleep(POLL_SECONDS)
        return row

    return preprocess


def _kept(gate: Path) -> Map:
    """What a result keeps; the first warm row to come out (they come out as one batch) opens the gate."""

    def postprocess(row: dict[str, Any]) -> dict[str, Any]:
        if row["warm"] and not gate.exists():
            gate.touch()
        return {
            "id": row["id"],
            "warm": row["warm"],
            "text": row["generated_text"],
            "prompt_tokens": row["num_input_tokens"],
            "output_tokens": row["num_generated_tokens"],
            "arrived": row["metrics"]["arrival_time"],
            "last_token": row["metrics"]["last_token_ts"],
        }

    return postprocess


if __name__ == "__main__":
    main(sys.argv[1])
