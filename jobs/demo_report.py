"""What the demo's run is worth: the committed files read back with plain pyarrow, and the records against the truth.

    python -m jobs.demo_report [RUN]

Exits with 1 if what can be read back is not what the manifest says.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from jobs.gather_demo import OUT, ROOT

OUTPUT = ROOT / "jobs" / ".out" / "demo"


def main(arguments: list[str]) -> int:
    """Print both tables for a run directory, by default the demo's latest."""
    manifests = sorted(OUTPUT.glob("run=*/manifest.json"), key=lambda path: path.stat().st_mtime)
    run = Path(arguments[0]) if arguments else manifests[-1].parent
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    rows = [row for file in manifest["files"] for row in read_back(run, file)]
    console = Console(highlight=False)
    counts = dict(Counter(row["status"] for row in rows))
    agree = counts == {status: count for status, count in manifest["counts"].items() if count}
    console.print(
        f"read back with pyarrow: {counts}; the manifest says {manifest['counts']}: {'equal' if agree else 'NOT EQUAL'}"
    )
    console.print(quality(rows))
    return 0 if agree else 1


def read_back(run: Path, file: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one file that the manifest names. `ParquetFile`, so that the path adds no columns."""
    table = pq.ParquetFile(run / file["path"]).read()
    return [{**row, "status": file["status"], "schema": file["schema"]} for row in table.to_pylist()]


def quality(rows: list[dict[str, Any]]) -> Table:
    """Per field: how often the record (valid or degraded) says what the ground truth says, to the letter."""
    truths = {row["id"]: row["ground_truth"] for row in map(json.loads, OUT.read_text(encoding="utf-8").splitlines())}
    total: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        for field, truth in truths[row["document_id"]].items():
            found = (row.get("record") or {}).get(field)
            counter = total[row["schema"], field]
            counter["documents"] += 1
            counter["equal"] += row.get("record") is not None and found == truth
            counter["empty truth"] += truth in (None, [])
            counter["empty record"] += found in (None, [])
    table = Table("schema", "field", "documents", "equal to truth", "truth empty", "record empty", title_justify="left")
    table.title = "quality of the embedded 135M model (rejected documents count as empty)"
    for (schema, field), counter in sorted(total.items()):
        columns = ("documents", "equal", "empty truth", "empty record")
        table.add_row(schema, field, *(str(counter[name]) for name in columns))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
