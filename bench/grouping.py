"""What it is worth to keep documents of a schema together: two engines, 1 to 64 schemas, few to many requests at once.

Grouped: documents schema by schema, as units are ordered, through a PoolEngine with its affinity. Shuffled: the same
documents in random order, each to the engine with the fewest requests. The engines are samplers in one process, with a
fixed time per token; nothing is warmed, so that the compiles are those that the order causes. A second part measures
how late the event loop of an engine's own process is under full load.

`python -m bench.grouping --json bench/results/grouping.json`; `--documents 128 --level medium` shows that it runs
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench import grouping_lag, machine
from bench.grouping_parts import Item, LeastLoaded, Measured, Run, documents, plans
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.models import resolve
from pipeline.engines.pool import PoolEngine
from pipeline.engines.sampler import SamplerEngine
from pipeline.job import SamplerConfig
from pipeline.records import Sampling

ENGINES = 2
SEQUENCES = 32
LEVELS = {"low": 8, "medium": 32, "high": 2 * SEQUENCES * ENGINES}
"""Requests in flight over both engines. The highest is what a job keeps: twice what the engines decode at a time."""
SCHEMAS = (1, 8, 64)
CACHES: tuple[int | None, ...] = (None, 32_768, 16_384)
"""Tokens that an engine's modelled prefix cache holds; None is no bound."""
MAX_TOKENS = 160
ORDERS = ("grouped", "shuffled")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.grouping", description=__doc__)
    parser.add_argument("--documents", type=int, default=1024, help="of each run")
    parser.add_argument("--rounds", type=int, default=1, help="each runs everything, in turning order")
    parser.add_argument("--token-seconds", type=float, default=0.01)
    parser.add_argument("--level", choices=LEVELS, action="append", help="only this one; may be given more than once")
    parser.add_argument(
        "--lag-seconds", type=float, default=60.0, help="how long the loop is under load; 0: not at all"
    )
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    result: dict[str, Any] = {
        "benchmark": "grouping",
        "machine": machine.describe(),
        "date": time.strftime("%Y-%m-%d"),
        "settings": _settings(chosen),
        "load_before": round(os.getloadavg()[0], 2),
    }
    print(machine.sentence(result["machine"]), flush=True)
    result["runs"] = asyncio.run(_runs(chosen))
    result["compared"] = compared(result["runs"])
    if chosen.lag_seconds:
        result["lag"] = grouping_lag.measure(chosen.lag_seconds, SEQUENCES)
    print(report(result), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _settings(chosen: argparse.Namespace) -> dict[str, Any]:
    return {
        "documents": chosen.documents,
        "rounds": chosen.rounds,
        "engines": ENGINES,
        "max_num_seqs": SEQUENCES,
        "token_seconds": chosen.token_seconds,
        "max_tokens": MAX_TOKENS,
        "in_flight": {level: LEVELS[level] for level in chosen.level or LEVELS},
        "cache_tokens": list(CACHES),
        "not_in_the_time": "prefill: a token that is not in the prefix cache costs no time here",
    }


async def _runs(chosen: argparse.Namespace) -> list[dict[str, Any]]:
    config = SamplerConfig(engine="sampler", max_num_seqs=SEQUENCES, token_seconds=chosen.token_seconds)
    engines = [SamplerEngine(config) for _ in range(ENGINES)]
    chat = ChatTokenizer(resolve(config.model))
    for engine in engines:
        await engine.start([])
    runs = []
    for number in range(chosen.rounds):
        for schemas in SCHEMAS:
            for level in chosen.level or LEVELS:
                for order in ORDERS[:: 1 if number % 2 == 0 else -1]:
                    mark = f"{order[0]}{number}{level[0]}{schemas}"
                    items = documents(plans(schemas, mark), chosen.documents)
                    found = await _run(items, engines, chat, order, LEVELS[level])
                    runs.append({"round": number, "schemas": schemas, "level": level, "order": order, **found})
                    print(_line(runs[-1]), flush=True)
    return runs


async def _run(
    items: list[Item], engines: Sequence[SamplerEngine], chat: ChatTokenizer, order: str, in_flight: int
) -> dict[str, Any]:
    known = Run.of(items, chat)
    replicas = [Measured(f"engine-{number}", engine, known, CACHES) for number, engine in enumerate(engines)]
    if order == "shuffled":
        random.Random(0).shuffle(items)
        through: Any = LeastLoaded(replicas)
    else:
        most = 2 * SEQUENCES
        through = PoolEngine(replicas, most=most, share=most, first=ENGINES, start_seconds=60)
        await through.start([])
    waiting, seconds = iter(items), []

    async def caller() -> None:
        for prompt, plan in waiting:
            began = time.perf_counter()
            await through.generate(prompt, plan, Sampling(MAX_TOKENS))
            seconds.append(time.perf_counter() - began)

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(in_flight)))
    took, busy = time.perf_counter() - began, time.process_time() - used
    if order == "grouped":
        await through.close()
    return _found(replicas, seconds, took, busy)


