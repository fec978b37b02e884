"""What each layer adds on real documents: `python -m bench.layers [--json] [--documents N] [--sets …] [--model …]`.

Receipts, addresses and Chinese recipes through `pipeline.flow.extract` and one engine, each set twice: under the
constraint and without it. Rates stand with their denominators. With the defaults (24 documents of each set, two
attempts) about 10 minutes on 2 cores at 300 tokens a second, at most: most answers end before their limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.layer_rates import Watched, rates
from bench.layer_sets import SETS, Set, load
from pipeline.engines import Engine, build
from pipeline.errors import GristmillError, JobFileError
from pipeline.flow import extract
from pipeline.job import EngineConfig, ExtractConfig
from pipeline.jobfile import load_engine

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "serve_configs" / "cpu_embedded.yaml"
RESULT = ROOT / "bench" / "results" / "layers.json"
DOCUMENTS = 24
ATTEMPTS = 2
PATHS = {"constrained": True, "unconstrained": False}
CACHE_TARGET = 0.9
ROWS = (
    "first_pass_format",
    "format_after_repair",
    "first_pass_valid",
    "resolved_by_retry",
    "salvaged",
    "schema_valid",
    "semantic",
    "grounded_leaves",
    "gold_leaves",
    "cached_on_first",
    "cached_on_retries",
)


def settings(max_tokens: int, *, constrained: bool) -> ExtractConfig:
    """A job's settings: all at their defaults but for what is measured. Grounding is looked at and costs no status."""
    return ExtractConfig.model_validate(
        {
            "sampling": {"max_tokens": max_tokens, "constrained": constrained},
            "retry": {"max_attempts": ATTEMPTS},
            "policy": {"ground": "observe"},
        }
    )


async def measure(config: EngineConfig, sets: Sequence[Set]) -> dict[str, Any]:
    """Every set on both paths, one after the other, on one engine.

    Raises:
        GristmillError: the engine does not start, or dies.
    """
    started = time.monotonic()
    engine = build(config)
    try:
        await engine.start([one.plan for one in sets])
        found: dict[str, Any] = {"start_seconds": round(time.monotonic() - started, 1), "sets": {}}
        for one in sets:
            found["sets"][one.name] = {path: await run(engine, one, path, config.max_num_seqs) for path in PATHS}
        return found
    finally:
        await engine.close()


async def run(engine: Engine, documents: Set, path: str, sequences: int) -> dict[str, Any]:
    """One set on one path, as many documents in flight as an actor has."""
    config = settings(documents.max_tokens, constrained=PATHS[path])
    room = asyncio.Semaphore(2 * sequences)
    watched = [Watched(item) for item in documents.items]

    async def one(document: Watched) -> None:
        async with room:
            item = document.gold
            document.outcome = await extract(item.document, item.plan, engine, config, trace=document.note)

    started = time.monotonic()
    await asyncio.gather(*map(one, watched))
    found = rates(watched, time.monotonic() - started)
    print(f"{documents.name}, {path}: {found['seconds']} s, {found['statuses']}", file=sys.stderr, flush=True)
    return found


def table(sets: dict[str, Any]) -> str:
    """The rates as text, a column for each set and path."""
    columns = [(name, path, found) for name, paths in sets.items() for path, found in paths.items()]
    lines = [" " * 26 + "".join(f"{name[:16]:>22}" for name, _, _ in columns)]
    lines.append(" " * 26 + "".join(f"{path:>22}" for _, path, _ in columns))
    lines += [f"{row:26}" + "".join(f"{_shown(found[row]):>22}" for _, _, found in columns) for row in ROWS]
    for row in ("output_tokens_per_valid", "all_tokens_per_valid", "seconds"):
        lines.append(
            f"{row:26}" + "".join(f"{found[row] if found[row] is not None else '-':>22}" for *_, found in columns)
        )
    for status in ("valid", "degraded", "rejected"):
        lines.append(f"{status:26}" + "".join(f"{found['statuses'][status]:>22}" for *_, found in columns))
    sums = [[found["cached_on_retries"][key] for *_, found in columns] for key in ("count", "of")]
    if sum(sums[1]):
        share = sum(sums[0]) / sum(sums[1])
        verdict = "met" if share >= CACHE_TARGET else "MISSED"
        lines.append(f"prompt tokens from cache on retries, all together: {share:.1%} (target >= 90 %: {verdict})")
    return "\n".join(lines)


def _shown(rate: dict[str, Any]) -> str:
    return "-" if rate["rate"] is None else f"{rate['rate']:.1%} of {rate['of']}"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout instead of the table")
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.relative_to(ROOT)}")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="of each set, at most")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--engine", type=Path, default=ENGINE, help="an engine config, such as serve_configs/*.yaml")
    parser.add_argument("--model", help="instead of the engine config's: `embedded`, a directory, a hub name")
    parser.add_argument("--backend", choices=("xgrammar", "guidance"), default="xgrammar", help="for all sets")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
    asked = arguments(argv)
    load_before = round(os.getloadavg()[0], 2)
    try:
        config = load_engine(asked.engine)
        if config.engine == "recorded":
            raise JobFileError("a recording has no answers to other prompts: name an engine that decodes.")
        changed = {"backend": asked.backend, **({"model": asked.model} if asked.model else {})}
        config = config.model_copy(update=changed)
        sets = [load(name, asked.documents, asked.backend, compact=config.compact_json) for name in asked.sets]
        found = asyncio.run(measure(config, sets))
    except GristmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    described = machine.describe()
    result = {
        "benchmark": "layers",
        "machine": described,
        "settings": {
            "documents": {one.name: len(one.items) for one in sets},
            "max_tokens": {one.name: one.max_tokens for one in sets},
            "max_attempts": ATTEMPTS,
            "engine": config.engine,
            "model": os.path.basename(config.model),
            "backend": asked.backend,
            "max_num_seqs": config.max_num_seqs,
        },
        "load_before": load_before,
        **found,
    }
    if asked.save:
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1) if asked.json else f"{machine.sentence(described)}\n\n{table(found['sets'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
