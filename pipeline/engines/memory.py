"""Whether the machine has the memory that a vLLM engine on the CPU will take, asked before it takes minutes to fail."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.errors import ResourceError
from pipeline.job import VllmConfig

GIB = 1 << 30
OVERHEAD = 2 * GIB
"""What Python, torch and vLLM's two processes take beside weights and cache; measured 1.6-1.9 GiB with vLLM 0.32."""
DEFAULT_CACHE_GIB = 4.0


def check_memory(config: VllmConfig, model: str) -> None:
    """Compare weights plus KV cache plus overhead with what is free. Engines on GPUs manage their own memory.

    Raises:
        ResourceError: with the numbers and the setting to lower.
    """
    import psutil

    if config.num_gpus:
        return
    weights = sum(file.stat().st_size for file in Path(model).glob("*.safetensors")) if Path(model).is_dir() else 0
    cache = float(os.environ.get("VLLM_CPU_KVCACHE_SPACE", DEFAULT_CACHE_GIB)) * GIB
    needed, free = weights + cache + OVERHEAD, psutil.virtual_memory().available
    if needed > free:
        raise ResourceError(
            f"the engine needs about {needed / GIB:.1f} GiB ({weights / GIB:.1f} weights, {cache / GIB:.1f} KV cache, "
            f"{OVERHEAD / GIB:.1f} overhead) but {free / GIB:.1f} GiB are free. "
            "Lower VLLM_CPU_KVCACHE_SPACE in the engine config's `environment`, or `placement.actors`."
        )
