"""Whether confidence ranks right values above wrong ones: `python -m bench.confidence [--json] [--model M]`.

Real vLLM under the constraint with logprobs, on real documents with gold. Several formulas are compared on one half of
the documents of each set; the other half says what the shipped one is worth, beside a constant (0.5) and beside
knowing only which field a value is of.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.formulas import Leaf, records, report
from bench.gold import SETS, Gold, gold
from pipeline.engines import Engine, build
from pipeline.errors import GristmillError
from pipeline.flow import extract
from pipeline.job import EMBEDDED_MODEL, ExtractConfig, VllmConfig
from pipeline.records import Completion, Field, Prompt, Sampling
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.confidence import certainties, leaves_of

DOCUMENTS = 60
MAX_TOKENS = 320
CONFIG = ExtractConfig.model_validate(
    {
        "sampling": {"max_tokens": MAX_TOKENS},
        "retry": {"max_attempts": 1},
        "policy": {"confidence": True, "ground": "observe"},
    }
)


class WithLogprobs:
    """An engine that is always asked for what confidence needs, whatever the retry policy asks for."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        return await self._inner.generate(prompt, plan, dataclasses.replace(sampling, logprobs=0, token_ids=True))

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        await self._inner.start(plans)

    async def close(self) -> None:
        await self._inner.close()


async def observe(model: str, documents: int) -> list[Leaf]:
    """Extract all sets with one engine; the leaves of every record that was parsed."""
    sets = {name: gold(name, documents) for name in SETS}
    settings = {"enforce_eager": True, "max_num_batched_tokens": 4096}
    config = VllmConfig(
        engine="vllm",
        model=model,
        backend="xgrammar",
        max_model_len=4096,
        dtype="bfloat16",
        engine_args=settings,
        environment={"VLLM_CPU_KVCACHE_SPACE": "2"},
    )
    engine = WithLogprobs(build(config))
    room = asyncio.Semaphore(2 * config.max_num_seqs)

    async def one(name: str, item: Gold) -> list[Leaf]:
        async with room:
            return await leaves(name, item, engine)

    try:
        plans = {item.plan.name: item.plan for items in sets.values() for item in items}
        await engine.start(list(plans.values()))
        found = await asyncio.gather(*(one(name, item) for name, items in sets.items() for item in items))
        return [leaf for some in found for leaf in some]
    finally:
        await engine.close()


async def leaves(name: str, item: Gold, engine: Engine) -> list[Leaf]:
    """The leaves of one document's answer; none if it was not parsed."""
    seen: dict[str, Any] = {}
    await extract(item.document, item.plan, engine, CONFIG, trace=seen.__setitem__)
    draft, completion = seen.get("confidence"), seen.get("generate")
    if draft is None or completion is None or not draft.parsed:
        return []
    known = {field.pointer: field for field in draft.fields}
    values = leaves_of(draft.value)
    half = int(digest(item.document.id), 16) % 2
    found = []
    for pointer, said in certainties(completion, values, known).items():
        right = item.is_right(pointer, values[pointer])
        if right is None:
            continue
        field = known.get(pointer, Field(pointer))
        facts = (said.tokens, said.mean, said.lowest, field.match, field.score or 0.0, field.touched)
        null, confidence = values[pointer] is None, field.confidence or 0.0
        found.append(Leaf(name, item.document.id, half, pointer, null, right, *facts, confidence))
    return found


def shown(sets: dict[str, Any], ranks: dict[str, Any]) -> str:
    """The tables for a terminal."""
    lines = []
    for name, numbers in sets.items():
        counts = next(iter(numbers["auroc"].values()))
        sizes = ", ".join(f"{one['right']} right {one['wrong']} wrong" for one in counts)
        lines += ["", f"{name} (choosing | reporting: {sizes})", f"  {'AUROC':20} {'choosing half':24} reporting half"]
        for label, halves in numbers["auroc"].items():
            lines.append(f"  {label:20} " + " ".join(f"{_interval(half):24}" for half in halves))
        for one in numbers["reliability"]:
            lines.append(f"  shipped {one['low']:.3f}-{one['high']:.3f}: {one['right']:.1%} of {one['answers']} right")
    lines += ["", "records, by their leaves' confidence (right: a larger share of right leaves than the set's median)"]
    for name, ways in ranks.items():
        lines.append(f"  {name:24} " + "  ".join(f"{label} {_interval(one)}" for label, one in ways.items()))
    return "\n".join(lines)


def _interval(found: dict[str, Any]) -> str:
    return "n/a" if found["value"] is None else f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.confidence", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--model", default=EMBEDDED_MODEL, help="`embedded`, or the directory of a model")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="of each set, at most")
    parser.add_argument("--observed", type=Path, help="where to keep the observed values, or to read them if it exists")
    asked = parser.parse_args()
    started = time.monotonic()
    try:
        if asked.observed and asked.observed.exists():
            lines = asked.observed.read_text(encoding="utf-8").splitlines()
            found = [Leaf(**json.loads(line)) for line in lines]
        else:
            found = asyncio.run(observe(asked.model, asked.documents))
            if asked.observed:
                kept = "".join(json.dumps(dataclasses.asdict(leaf)) + "\n" for leaf in found)
                asked.observed.write_text(kept, encoding="utf-8")
    except GristmillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    described, seconds = machine.describe(), round(time.monotonic() - started, 1)
    sets, ranks = report(found), records(found)
    if asked.json:
        whole = {"machine": described, "model": asked.model, "seconds": seconds, "sets": sets, "records": ranks}
        print(json.dumps(whole, indent=1))
    else:
        print(f"{machine.sentence(described)}\n{len(found)} values in {seconds} s{shown(sets, ranks)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
