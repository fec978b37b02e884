"""The jobs whose processes are killed, and their documents."""

from __future__ import annotations

import json
import random
from typing import Any

from bench.documents import ROOT, SCHEMAS

SAMPLES = ROOT / "jobs" / "samples"
PACKAGE = "# pkg-{n}\n\nA small library, number {n}. Licence MIT. Needs Python 3.{minor}.\n"
TEXT = 200
FAULTS = [{"kind": "truncate", "share": 0.05}, {"kind": "prose", "share": 0.05}, {"kind": "empty", "share": 0.02}]
"""So that all statuses occur. They are drawn by the prompt, so a repeated attempt has the same."""

SAVE_SECONDS = 2.0
"""Finished documents are saved so often: jobs of these benchmarks are too short for the default."""


def documents(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Documents of the three shipped schemas in random order, every text another one."""
    samples = [
        json.loads(line)
        for name in ("receipts.jsonl", "advisories.jsonl")
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    ]
    made: list[dict[str, Any]] = []
    for number in range(count):
        turn, one = divmod(number // 2, len(samples))
        if number % 2:
            text = PACKAGE.format(n=number, minor=number % 9 + 5)
            made.append({"id": f"pkg-{number}", "schema": "package@1", "text": text})
        else:
            row = samples[one]
            text = f"{row['text'][:TEXT]}\nNo. {turn}"
            made.append({"id": f"{row['id']}-{turn}", "schema": row["schema"], "text": text})
    random.Random(seed).shuffle(made)
    return made


def job(placement: str, engine: str) -> dict[str, Any]:
    """A job file's content, beside an input `input.jsonl`."""
    placements: dict[str, dict[str, Any]] = {
        "local": {"kind": "local", "actors": 1 if engine == "vllm" else 2},
        "actors": {"kind": "actors", "min_engines": 1, "max_engines": 2, "cpu_actors": 2},
    }
    engines: dict[str, dict[str, Any]] = {
        "sampler": {"engine": "sampler", "seed": 3, "max_num_seqs": 16, "faults": FAULTS},
        "vllm": {
            "engine": "vllm",
            "max_model_len": 4096,
            "max_num_seqs": 16,
            "dtype": "bfloat16",
            "engine_args": {"enforce_eager": True},
            "environment": {"VLLM_CPU_KVCACHE_SPACE": "2"},
        },
    }
    return {
        "name": "chaos",
        "input": {"path": "input.jsonl", "schema_column": "schema"},
        "output": "out",
        "schemas": str(SCHEMAS),
        "engine": engines[engine],
        "placement": placements[placement],
        "sampling": {"max_tokens": 400 if engine == "sampler" else 160},
        "safety": {"save_seconds": SAVE_SECONDS, "stall_seconds": 120, "drain_seconds": 5},
        # Random records break rules and small models are wrong: neither is what is looked at.
        "stop_if": {"truncation": None, "first_pass": None, "rejection": None},
    }
