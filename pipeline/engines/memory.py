"""Whether the machine has the memory that a vLLM engine on the CPU will take, asked before it takes minutes to fail."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from pipeline.errors import ResourceError
from pipeline.job import VllmConfig

GIB = 1 << 30
OVERHEAD = 5 * GIB // 2
"""What vLLM's three processes take beside weights and cache. An estimate: one look at a running engine (0.32, embedded
model, 2 GiB cache) added up to 4.6 GiB resident, shared pages counted more than once, so 2.4 GiB besides."""
DEFAULT_CACHE_GIB = 4.0
CACHE = "VLLM_CPU_KVCACHE_SPACE"

_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def check_memory(config: VllmConfig, model: str) -> None:
    """Compare weights plus KV cache plus overhead with what is free. Engines on GPUs manage their own memory.

    Raises:
        ResourceError: with the numbers and the setting to lower, or that setting is not a number.
    """
    import psutil

    if config.num_gpus:
        return
    weights = sum(file.stat().st_size for file in Path(model).glob("*.safetensors")) if Path(model).is_dir() else 0
    cache = _cache_gib() * GIB
    needed, free = weights + cache + OVERHEAD, min(psutil.virtual_memory().available, cgroup_free())
    if needed > free:
        raise ResourceError(
            f"the engine needs about {needed / GIB:.1f} GiB ({weights / GIB:.1f} weights, {cache / GIB:.1f} KV cache, "
            f"{OVERHEAD / GIB:.1f} overhead) but {free / GIB:.1f} GiB are free. "
            f"Lower {CACHE} in the engine config's `environment`, or `placement.actors`."
        )


def cgroup_free(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Bytes that this process's control groups (a container's, say) still allow; infinite if none has a limit."""
    free = math.inf
    try:
        groups = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return free
    for _, controllers, path in groups:
        if controllers and "memory" not in controllers.split(","):
            continue
        base, names = (root / "memory", _V1) if controllers else (root, _V2)
        folder = base / path.lstrip("/")
        # A container may not see its own path, only the top, and any group on the way may have a limit.
        for group in (folder, *folder.parents):
            free = min(free, _left(group, names))
            if group == base:
                break
    return free


def _left(group: Path, names: tuple[str, str, str]) -> float:
    """What one group still allows. File pages that nobody uses are counted in, since they give way."""
    limit, used, cached = names
    try:
        pages = re.search(rf"^{cached} (\d+)$", (group / "memory.stat").read_text(encoding="utf-8"), re.MULTILINE)
        left = int((group / limit).read_text()) - int((group / used).read_text()) + int(pages[1] if pages else 0)
    except (OSError, ValueError):  # no such group, or no limit ("max")
        return math.inf
    return max(left, 0)


def _cache_gib() -> float:
    """What vLLM will take: an empty setting is its default, and it reads whole GiB only."""
    setting = os.environ.get(CACHE, "").strip()
    if not setting:
        return DEFAULT_CACHE_GIB
    if not re.fullmatch("[0-9]{1,9}", setting):
        raise ResourceError(
            f"{CACHE} is {setting[:80]!r}, not a whole number of GiB. "
            'Set it in the engine config\'s `environment`, such as "2", or in the shell if that exports it.'
        )
    return float(setting)
