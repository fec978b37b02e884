"""Where engines run, compared: the same documents through `local`, `actors` and `serve`.

    sampler, with a fixed time per token   1 and 2 engines; the engines are the bottleneck, so a loss is the placement's
    sampler, with no time per token        1 engine; the machine's cores are the bottleneck, so it shows what calls cost
    vLLM                                   1 engine

Documents per second and CPU seconds a document are of the middle of a job, between a fifth and four fifths of its
documents: starting and ending count for neither. One Ray for all; the pool of `serve` is up before its jobs begin.
Placements take turns.

`python -m bench.placement --json bench/results/placement.json`; `--documents 200 --case sampler-1` shows that it runs
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.middle import middle_of
from bench.placement.jobs import CASES, Case, job_of, serving

PLACEMENTS = ("local", "actors", "serve")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.placement", description=__doc__)
    parser.add_argument("--documents", type=int, help="of each job; default: as the case says")
    parser.add_argument("--case", choices=[case.name for case in CASES], action="append", help="only this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    described = machine.describe()
    print(machine.sentence(described), flush=True)
    load = round(os.getloadavg()[0], 2)
    start_ray()
    rounds = []
    for case in CASES:
        if chosen.case is None or case.name in chosen.case:
            documents = chosen.documents or case.documents
            rounds += [row for number in range(chosen.rounds) for row in _round(case, number, documents)]
    result = {
        "benchmark": "placement",
        "machine": described,
        "date": time.strftime("%Y-%m-%d"),
        "load_before": load,
        "rounds": rounds,
        "medians": medians(rounds),
    }
    print(report(result["medians"]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def start_ray() -> None:
    """With more logical CPUs than there may be: what is compared is not bound by Ray's counting of them."""
    import ray

    ray.init(num_cpus=16, include_dashboard=False, logging_level="ERROR", log_to_driver=False)


def _round(case: Case, number: int, documents: int) -> list[dict[str, Any]]:
    turn = number % len(PLACEMENTS)
    rows = []
    for placement in (*PLACEMENTS[turn:], *PLACEMENTS[:turn]):
        with serving(case, placement):
            row = {"case": case.name, "placement": placement, "round": number, **_job(case, placement, documents)}
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def _job(case: Case, placement: str, documents: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-placement-") as name:
        found = middle_of(job_of(case, placement, documents, Path(name)), documents)
    return {key: value for key, value in found.items() if key != "totals"}


def medians(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over the rounds, for each case and placement."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rounds):
        for placement in PLACEMENTS:
            rows = [row for row in rounds if (row["case"], row["placement"]) == (case, placement)]
            rates = [row["documents_per_second"] for row in rows]
            costs = [row["cpu_milliseconds_per_document"] for row in rows]
            found.append(
                {
                    "case": case,
                    "placement": placement,
                    "documents_per_second": [median(rates), min(rates), max(rates)],
                    "cpu_milliseconds_per_document": [median(costs), min(costs), max(costs)],
                }
            )
    return found


def report(rows: Sequence[dict[str, Any]]) -> str:
    """A table: median, smallest and largest of the rounds."""
    lines = ["case          placement   documents/s             CPU ms/document"]
    for row in rows:
        rate, cost = row["documents_per_second"], row["cpu_milliseconds_per_document"]
        told = [f"{m:8.2f} [{low:.2f}, {high:.2f}]" for m, low, high in (rate, cost)]
        lines.append(f"{row['case']:13} {row['placement']:8} {told[0]:>26} {told[1]:>26}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
