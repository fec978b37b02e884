"""CPU time and memory of everything but the model: recorded completions, played without delay.

`python -m bench.cpu_side --documents 10000 --json bench/results/cpu_side.json`
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import layer_cost, machine, stages
from bench.documents import SCHEMA, source, write_jsonl
from bench.processes import run_and_clear
from bench.recording import TEXTS, record, recorded_job, rows
from pipeline.flow import plans_of

PARTS = ("extract", "layers", "pipeline", "memory")
TARGET_PER_CORE = 300
FLAT = 1.10
"""Ten times the documents may take this much more memory, plus FLAT_MIB: what is kept per unit is not nothing."""
FLAT_MIB = 32
GROWTH = 10

Runs = Callable[[int], dict[str, Any]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cpu_side", description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="whole runs also take ten times as many")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be given more than once")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    parts = chosen.part or list(PARTS)
    result: dict[str, Any] = {
        "benchmark": "cpu_side",
        "machine": machine.describe(),
        "settings": {"documents": chosen.documents, "distinct_texts": TEXTS, "source": _source()},
        "load_before": round(os.getloadavg()[0], 2),
    }
    print(machine.sentence(result["machine"]))
    with tempfile.TemporaryDirectory(prefix="bench-cpu-side-") as name:
        runs = _prepare(Path(name), chosen.documents)
        if "extract" in parts:
            result["extract"] = stages.measure(Path(name), str(chosen.documents))
            print(_extract_report(result["extract"]), flush=True)
        if "layers" in parts:
            result["layers"] = layer_cost.measure()
            print(layer_cost.report(result["layers"]), flush=True)
        if "pipeline" in parts:
            result["pipeline"] = pipeline_part(chosen.documents, runs)
            print(_pipeline_report(result["pipeline"]), flush=True)
        if "memory" in parts:
            result["memory"] = memory_part(chosen.documents, runs)
            print(_memory_report(result["memory"]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _source() -> str:
    return "receipts_sroie" if source().parent.name == "receipts_sroie" else "jobs/samples"


def _prepare(folder: Path, documents: int) -> Runs:
    """Make the recording and the input of `documents` rows; returns what runs a job of a given size, once each."""
    sample = str(documents)
    # A plan needs an input to look at, a recording needs the plan, and the input's texts come with the recording.
    write_jsonl(folder / f"{sample}.jsonl", [("first", "text")])
    job = recorded_job(folder, sample)
    known = record(folder / "recording", plans_of(job, [SCHEMA]).by_name[SCHEMA])
    write_jsonl(folder / f"{sample}.jsonl", rows(known, documents))
    done: dict[int, dict[str, Any]] = {}

    def run(count: int) -> dict[str, Any]:
        if count not in done:
            write_jsonl(folder / f"{count}.jsonl", rows(known, count))
            done[count] = _whole_run(folder, str(count))
        return done[count]

    return run


def _whole_run(folder: Path, name: str) -> dict[str, Any]:
    logs = folder / f"logs-{name}"
    logs.mkdir()
    command = [sys.executable, "-m", "bench.whole", str(folder), name]
    code, output, errors = run_and_clear(command, logs, {"RAY_USAGE_STATS_ENABLED": "0"})
    lines = [line for line in output.splitlines() if line.startswith('{"documents"')]
    if not lines:
        raise SystemExit(f"the run of {name} documents failed (exit code {code}):\n{errors[-4000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def pipeline_part(documents: int, run: Runs) -> dict[str, Any]:
    """N documents and GROWTH times as many. The difference is what a document costs; the rest is what starting costs.

    Ray starts workers for tasks until its logical CPUs are taken, about 2 CPU seconds each. With some thousand
    documents the smaller run has them all; with fewer, the larger one's further workers count as documents' cost.
    """
    small, large = run(documents), run(documents * GROWTH)
    more = large["documents"] - small["documents"]
    cpu = (large["cpu_seconds"] - small["cpu_seconds"]) / more
    wall = (large["wall_seconds"] - small["wall_seconds"]) / more
    kinds = {*small["cpu_by_kind"], *large["cpu_by_kind"]}
    by_kind = {
        kind: (large["cpu_by_kind"].get(kind, 0.0) - small["cpu_by_kind"].get(kind, 0.0)) / more * 1e6 for kind in kinds
    }
    return {
        "small": small,
        "large": large,
        "wall_docs_per_second": round(large["documents"] / large["wall_seconds"], 1),
        "cpu_micros_per_document": round(large["cpu_seconds"] / large["documents"] * 1e6, 1),
        "fixed_cpu_seconds": round(large["cpu_seconds"] - cpu * large["documents"], 2),
        "marginal_wall_docs_per_second": round(1 / wall, 1) if wall > 0 else None,
        "marginal_cpu_micros_per_document": round(cpu * 1e6, 1),
        "marginal_docs_per_second_per_core": round(1 / cpu, 1) if cpu > 0 else None,
        "marginal_cpu_micros_by_kind": {k: round(v, 1) for k, v in sorted(by_kind.items(), key=lambda kv: -kv[1])},
    }


def memory_part(documents: int, run: Runs) -> dict[str, Any]:
    """Peaks at two sizes. Judged is private memory: shared pages are Ray's object store, bounded by its size."""
    small, large = run(documents), run(documents * GROWTH)
    result: dict[str, Any] = {"documents": [small["documents"], large["documents"]]}
    for kind in ("driver", "extract actor"):
        peaks = [one["peaks"].get(kind, {"private_mib": 0.0, "resident_mib": 0.0}) for one in (small, large)]
        private = [round(peak["private_mib"], 1) for peak in peaks]
        result[kind] = {
            "private_mib": private,
            "resident_mib": [round(peak["resident_mib"], 1) for peak in peaks],
            "flat": private[1] <= FLAT * private[0] + FLAT_MIB,
            "bytes_per_document": round((private[1] - private[0]) * (1 << 20) / (documents * (GROWTH - 1)), 1),
        }
    result["large_wall_docs_per_second"] = round(large["documents"] / large["wall_seconds"], 1)
    return result


