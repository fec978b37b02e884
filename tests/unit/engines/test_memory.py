"""What a vLLM engine on the CPU may take: the setting as users write it, the machine's memory, a container's limit."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pipeline.engines import memory
from pipeline.errors import ResourceError
from pipeline.job import VllmConfig

GIB = memory.GIB
BESIDE = memory.OVERHEAD / GIB
V1 = {"memory.limit_in_bytes": 6 * GIB, "memory.usage_in_bytes": 4 * GIB}


def check(monkeypatch: pytest.MonkeyPatch, setting: str | None, free: float, group: float = math.inf) -> str:
    """The refusal, or nothing."""
    if setting is None:
        monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)
    else:
        monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", setting)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free * GIB))
    monkeypatch.setattr(memory, "cgroup_free", lambda: group * GIB)
    try:
        memory.check_memory(VllmConfig(engine="vllm"), "no-such-directory")
    except ResourceError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("setting", "cache"), [(None, 4), ("", 4), ("  ", 4), ("2", 2), (" 7 ", 7)])
def test_the_cache_is_what_is_set_or_the_default(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, cache: int
) -> None:
    assert check(monkeypatch, setting, cache + BESIDE) == ""
    assert f"{cache}.0 KV cache" in check(monkeypatch, setting, cache + BESIDE - 0.1)


@pytest.mark.parametrize("setting", ["four", "4GiB", "2.5", "-1", "nan", "inf", "1e3", "٤", "1_0", "9" * 5000])
def test_a_cache_that_is_no_whole_number_is_told(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    message = check(monkeypatch, setting, 1000)
    assert f"VLLM_CPU_KVCACHE_SPACE is {setting[:80]!r}, not a whole number of GiB" in message
    assert len(message) < 300


def test_the_smaller_of_machine_and_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, "4", 100, 4 + BESIDE) == ""
    assert "5.0 GiB are free" in check(monkeypatch, "4", 100, 5)
    assert "5.0 GiB are free" in check(monkeypatch, "4", 5, 100)


def test_an_engine_on_a_gpu_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "four")
    memory.check_memory(VllmConfig(engine="vllm", num_gpus=1), "x")


def free(root: Path, own: str, groups: dict[str, dict[str, object]]) -> float:
    (root / "own").write_text(own)
    for folder, files in groups.items():
        (root / "fs" / folder).mkdir(parents=True, exist_ok=True)
        for name, value in {"memory.stat": "anon 5\ninactive_file 0\n", **files}.items():
            (root / "fs" / folder / name).write_text(f"{value}\n")
    return memory.cgroup_free(root / "fs", root / "own")


def v2(limit: object, used: int, **files: object) -> dict[str, object]:
    return {"memory.max": limit, "memory.current": used * GIB, **files}


def test_no_group_or_no_limit_is_no_bound(tmp_path: Path) -> None:
    assert memory.cgroup_free(tmp_path, tmp_path / "none") == math.inf
    assert free(tmp_path, "", {}) == math.inf
    assert free(tmp_path, "0::/a\n", {}) == math.inf
    assert free(tmp_path, "0::/a\n", {"a": v2("max", 1)}) == math.inf
    assert memory.cgroup_free() >= 0


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("0::/\n", {"": v2(8 * GIB, 3)}, 5),  # a container
        ("0::/a/b\n", {"": v2("max", 9), "a": v2(8 * GIB, 3), "a/b": v2(9 * GIB, 1)}, 5),
        ("0::/a/b\n", {"a": v2(8 * GIB, 3), "a/b": v2(2 * GIB, 1)}, 1),
        ("0::/not/seen\n", {"": v2(8 * GIB, 3)}, 5),
        ("0::/../..\n", {"": v2(8 * GIB, 3)}, 5),
        ("0::/\n", {"": v2(2 * GIB, 3)}, 0),
        ("0::/\n", {"": {**v2(8 * GIB, 7), "memory.stat": f"anon 1\ninactive_file {4 * GIB}"}}, 5),  # pages give way
        ("4:cpu,memory:/a\n0::/\n", {"memory/a": V1}, 2),
        ("4:memory:/seen/outside\n3:cpu:/a\n", {"memory": V1, "a": v2(GIB, 1)}, 2),
        ("4:memory:/\n", {"memory": {**V1, "memory.stat": f"total_inactive_file {GIB}"}}, 3),
    ],
)
def test_the_tightest_limit_on_the_way_counts(
    tmp_path: Path, own: str, groups: dict[str, dict[str, object]], expected: float
) -> None:
    assert free(tmp_path, own, groups) == expected * GIB
