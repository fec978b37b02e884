"""Scores of a run once more, by plain pyarrow from the files that its manifest names and a JSONL of gold.

Nothing of the package is used, so that a mistake there is none here. For flat records: members are values or lists of
values. `python tests/recomputed_scores.py RUN GOLD.jsonl` prints them.
"""

from __future__ import annotations

import datetime
import json
import math
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Three = dict[str, float]


def read_run(run: Path) -> dict[str, Any]:
    """Record by id; None for rejected documents."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for file in manifest["files"]:
        for row in pq.ParquetFile(run / file["path"]).read().to_pylist():
            found[row["document_id"]] = plain(row["record"]) if file["status"] != "rejected" else None
    return found


def plain(value: Any) -> Any:
    """A value of a column as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    return value.isoformat() if isinstance(value, datetime.date) else value


def read_gold(path: Path) -> dict[str, Any]:
    lines = path.read_text(encoding="utf-8").split("\n")
    return {row["id"]: row["record"] for row in map(json.loads, filter(None, lines))}


def says(value: Any) -> bool:
    return not (value is None or (isinstance(value, str) and value.strip() == ""))


def pairs_of(record: Any) -> list[tuple[str, Any]]:
    pairs = []
    for key, value in (record or {}).items():
        for item in value if isinstance(value, list) else [value]:
            if says(item):
                pairs.append((key, item))
    return pairs


def common(one: list[Any], other: list[Any]) -> int:
    """How many items of a list another list has, each of them once."""
    left, count = list(other), 0
    for item in one:
        if item in left:
            left.remove(item)
            count += 1
    return count


def f_score(right: float, found: float, expected: float) -> Three:
    """Harmonic mean of precision and recall, from its definition."""
    precision = right / found if found else math.nan
    recall = right / expected if expected else math.nan
    both = precision + recall
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / both if both else 0.0}


def micro(run: dict[str, Any], gold: dict[str, Any], words: Any) -> Three:
    """Counts added over documents; a document without a record found nothing."""
    right = found = expected = 0
    for key, record in gold.items():
        ours, theirs = words(record), words(run.get(key))
        right, found, expected = right + common(ours, theirs), found + len(theirs), expected + len(ours)
    return f_score(right, found, expected)


def sroie(record: Any) -> list[Any]:
    """ICDAR 2019 SROIE task 3: category and content, compared as they stand."""
    return [(key, item if isinstance(item, str) else json.dumps(item)) for key, item in pairs_of(record)]


def kleister(record: Any) -> list[str]:
    """Kleister-NDA's `MultiLabel-F1:u`: words of key=value, in upper case."""
    text = " ".join(f"{key}={item}".replace(" ", "_").replace(":", "_") for key, item in pairs_of(record))
    return text.upper().split()


def fields(run: dict[str, Any], gold: dict[str, Any]) -> dict[str, Three]:
    """Exact precision, recall and F1 by member."""
    keys = {key for record in [*gold.values(), *run.values()] for key in record or {}}
    return {key: micro(run, gold, lambda record, k=key: [p for p in pairs_of(record) if p[0] == k]) for key in keys}


def whole(run: dict[str, Any], gold: dict[str, Any]) -> float:
    """The share of documents whose record has what it should, no more and no less."""
    right = 0
    for key, record in gold.items():
        ours, theirs = pairs_of(record), pairs_of(run.get(key))
        right += run.get(key) is not None and len(ours) == len(theirs) == common(ours, theirs)
    return right / len(gold)


def main(run: str, gold: str) -> None:
    found, expected = read_run(Path(run)), read_gold(Path(gold))
    told = {"sroie": micro(found, expected, sroie), "kleister": micro(found, expected, kleister)}
    print(json.dumps({**told, "fields": fields(found, expected), "whole": whole(found, expected)}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
