"""A large input of small documents with few distinct texts, so that a small recording answers all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.documents import SCHEMA, SCHEMAS, Receipt
from bench.recording import record
from pipeline.compile.plans import plans_of
from pipeline.job import JobConfig

TEXTS = 200
FILE_ROWS = 100_000
GROUP_ROWS = 10_000
CURRENCIES = ("EUR", "USD", "GBP", "JPY", "CHF")


def receipts() -> list[Receipt]:
    """TEXTS short receipts with their true records."""
    made = []
    for number in range(TEXTS):
        total = (number * 137 % 9000 + 100) / 100
        truth = {
            "company": f"Shop {number}",
            "date": f"2026-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
            "address": f"{number + 1} Mill Lane",
            "currency": CURRENCIES[number % len(CURRENCIES)],
            "total": total,
        }
        text = f"{truth['company']}\n{truth['address']}\nDATE {truth['date']}\nTOTAL {truth['currency']} {total:.2f}"
        made.append(Receipt(f"text-{number}", text, truth))
    return made


def scale_job(folder: Path) -> JobConfig:
    """On Parquet files in `folder/input`, played from `folder/recording` by an engine in each of two processes."""
    return JobConfig.model_validate(
        {
            "name": "bench-scale",
            "input": {"path": str(folder / "input" / "*.parquet"), "schema": SCHEMA},
            "output": str(folder / "out"),
            "schemas": str(SCHEMAS),
            "engine": {"engine": "recorded", "recording": str(folder / "recording")},
            "placement": {"kind": "local", "actors": 2},
        }
    )


def make(folder: Path, documents: int) -> int:
    """Write input and recording below a folder; returns the bytes of the input."""
    known = receipts()
    (folder / "input").mkdir(parents=True)
    for number, rows in enumerate(_files(known, documents)):
        _write(folder / "input" / f"part-{number:05d}.parquet", rows)
    record(folder / "recording", plans_of(scale_job(folder), [SCHEMA]).by_name[SCHEMA], known)
    return sum(path.stat().st_size for path in (folder / "input").iterdir())


def _files(known: Sequence[Receipt], documents: int) -> Iterator[dict[str, list[Any]]]:
    for first in range(0, documents, FILE_ROWS):
        numbers = range(first, min(documents, first + FILE_ROWS))
        texts = [known[number % len(known)].text for number in numbers]
        yield {"id": [f"document-{number:09d}" for number in numbers], "text": texts}


def _write(path: Path, rows: dict[str, list[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(rows), path, row_group_size=GROUP_ROWS)
