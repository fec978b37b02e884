"""The documents that all benchmarks use: receipts of receipt@1, with the records that they should give.

Real ones (ICDAR-2019 SROIE, not part of a clone) when GRISTMILL_SHARED or `../shared` holds them, else the samples
written for this project. There are fewer than a benchmark needs, so they come again with a line that makes each text,
and with it each prompt, another one: no document profits from the prefix cache beyond the system message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SCHEMAS = ROOT / "schemas"
SCHEMA = "receipt@1"
SAMPLES = ROOT / "jobs" / "samples" / "receipts.jsonl"


@dataclass(frozen=True, slots=True)
class Receipt:
    """One document. `record` satisfies receipt@1."""

    id: str
    text: str
    record: dict[str, Any]


def receipts(count: int, prefix: str = "receipt") -> list[Receipt]:
    """`count` receipts with distinct ids and distinct texts."""
    rows = [json.loads(line) for line in source().read_text(encoding="utf-8").splitlines() if line.strip()]
    made = []
    for number in range(count):
        copy, index = divmod(number, len(rows))
        row = rows[index]
        text = f"{row['text']}\nREPRINT NO {copy}" if copy else row["text"]
        made.append(Receipt(f"{prefix}-{number:06d}", text, _record(row["ground_truth"])))
    return made


def source() -> Path:
    """The file that receipts are taken from."""
    shared = Path(os.environ.get("GRISTMILL_SHARED") or ROOT.parent / "shared")
    real = shared / "data" / "docs" / "receipts_sroie" / "docs.jsonl"
    return real if real.is_file() else SAMPLES


def write_jsonl(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    """Write (id, text) rows as an input that a job file can name."""
    with path.open("w", encoding="utf-8") as file:
        for key, text in rows:
            file.write(json.dumps({"id": key, "text": text}, ensure_ascii=False) + "\n")


def _record(truth: dict[str, Any]) -> dict[str, Any]:
    """Ground truth as receipt@1. SROIE has no currency (all are Malaysian) and amounts as text."""
    return {
        "company": _clipped(truth.get("company"), 80),
        "date": _clipped(truth.get("date"), 30),
        "address": _clipped(truth.get("address"), 200),
        "currency": truth.get("currency", "MYR"),
        "total": _amount(truth.get("total")),
    }


def _clipped(value: Any, length: int) -> str | None:
    return None if value is None else str(value)[:length]


def _amount(value: Any) -> float | None:
    if value is None or isinstance(value, int | float):
        return value
    digits = re.search(r"\d[\d,]*(?:\.\d+)?", value)
    return float(digits[0].replace(",", "")) if digits else None
