"""What the schema compiler makes of other people's schemas, against the raw grammar back ends.

`python -m bench.schema_coverage --json bench/results/schema_coverage.json`
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import machine
from bench.coverage.kept import Kept
from bench.coverage.measure import JOB_MODULES, Row, measured
from bench.coverage.sets import NAMES, Case, Set, folder_set, handed, some
from bench.coverage.tables import show
from bench.coverage.totals import totals
from pipeline.compile import trial
from pipeline.compile.check import LIMITS
from pipeline.compile.sandbox import Sandbox

EVERY = 25
"""Schemas between two lines that say how far a run has come."""


def main(argv: Sequence[str] | None = None) -> int:
    """1 if a set was named and is not there, else 0, whatever was found: the report says it."""
    chosen = _parser().parse_args(argv)
    names = chosen.set or ([] if chosen.folder else list(NAMES))
    sets = [*map(handed, names), *map(folder_set, chosen.folder or [])]
    console = Console(width=None if sys.stdout.isatty() else 140)
    result: dict[str, Any] = {
        "benchmark": "schema_coverage",
        "machine": machine.describe(),
        "settings": _settings(chosen),
        "load_before": round(os.getloadavg()[0], 2),
        "sets": {},
    }
    print(machine.sentence(result["machine"]))
    kept = Kept({"raw": not chosen.no_raw, "model": chosen.model})
    with Sandbox(chosen.model, workers=1, job_modules=JOB_MODULES) as sandbox:
        for each in sets:
            if each.absent:
                print(f"{each.name} is left out: no {each.absent}. Set GRISTMILL_SHARED to the folder that holds it.")
                continue
            rows = list(_rows(sandbox, each, kept, chosen))
            result["sets"][each.name] = totals(rows)
            show(console, each.name, result["sets"][each.name])
            if chosen.json:
                _write(chosen.json, result)
    result["load_after"] = round(os.getloadavg()[0], 2)
    if chosen.json:
        _write(chosen.json, result)
    return int(bool(chosen.set) and any(each.absent for each in sets))


def _rows(sandbox: Sandbox, each: Set, kept: Kept, chosen: argparse.Namespace) -> Iterator[Row]:
    cases: Sequence[Case] = some(each.cases, chosen.limit)
    for number, case in enumerate(cases, 1):
        row = kept.get(case) if chosen.resume else None
        if row is None:
            row = measured(sandbox, case, raw=not chosen.no_raw)
            kept.put(case, row)
        yield row
        if number % EVERY == 0 or number == len(cases):
            print(f"{each.name}: {number} of {len(cases)}", file=sys.stderr, flush=True)


def _settings(chosen: argparse.Namespace) -> dict[str, Any]:
    budgets = {"instance_seconds": trial.INSTANCE_SECONDS, "probe_seconds": trial.PROBE_SECONDS, "walks": trial.WALKS}
    return {
        "model": Path(chosen.model).name,
        "limit": chosen.limit,
        "raw": not chosen.no_raw,
        "resumed": chosen.resume,
        "limits": asdict(LIMITS),
        "trial": budgets,
    }


def _write(path: Path, result: dict[str, Any]) -> None:
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.schema_coverage", description=__doc__)
    parser.add_argument("--set", choices=NAMES, action="append", help="only this one; may be given more than once")
    parser.add_argument("--folder", type=Path, action="append", help="schemas of your own: .json and .jsonl below it")
    parser.add_argument("--limit", type=int, help="only so many schemas of each set, from all over it")
    parser.add_argument("--no-raw", action="store_true", help="leave out the untouched schemas: half the time")
    parser.add_argument("--resume", action="store_true", help="take what a run that was broken off has measured")
    parser.add_argument("--model", default="embedded", help="whose tokenizer the grammars are compiled for")
    parser.add_argument("--json", type=Path, help="also write the results there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