def _extract_report(part: dict[str, Any]) -> str:
    rate = part["extract_docs_per_second_per_core"]
    verdict = "met" if rate >= TARGET_PER_CORE else "MISSED"
    lines = [
        "",
        f"extract, one thread: {rate} docs/s per core (target >= {TARGET_PER_CORE}: {verdict}); "
        f"{part['extract_without_engine_docs_per_second_per_core']} without the recorded engine's "
        f"{part['recorded_engine_micros_per_document']} µs; statuses {part['statuses']}",
        f"all stages, one thread, no Ray: {part['all_stages_docs_per_second_per_core']} docs/s per core",
    ]
    lines += [f"  {micros:9.1f} µs  {name}" for name, micros in part["stage_micros_per_document"].items()]
    for title, table in part["extract_profile"].items():
        lines.append(f"profile of extract, {title.replace('_', ' ')}:")
        lines += [f"  {row['share']:6.1%} {row['micros']:8.1f} µs  {name}" for name, row in table.items()]
    return "\n".join(lines)


def _pipeline_report(part: dict[str, Any]) -> str:
    small, large = part["small"], part["large"]
    lines = ["", "whole pipeline through Ray Data, placement local, one actor:"]
    for one in (small, large):
        lines.append(
            f"  {one['documents']} documents: {one['wall_seconds']:.1f} s wall, {one['cpu_seconds']:.1f} CPU s, "
            f"first progress after {one['seconds_to_first_progress']:.1f} s, "
            f"{sum(one['processes_started_by_kind'].values())} processes started, {one['counts']}"
        )
    rate = part["marginal_docs_per_second_per_core"] or 0.0
    verdict = "met" if rate >= TARGET_PER_CORE else "MISSED"
    lines.append(f"  whatever the number of documents: {part['fixed_cpu_seconds']} CPU s")
    lines.append(
        f"  per further document: {part['marginal_cpu_micros_per_document']} µs CPU = {rate} docs/s per core "
        f"(target >= {TARGET_PER_CORE}: {verdict}), {part['marginal_wall_docs_per_second']} docs/s wall"
    )
    lines += [f"  {micros:9.1f} µs  {kind}" for kind, micros in part["marginal_cpu_micros_by_kind"].items()]
    return "\n".join(lines)


def _memory_report(part: dict[str, Any]) -> str:
    few, many = part["documents"]
    lines = ["", f"memory at {few} and {many} documents ({part['large_wall_docs_per_second']} docs/s wall at {many}):"]
    for kind in ("driver", "extract actor"):
        row = part[kind]
        lines.append(
            f"  {kind:14} private {row['private_mib'][0]} -> {row['private_mib'][1]} MiB "
            f"({row['bytes_per_document']} bytes per document, {'flat' if row['flat'] else 'NOT FLAT'}), "
            f"resident {row['resident_mib'][0]} -> {row['resident_mib'][1]} MiB"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
