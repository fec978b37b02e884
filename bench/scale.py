"""A million small documents through everything but the model, on two cores: memory, files, rates, and what is next.

Recorded completions are played without delay, by two processes. Memory and CPU of every process are sampled over
time. What one call of the control and one task of Ray Data cost is measured apart (`bench.scale_costs`), and all of it
is put into formulas for many GPUs (`bench.scale_paper`).

`python -m bench.scale --json bench/results/scale.json`; `--documents 20000` shows within a minute or two that it runs
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import machine, scale_paper
from bench.chaos.herd import Herd
from bench.chaos.nodes import Nodes
from bench.documents import ROOT
from bench.scale_input import TEXTS, make
from bench.scale_series import Point, Series

MIB = 1 << 20
HOURS = 3600
FLAT_SHARE, FLAT_MIB = 1.10, 32
"""Memory is called flat if its end is at most so much more than its first third's."""
SAMPLES = 240


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, default=100, help="of the extrapolation")
    parser.add_argument("--gpu-rate", type=float, default=20.0, help="documents per second of one GPU there, assumed")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    result: dict[str, Any] = {
        "benchmark": "scale",
        "machine": machine.describe(),
        "date": time.strftime("%Y-%m-%d"),
        "settings": {"documents": chosen.documents, "distinct_texts": TEXTS, "placement": "local, 2 actors"},
        "load_before": round(os.getloadavg()[0], 2),
    }
    print(machine.sentence(result["machine"]), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as name:
        result |= measure(Path(name), chosen.documents)
    target = scale_paper.Target(gpus=chosen.gpus, documents_per_gpu_second=chosen.gpu_rate)
    result["paper"] = scale_paper.to_json(result["measured"], target)
    print(report(result), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measure(folder: Path, documents: int) -> dict[str, Any]:
    """The whole measurement, in a folder of its own."""
    input_bytes = make(folder, documents)
    seconds = max(0.5, documents / 800 / SAMPLES)
    told, series = _watched(folder, seconds)
    again, _ = _watched(folder, 0.5, "again")
    costs, _ = _watched(folder, 0.5, module="bench.scale_costs")
    output = files(folder)
    run = timeline(told, folder)
    run["seconds"]["resume_when_committed"] = round(again["ended"] - again["begun"], 2)
    run["resume_peak_mib"] = round(again["peak_mib"], 1)
    return {
        "input": {"mib": round(input_bytes / MIB, 1), "files": len(list((folder / "input").iterdir()))},
        "run": run,
        "processes": series.to_json(told["begun"]),
        "memory": {role: memory(series.of(role), told) for role in ("driver", "worker", "control")},
        "object_store_mib": round(max((p.shared for one in series.of("raylet") for p in one), default=0.0), 1),
        "files": output,
        "costs": costs,
        "measured": measured(told, series, output, costs, run),
    }


def _watched(
    folder: Path, seconds: float, *arguments: str, module: str = "bench.scale_run"
) -> tuple[dict[str, Any], Series]:
    """Run a module of this package in a process of its own, on a Ray of its own; returns what it printed last."""
    herd = Herd()
    nodes = Nodes(herd)
    command = [sys.executable, "-m", module, *([str(folder)] if module == "bench.scale_run" else []), *arguments]
    log = folder / f"log-{time.time_ns()}"
    try:
        with log.open("wb") as out:
            child = subprocess.Popen(command, cwd=ROOT, env=nodes.environment, stdout=out, stderr=subprocess.STDOUT)
        series = Series(herd.all, child.pid, seconds).start()
        code = child.wait(timeout=6 * HOURS)
        series.stop()
    finally:
        herd.end()
        nodes.remove()
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("{")]
    if code or not lines:
        raise SystemExit(f"{module} failed with {code}:\n{log.read_text(errors='replace')[-4000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found, series


def timeline(told: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Where the wall seconds went, and documents per second over time."""
    commits = [path.stat().st_mtime for path in folder.glob("out/run=*/_commits/*.json")]
    progress = told["progress"]
    first = next(at for at, count in progress if count)
    rates = [
        round((count - before) / (at - earlier), 1)
        for (earlier, before), (at, count) in zip(_every(progress), _every(progress)[1:], strict=False)
        if count > before
    ]
    return {
        "documents": told["documents"],
        "counts": told["counts"],
        "units": told["units"],
        "seconds": {
            "scan": round(told["scanned"] - told["begun"], 2),
            "to_first_document": round(first - told["scanned"], 2),
            "extract": round(max(commits) - first, 2),
            "commit": round(told["ended"] - max(commits), 2),
            "whole": round(told["ended"] - told["begun"], 2),
        },
        "documents_per_second": round(told["documents"] / (max(commits) - first), 1),
        "documents_per_second_over_time": rates,
        "scan_peak_mib": round(told["scan_peak_mib"], 1),
        "driver_peak_mib": round(told["peak_mib"], 1),
    }


def _every(progress: list[tuple[float, int]]) -> list[tuple[float, int]]:
    step = max(1, len(progress) // 40)
    return progress[::step]


def memory(processes: list[list[Point]], told: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each process of a role: private MiB of the first third after the start of work and of the end; judged flat."""
    first = next(at for at, count in told["progress"] if count)
    found = []
    for points in processes:
        inside = [point for point in points if first <= point.at <= told["progress"][-1][0]]
        if len(inside) < 3:
            continue
        third, end = inside[len(inside) // 3].private, inside[-1].private
        found.append(
            {
                "private_mib": [round(inside[0].private, 1), round(third, 1), round(end, 1)],
                "resident_peak_mib": round(max(point.resident for point in inside), 1),
                "flat": end <= third * FLAT_SHARE + FLAT_MIB,
            }
        )
    return found


def files(folder: Path) -> dict[str, Any]:
    """What the run left on disk, and how long it takes to list its commits."""
    from pipeline.runtime.store import open_store

    run = next((folder / "out").glob("run=*"))
    data = sorted(path.stat().st_size for path in run.glob("status=*/*/*.parquet"))
    begun = time.perf_counter()
    commits = list(open_store(str(run)).list("_commits/"))
    listed = time.perf_counter() - begun
    scans = sum(path.stat().st_size for path in folder.glob("out/_scans/*"))
    return {
        "data_files": len(data),
        "data_mib": round(sum(data) / MIB, 1),
        "data_file_kib": {"least": data[0] // 1024, "median": data[len(data) // 2] // 1024, "most": data[-1] // 1024},
        "commits": len(commits),
        "commit_bytes": sum(entry.size for entry in commits),
        "listing_seconds": round(listed, 4),
        "manifest_bytes": (run / "manifest.json").stat().st_size,
        "scan_bytes": scans,
    }


def measured(
    told: dict[str, Any], series: Series, output: dict[str, Any], costs: dict[str, Any], run: dict[str, Any]
) -> dict[str, float]:
    """What the extrapolation rests on."""
    inside = [(at, count) for at, count in told["progress"] if count]
    first, last = inside[0], inside[-1]
    documents, units = max(1, last[1] - first[1]), told["units"]
    driver = [point for points in series.of("driver") for point in points if first[0] <= point.at <= last[0]]
    growth = (driver[-1].private - driver[0].private) * MIB / units if len(driver) > 1 else 0.0
    data, control, seconds = costs["ray_data"], costs["control"], run["seconds"]
    return {
        "worker_micros_per_document": round(series.cpu_between("worker", first[0], last[0]) / documents * 1e6, 1),
        "control_begin_micros": control["begin_control_micros"],
        "control_report_micros": control["report_control_micros"],
        "driver_micros_per_unit": data["driver_micros"],
        "daemons_micros_per_unit": data["daemons_micros"],
        "prepare_wall_micros_per_unit": data["prepare_micros"],
        "driver_bytes_per_unit": round(max(growth, data["driver_bytes"], 0.0), 1),
        "scan_rows_per_second": round(told["documents"] / max(0.01, seconds["scan"]), 1),
        "scan_bytes_per_unit": round(output["scan_bytes"] / units, 1),
        "list_wall_micros_per_unit": round(output["listing_seconds"] / output["commits"] * 1e6, 1),
        "manifest_bytes_per_unit": round(output["manifest_bytes"] / units, 1),
        "commit_wall_micros_per_unit": round(seconds["commit"] / units * 1e6, 1),
        "files_per_unit": round(output["data_files"] / units, 2),
    }


def report(result: dict[str, Any]) -> str:
    """What the terminal shows; the last part is Markdown for README.md."""
    run, output = result["run"], result["files"]
    lines = [
        f"{run['documents']} documents in {run['units']} units: {run['documents_per_second']} documents/s; "
        + ", ".join(f"{name} {seconds} s" for name, seconds in run["seconds"].items()),
        f"documents/s over time: {run['documents_per_second_over_time']}",
    ]
    for role, found in result["memory"].items():
        for one in found:
            start, third, end = one["private_mib"]
            lines.append(
                f"{role:8} private {start} -> {third} -> {end} MiB ({'flat' if one['flat'] else 'NOT FLAT'}), "
                f"resident peak {one['resident_peak_mib']} MiB"
            )
    lines += [
        f"object store {result['object_store_mib']} MiB; {output['data_files']} data files, {output['data_mib']} MiB "
        f"(KiB of one: {output['data_file_kib']}); "
        f"{output['commits']} commits; manifest of {output['manifest_bytes']} bytes",
        "",
        scale_paper.table(result["paper"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