def _found(replicas: Sequence[Measured], seconds: Sequence[float], took: float, busy: float) -> dict[str, Any]:
    counts = [replica.counts for replica in replicas]
    prompt_tokens = sum(one.prompt_tokens for one in counts)
    compile_seconds = sum(one.compile_seconds for one in counts)
    return {
        "seconds": round(took, 3),
        "docs_per_second": round(len(seconds) / took, 2),
        "answer_seconds": {"p50": round(quantiles(seconds)[1], 3), "p95": round(quantiles(seconds, n=20)[18], 3)},
        "busy_cores": round(busy / took, 2),
        "requests_by_engine": [one.requests for one in counts],
        "compiles": sum(one.compiles for one in counts),
        "compile_seconds": round(compile_seconds, 3),
        "prompt_tokens": prompt_tokens,
        "cached_share": round(sum(one.cached_tokens for one in counts) / prompt_tokens, 4),
        "cached_share_modelled": {
            str(tokens): round(sum(one.modelled[tokens] for one in counts) / prompt_tokens, 4) for tokens in CACHES
        },
    }


def compared(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Grouped and shuffled side by side, the mean of the rounds."""
    table = []
    for schemas in SCHEMAS:
        for level in LEVELS:
            both = {order: _of(runs, schemas, level, order) for order in ORDERS}
            if not all(both.values()):
                continue
            row: dict[str, Any] = {"schemas": schemas, "level": level}
            for key in ("docs_per_second", "compiles", "cached_share"):
                row[key] = {order: _mean(one[key] for one in found) for order, found in both.items()}
            for tokens in map(str, CACHES):
                row[f"cached_share_{tokens}"] = {
                    order: _mean(one["cached_share_modelled"][tokens] for one in found) for order, found in both.items()
                }
            table.append(row)
    return table


def _of(runs: Sequence[dict[str, Any]], schemas: int, level: str, order: str) -> list[dict[str, Any]]:
    wanted = (schemas, level, order)
    return [one for one in runs if (one["schemas"], one["level"], one["order"]) == wanted]


def _mean(values: Any) -> float:
    listed = list(values)
    return round(sum(listed) / len(listed), 4)


def _line(run: dict[str, Any]) -> str:
    caches = " ".join(f"{share:6.1%}" for share in run["cached_share_modelled"].values())
    return (
        f"{run['schemas']:3} schemas, {run['level']:6} {run['order']:8}: {run['docs_per_second']:7.1f} docs/s, "
        f"{run['compiles']:4} compiles, cached {run['cached_share']:6.1%}, modelled {caches}, "
        f"{run['busy_cores']:.2f} cores, requests {run['requests_by_engine']}"
    )


def report(result: dict[str, Any]) -> str:
    """The table for a terminal: grouped / shuffled."""
    names = ["no bound" if tokens is None else f"{tokens:,}" for tokens in CACHES]
    lines = ["", f"{'schemas':>7} {'level':6} {'docs/s':>15} {'compiles':>11} {'cached, of ' + ', '.join(names):>44}"]
    for row in result["compared"]:
        rates = "{grouped:7.1f}/{shuffled:7.1f}".format(**row["docs_per_second"])
        compiles = "{grouped:5.0f}/{shuffled:5.0f}".format(**row["compiles"])
        shares = ["{grouped:6.1%}/{shuffled:6.1%}".format(**row[f"cached_share_{tokens}"]) for tokens in CACHES]
        lines.append(f"{row['schemas']:7} {row['level']:6} {rates} {compiles} {'  '.join(shares):>44}")
    if "lag" in result:
        lines.append(grouping_lag.report(result["lag"]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
