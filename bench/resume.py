"""What a driver needs to resume a job of ten million documents: seconds and memory, step by step.

`python -m bench.resume --documents 10000000 --json bench/results/resume.json`

The input is a listing only: files of the right size that hold nothing, so that reading one of them would be noticed.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench import machine

FILES = 100
ROW_BYTES = 600
SHARE = 0.5
MIB = 1 << 20


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.resume", description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.measure:
        print(json.dumps(measure(Path(chosen.measure))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-resume-") as name:
        made = make(Path(name), chosen.documents)
        # A process of its own, whose memory nothing else has touched.
        command = [sys.executable, "-m", "bench.resume", "--measure", name]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    result = {"benchmark": "resume", "machine": machine.describe(), **made, **told}
    print(_report(result))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def make(folder: Path, documents: int) -> dict[str, Any]:
    """Input, saved scan, and runs `half` and `whole` with commit records of a share of the units, and of all."""
    from pipeline.runtime.input import saved
    from pipeline.runtime.input.locate import locate
    from pipeline.runtime.store import open_store

    (folder / "input").mkdir()
    for number in range(FILES):
        with (folder / "input" / f"part-{number:03d}.jsonl").open("wb") as file:
            file.truncate(documents // FILES * ROW_BYTES)
    config = _config(folder)
    found = _scan(folder, documents // FILES)
    store = open_store(str(folder / "out"))
    key = saved.key_of(locate(config), config, None)
    assert key is not None
    saved.save(store, key, found)
    commits = 0
    for run, share in (("half", SHARE), ("whole", 1.0)):
        commits = _commit(folder / "out" / run / "_commits", found.units[: int(len(found.units) * share)])
    return {
        "documents": found.documents,
        "units": len(found.units),
        "share_committed": SHARE,
        "saved_scan_bytes": store.size(key),
        "commit_record_bytes": commits,
    }


def _config(folder: Path) -> Any:
    from pipeline.job import InputConfig

    return InputConfig.model_validate({"path": str(folder / "input"), "schema": "receipt@1"})


def _scan(folder: Path, rows: int) -> Any:
    """What `scan` would find in files of so many rows of equal length."""
    from pipeline.runtime.input import InputScan, Unit
    from pipeline.runtime.input.grouping import size_of

    units: list[Unit] = []
    before = 0
    for number in range(FILES):
        row = 0
        while row < rows:
            size = min(size_of(None, before), rows - row)
            name, span = f"{len(units):06d}", (row, row * ROW_BYTES, (row + size) * ROW_BYTES)
            paths, ids = (f"part-{number:03d}.jsonl",), _hash(f"ids {name}", 32)
            base, check = str(folder / "input"), _hash(name, 16)
            units.append(Unit(name, "jsonl", base, paths, size, *span, check, ids, "receipt@1"))
            row, before = row + size, before + size
    return InputScan(tuple(units), before, _hash("all", 32), _hash("snapshot", 16), {"receipt@1": before}, 0, ())


def _hash(text: str, length: int) -> str:
    return sha256(text.encode()).hexdigest()[:length]


def _commit(folder: Path, units: Sequence[Any]) -> int:
    """Commit records as `write_unit` makes them, with random record digests; bytes of a mean one."""
    from pipeline.observe.tally import tally
    from pipeline.records import Outcome
    from pipeline.runtime.output.gather import packed
    from pipeline.runtime.store import json_bytes

    folder.mkdir(parents=True)
    one = Outcome("d", "in.jsonl#1", "receipt@1", "valid", 1, {"vendor": "Ann", "total": 1.5})
    counted: dict[int, Any] = {}
    size = 0
    for unit in units:
        counted[unit.rows] = counted.get(unit.rows) or tally([one] * unit.rows).to_json()
        attempt = _hash(unit.id, 32)
        path = f"status=valid/schema=receipt@1/{unit.id}-{attempt[:12]}.parquet"
        file = {"path": path, "status": "valid", "schema": "receipt@1", "rows": unit.rows, "bytes": unit.rows * 300}
        record = {
            "unit": unit.id,
            "attempt": attempt,
            "input": unit.to_json(),
            "ids_digest": unit.ids_digest,
            "tally": counted[unit.rows],
            "files": [{**file, "sha256": _hash(path, 64)}],
            "digests": {path: packed(_hash(f"{unit.id} {row}", 16) for row in range(unit.rows))},
        }
        # Not through a store, whose fsync is not what is measured here.
        size += (folder / f"{unit.id}.json").write_bytes(json_bytes(record))
    return size // len(units)


def measure(folder: Path) -> dict[str, Any]:
    """The steps of a resume. Memory is what the process grew by since its start, after and at most."""
    from pipeline.runtime.input import scan_once
    from pipeline.runtime.output.commit import Run
    from pipeline.runtime.output.gather import gather
    from pipeline.runtime.output.identity import Identity
    from pipeline.runtime.store import open_store

    store = open_store(str(folder / "out"))
    half, whole = (Run(store.at(name), Identity({"job": "bench"}, {}), None, "") for name in ("half", "whole"))
    config = _config(folder)
    steps = _Steps()
    found = steps.take("load the saved scan", lambda: scan_once(config, None, store))
    done = steps.take("list commits", half.committed_units)
    left = steps.take("what is left", lambda: [unit for unit in found.units if unit.id not in done])
    parts = steps.take("manifest parts, all units", lambda: gather(whole.store, sorted(whole.committed_units())))
    if (parts.totals.documents, len(left) + len(done)) != (found.documents, len(found.units)):
        raise SystemExit("the steps do not add up")
    return {"units_left": len(left), "process_mib_at_start": steps.start, "steps": steps.taken}


class _Steps:
    def __init__(self) -> None:
        # What is imported on the way is not what documents cost.
        import numpy  # noqa: F401
        import pyarrow.fs  # noqa: F401

        self.taken: dict[str, dict[str, float]] = {}
        self.start = self._resident()

    def take(self, name: str, step: Callable[[], Any]) -> Any:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak
        started = time.perf_counter()
        made = step()
        seconds = time.perf_counter() - started
        gc.collect()
        peak = next(self._status("VmHWM"))
        self.taken[name] = {
            "seconds": round(seconds, 3),
            "grown_mib": round(self._resident() - self.start, 1),
            "grown_at_most_mib": round(peak - self.start, 1),
        }
        return made

    def _resident(self) -> float:
        return round(next(self._status("VmRSS")), 1)

    def _status(self, name: str) -> Iterator[float]:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                yield int(line.split()[1]) / 1024


def _report(result: dict[str, Any]) -> str:
    lines = [
        machine.sentence(result["machine"]),
        f"{result['documents']:,} documents in {result['units']:,} units, {result['units_left']:,} left; saved scan "
        f"{result['saved_scan_bytes'] / MIB:.2f} MiB; a commit record {result['commit_record_bytes']:,} bytes",
    ]
    for name, step in result["steps"].items():
        grown = f"{step['grown_mib']:7.1f} MiB after, {step['grown_at_most_mib']:7.1f} MiB at most"
        lines.append(f"{name:28} {step['seconds']:7.3f} s  {grown}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
