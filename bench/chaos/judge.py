"""What became of a job whose processes were killed: the independent checker's word, outcomes, work done twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.chaos.command import RECORDING, run_directory
from bench.documents import ROOT

CHECK_SECONDS = 120
POISON = "poison"


@dataclass(frozen=True, slots=True)
class Row:
    """What a reader of the output gets of a document."""

    status: str
    schema: str
    record: str
    poison: bool


def outcomes(folder: Path) -> dict[str, Row]:
    """By document id, from the files that the manifest names."""
    import pyarrow.parquet as pq

    run = run_directory(folder)
    if run is None:
        raise FileNotFoundError(f"{folder} holds no run")
    found: dict[str, Row] = {}
    for file in json.loads((run / "manifest.json").read_text())["files"]:
        table = pq.ParquetFile(run / file["path"]).read()
        for row in table.to_pylist():
            codes = {problem["code"] for problem in row["problems"]}
            record = json.dumps(row.get("record"), sort_keys=True, default=str)
            found[row["document_id"]] = Row(file["status"], file["schema"], record, POISON in codes)
    return found


def different(found: Mapping[str, Row], undisturbed: Mapping[str, Row]) -> list[str]:
    """Ids of documents whose outcome is not that of the undisturbed run, those called poison left out."""
    ids = {*found, *undisturbed}
    return sorted(
        key for key in ids if found.get(key) != undisturbed.get(key) and not (key in found and found[key].poison)
    )


def check(folder: Path) -> str:
    """What the independent checker finds wrong with a committed run; nothing if it is right."""
    run = run_directory(folder)
    command = [sys.executable, "-m", "tests.crash.checker", str(run), str(folder / "input.jsonl")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-3000:] or f"exit code {done.returncode}"


def answers(folder: Path) -> Counter[str]:
    """How often the engines answered each prompt, as recorded by all commands together. The key of a prompt is that of
    its recording. An answer that was being made when its process died is in no recording."""
    found: Counter[str] = Counter()
    for path in sorted(folder.glob(f"{RECORDING}/*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                item: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # the last line of a process that was killed while it wrote
            if item.get("completion") is not None:
                found[f"{item['plan']} {item['key']}"] += 1
    return found


def repeated(found: Mapping[str, int], undisturbed: Mapping[str, int]) -> dict[str, int]:
    """Prompts that were answered more often than in the undisturbed run, and how many answers that are too many."""
    more = {key: count - undisturbed.get(key, 0) for key, count in found.items() if count > undisturbed.get(key, 0)}
    return {"prompts": len(more), "answers": sum(more.values())}
