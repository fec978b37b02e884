"""What the constraint takes from the model, by field: `python -m bench.clipped [--save] [--documents N]`.

Real vLLM with the embedded model, the demo's schemas and documents, every first answer audited (docs/clipped-mass.md).
The arms differ in one thing each: the schema in the prompt, the order of fields, an enum. About five minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.clipped.arms import BACKEND, Arm, arms
from bench.documents import ROOT
from pipeline.engines import Engine, build
from pipeline.engines.audit import SHARE, WAITING
from pipeline.errors import GristmillError
from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.jobfile import load_engine
from pipeline.observe.paths import starred
from pipeline.records import Outcome

RESULTS = ROOT / "bench" / "results" / "clipped.json"
DOCUMENTS = 10
CONFIG = ExtractConfig.model_validate(
    {
        "sampling": {"max_tokens": 192},
        "retry": {"max_attempts": 1, "deadline_seconds": 600},
        "policy": {"ground": "off"},
        "audit": {"fraction": 1.0, "max_tokens": 4096},
    }
)
RESAMPLES = 2000
SEED = 7


async def observe(count: int) -> list[dict[str, Any]]:
    """All arms with one engine, one after the other."""
    chosen = arms(count)
    config = load_engine(ROOT / "serve_configs" / "cpu_embedded.yaml").model_copy(update={"backend": BACKEND})
    engine = build(config)
    try:
        await engine.start([arm.plan for arm in chosen])
        room = 1 + config.max_num_seqs // SHARE + WAITING  # more would be answered `busy`
        return [await of_arm(arm, engine, asyncio.Semaphore(room)) for arm in chosen]
    finally:
        await engine.close()


async def of_arm(arm: Arm, engine: Engine, room: asyncio.Semaphore) -> dict[str, Any]:
    async def one(document: Any) -> Outcome:
        async with room:
            return await extract(document, arm.plan, engine, CONFIG)

    began = time.monotonic()
    outcomes = await asyncio.gather(*map(one, arm.documents))
    found = {
        "arm": arm.name,
        "schema": arm.schema,
        "documents": len(outcomes),
        "seconds": round(time.monotonic() - began, 1),
        "statuses": Counter(outcome.status for outcome in outcomes),
        "audits": Counter(outcome.audit for outcome in outcomes),
        "cut": sum(outcome.attempts[0].finish_reason == "length" for outcome in outcomes),
        "places": places_of(outcomes),
    }
    print(f"{arm.schema} {arm.name}: {found['seconds']} s, {dict(found['audits'])}", file=sys.stderr)
    return found


def places_of(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """By place and part: tokens, mass a token, and mass a document with a 95 % interval over documents. An interval is
    as wide as the few documents make it; it says nothing of other models."""
    audited = [outcome for outcome in outcomes if outcome.audit == "done"]
    masses: dict[tuple[str, str], list[float]] = {}
    tokens: Counter[tuple[str, str]] = Counter()
    highest: dict[tuple[str, str], float] = {}
    for number, outcome in enumerate(audited):
        for place in outcome.clipped:
            key = starred(place.pointer), place.part
            masses.setdefault(key, [0.0] * len(audited))[number] += place.mass
            tokens[key] += place.tokens
            highest[key] = max(highest.get(key, 0.0), place.highest)
    return [
        {
            "pointer": pointer,
            "part": part,
            "tokens": tokens[pointer, part],
            "mass_per_token": round(sum(found) / tokens[pointer, part], 4),
            "mass_per_document": round(sum(found) / len(found), 4),
            "interval": interval(found),
            "highest": round(highest[pointer, part], 4),
        }
        for (pointer, part), found in sorted(masses.items())
    ]


def interval(found: Sequence[float]) -> list[float]:
    """A 95 % bootstrap interval of the mean."""
    draw = random.Random(SEED)
    means = sorted(sum(draw.choices(found, k=len(found))) / len(found) for _ in range(RESAMPLES))
    return [round(means[int(0.025 * RESAMPLES)], 4), round(means[int(0.975 * RESAMPLES) - 1], 4)]


def shown(found: Sequence[dict[str, Any]]) -> str:
    lines = []
    for arm in found:
        lines += ["", f"{arm['schema']} {arm['arm']}: {arm['documents']} documents, audits {dict(arm['audits'])}"]
        for place in sorted(arm["places"], key=lambda place: -place["mass_per_document"]):
            low, high = place["interval"]
            lines.append(
                f"  {place['pointer'] or '(record)':18} {place['part']:9} {place['tokens']:5} tokens  "
                f"{place['mass_per_token']:.3f} a token  {place['mass_per_document']:.3f} [{low:.3f}, {high:.3f}] "
                f"a document  highest {place['highest']:.3f}"
            )
    return "\n".join(lines)


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.clipped", description=__doc__)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="of each schema, at most")
    asked = parser.parse_args()
    began = time.monotonic()
    try:
        found = asyncio.run(observe(asked.documents))
    except GristmillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    described = machine.describe()
    whole = {"machine": described, "seconds": round(time.monotonic() - began, 1), "backend": BACKEND, "arms": found}
    if asked.save:
        Path(RESULTS).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(f"{machine.sentence(described)}\n{whole['seconds']} s{shown(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
