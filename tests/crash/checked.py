"""What the checker reads besides Parquet: the files of a run, the rows of an input. No code of the program's."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
Rows = Counter[tuple[str, str]]
"""(source, document id) of rows, counted."""


def read_folder(run: Path) -> dict[str, bytes]:
    """All files below a run directory by their path in it."""
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def read_input(path: Path, id_column: str = "id") -> Rows:
    """The rows of a JSONL or CSV file: where each stands, and its id. One that has none is known by its place.

    Not judged right: JSON objects that repeat a key, which lose their id.
    """
    rows: Rows = Counter()
    for number, found in enumerate(_csv(path) if path.suffix.lower() == ".csv" else _jsonl(path)):
        key = found.get(id_column) if isinstance(found, dict) else None
        place = f"{path.name}#{number}"
        known = (isinstance(key, str) and key) or (isinstance(key, int) and not isinstance(key, bool))
        rows[place, NOT_STORABLE.sub("\ufffd", str(key)) if known else place] += 1
    return rows


def _jsonl(path: Path) -> Iterator[Any]:
    for line in path.read_bytes().decode("utf-8-sig", "replace").split("\n"):
        if line and not line.isspace():
            try:
                yield json.loads(line)
            except ValueError:
                yield None


def _csv(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)
