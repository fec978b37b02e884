"""What the demo's run is worth: the committed files read back with plain pyarrow, and the records against the truth.

    python -m jobs.demo_report [RUN]

Exits with 1 if what can be read back is not what the manifest says, or if there is no manifest.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.table import Table

from jobs.gather_demo import OUT, ROOT
from pipeline.observe.visible import cell, console_on, visible
from pipeline.schema.storage import as_json

OUTPUT = ROOT / "jobs" / ".out" / "demo"


def main(arguments: list[str]) -> int:
    """Print both tables for a run directory, by default the demo's latest."""
    manifests = sorted(OUTPUT.glob("run=*/manifest.json"), key=lambda path: path.stat().st_mtime)
    run = Path(arguments[0]) if arguments else manifests[-1].parent if manifests else OUTPUT
    if not (run / "manifest.json").is_file():
        message = f"no committed run in {visible(str(run))}: there is no manifest.json. Try `make demo`."
        console_on(stderr=True).print(message, soft_wrap=True)
        return 1
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    rows = [row for file in manifest["files"] for row in read_back(run, file)]
    console = console_on()
    counts = dict(Counter(row["status"] for row in rows))
    agree = counts == {status: count for status, count in manifest["counts"].items() if count}
    console.print(
        f"read back with pyarrow: {counts}; the manifest says {manifest['counts']}: {'equal' if agree else 'NOT EQUAL'}"
    )
    console.print(quality(rows))
    if (page := run / "report.html").is_file():
        console.print(f"Open this in a browser: {visible(str(page))}", soft_wrap=True)
    return 0 if agree else 1


def read_back(run: Path, file: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of one file that the manifest names, as JSON. `ParquetFile`, so that the path adds no columns."""
    table = pq.ParquetFile(run / file["path"]).read()
    return [{**as_json(row), "status": file["status"], "schema": file["schema"]} for row in table.to_pylist()]


def ground_truths() -> dict[str, dict[str, Any]]:
    """By document id; empty if the demo's input was never gathered. Lines end with a newline and nothing else."""
    lines = OUT.read_text(encoding="utf-8").split("\n") if OUT.is_file() else []
    return {row["id"]: row["ground_truth"] for row in map(json.loads, filter(None, lines))}


def quality(rows: list[dict[str, Any]]) -> Table:
    """Per field: how often the record (valid or degraded) says what the ground truth says, to the letter.

    Documents of which nothing is known, because the input was gathered anew since, are left out.
    """
    truths = ground_truths()
    total: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        for field, truth in truths.get(row["document_id"], {}).items():
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
        table.add_row(cell(schema), cell(field), *(str(counter[name]) for name in columns))
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
