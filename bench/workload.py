"""What the three systems of `bench.overhead` are given: one file that fixes documents, constraint and settings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.documents import SCHEMA, SCHEMAS, receipts
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import load_schema
from pipeline.steps.prompt import render, system_prompt

WARM_DOCUMENTS = 16
"""A batch of ray.data.llm: its bundler would make a smaller one wait for documents that are held back."""
BACKEND = "xgrammar"
MAX_TOKENS = 256
CACHE_GIB = "2"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_CPU_KVCACHE_SPACE": CACHE_GIB,
    "TOKENIZERS_PARALLELISM": "false",
}
"""Of every system's process; the engine's cores are left to vLLM's own binding."""

ENGINE_SETTINGS: dict[str, Any] = {
    "dtype": "bfloat16",
    "max_model_len": 8192,
    "max_num_seqs": 32,
    "enforce_eager": True,
    # Stated because vLLM's defaults differ by entry point.
    "max_num_batched_tokens": 4096,
    "structured_outputs_config": {"backend": BACKEND, "disable_any_whitespace": True},
}


@dataclass(frozen=True, slots=True)
class Item:
    """One document as every system sees it: its text, and the messages that the pipeline renders from it."""

    id: str
    text: str
    system: str
    user: str

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class Workload:
    """`started` is set by whoever starts a system: seconds of time.time() when its process began."""

    model: str
    transport: str
    warm: list[Item]
    items: list[Item]
    started: float = 0.0

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Workload:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        both = {name: [Item(**item) for item in data[name]] for name in ("warm", "items")}
        return cls(**{**data, **both})


def plan() -> DecodingPlan:
    """The plan of receipt@1 that prompts and constraint are taken from."""
    schema = load_schema(SCHEMAS, SCHEMA)
    return build_plan(schema, system_prompt(schema), backend=BACKEND, compact_json=True)


def make(documents: int) -> Workload:
    """Documents to measure with, and others to warm up with."""
    from pipeline.engines.models import resolve

    chosen = plan()
    every = [_item(receipt.id, receipt.text, chosen) for receipt in receipts(documents + WARM_DOCUMENTS)]
    return Workload(resolve("embedded"), chosen.transport, every[documents:], every[:documents])


def _item(key: str, text: str, chosen: DecodingPlan) -> Item:
    prompt = render(text, chosen)
    return Item(key, text, prompt.system, prompt.user)
