"""Constraint-in-force tests on a real engine: what they decide, what they cost, and whether planted faults are caught.

`python -m bench.in_force ENGINE.yaml [--backend B] [--schema NAME ...] [--fault F ...] [--trials N] [--save]`: every
schema of the repository unless named; honest unless a fault is named. A fault stands between the tests and the engine:
it sends another schema than the plan's, or none; `late_mask` is the sampler's own. Each cell is written when done,
so that a run can be continued with other cells.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from pipeline.engines import Engine, build
from pipeline.evaluate.in_force import in_force
from pipeline.evaluate.in_force_answers import reader_of
from pipeline.evaluate.in_force_rows import TRIALS, ForceRow, totals
from pipeline.job import Fault
from pipeline.jobfile import load_engine
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import available, load_schema
from pipeline.schema.walk import rebuild
from pipeline.steps.prompt import system_prompt

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "bench/results/in_force.json"
FAULTS = ("honest", "off", "enum_dropped", "member_dropped", "late_mask")


class Faulty:
    """An engine behind somebody who changes what it is asked. Counts requests and output tokens."""

    def __init__(self, engine: Engine, fault: str) -> None:
        self._engine, self._fault = engine, fault
        self.requests = self.tokens = 0

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        if self._fault == "off":
            sampling = replace(sampling, constrained=False)
        change = _CHANGES.get(self._fault)
        if change is not None:
            schema = rebuild(
                json.loads(plan.transport), lambda _, node: change(node) if isinstance(node, dict) else node
            )
            plan = replace(plan, transport=json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
        completion = await self._engine.generate(prompt, plan, sampling)
        self.requests += 1
        self.tokens += completion.output_tokens
        return completion

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...


def _without_enum(node: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name != "enum"}


def _without_first(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "required": node["required"][1:]} if node.get("required") else node


_CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "enum_dropped": _without_enum,
    "member_dropped": _without_first,
}


async def cells(options: argparse.Namespace, note: Callable[[str, dict[str, Any]], None]) -> None:
    """Every cell that the options name; `note(key, cell)` takes each when it is done."""
    config = load_engine(options.engine)
    config = config.model_copy(update={"backend": options.backend})
    names = options.schema or available(ROOT / "schemas")
    schemas = [load_schema(ROOT / "schemas", name) for name in names]
    plans = [build_plan(one, system_prompt(one), backend=options.backend, compact_json=True) for one in schemas]
    reader = reader_of(config, options.backend)
    faults = options.fault or ["honest"]
    for own in (False, True):  # an engine's own fault is one it is built with
        mine = [fault for fault in faults if (fault == "late_mask") == own]
        if not mine or (own and config.engine != "sampler"):
            continue
        late = {"faults": (Fault(kind="late_mask", share=1.0),)} if own else {}
        engine = build(config.model_copy(update=late))
        try:
            await engine.start(plans)
            for fault in mine:
                for plan in plans:
                    faulty, started = Faulty(engine, fault), time.monotonic()
                    trials = options.trials if fault == "honest" else options.planted or options.trials
                    rows = await in_force(faulty, plan, reader, trials=trials, told=_tell)
                    cost = {"seconds": round(time.monotonic() - started, 1), "requests": faulty.requests}
                    cell = _cell(rows, trials) | cost | {"output_tokens": faulty.tokens}
                    note(f"{config.engine} {options.backend} {plan.name} {fault}", cell)
        finally:
            await engine.close()


def _tell(row: ForceRow) -> None:
    print(f"  {row.told()}"[:250], flush=True)


def _cell(rows: Sequence[ForceRow], trials: int) -> dict[str, Any]:
    leaks = [f"{row.pointer} {row.keyword} {row.detail}".strip() for row in rows if row.verdict == "leaked"]
    open_ = [
        f"{row.pointer} {row.keyword} {row.detail}: {row.other_broke}" for row in rows if row.verdict == "suggested"
    ]
    return {"trials": trials, "sites": len(rows), **totals(rows), "leaks": leaks[:12], "not_shown": open_}


def main() -> None:
    """Run and print; `--save` adds the cells to the results file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("engine", type=Path)
    parser.add_argument("--backend", choices=("xgrammar", "guidance"), default="guidance")
    parser.add_argument("--schema", action="append")
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--planted", type=int, help="trials with a fault, where a leak needs one answer; as --trials")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()

    def note(key: str, cell: dict[str, Any]) -> None:
        print(key, json.dumps(cell), flush=True)
        if options.save:
            kept = json.loads(RESULT.read_text(encoding="utf-8"))["cells"] if RESULT.is_file() else {}
            result = {"machine": machine.describe(), "cells": dict(sorted({**kept, key: cell}.items()))}
            RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    asyncio.run(cells(options, note))


if __name__ == "__main__":
    main()
