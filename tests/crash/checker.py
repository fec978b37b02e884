"""Is a committed run right? An independent judge: it reads files, and shares no code with the program that wrote them.

`python -m tests.crash.checker RUN INPUT` prints what is wrong with the run directory RUN of the input file INPUT (JSONL
or CSV with a column of ids), and exits 1 if anything is. `--uncommitted`: for a run that was not committed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.crash.checked import Rows, read_folder, read_input

STATUSES = ("degraded", "rejected", "valid")
Row = tuple[str, str, bool]
"""Source, document id, and whether it was refused because its id had occurred before."""


@dataclass
class _Run:
    """A run's objects, and what is found wrong with them."""

    objects: Mapping[str, bytes]
    rows: Rows
    """What the input has."""
    complaints: list[str] = field(default_factory=list)
    layouts: dict[tuple[str, str], pa.Schema] = field(default_factory=dict)
    firsts: Counter[str] = field(default_factory=Counter)
    """Rows by id, without those that were refused for their id."""

    def demand(self, holds: bool, complaint: str) -> bool:
        if not holds:
            self.complaints.append(complaint)
        return holds

    def value(self, key: str) -> dict[str, Any]:
        try:
            value = json.loads(self.objects[key])
        except (KeyError, ValueError):
            value = None
        return value if self.demand(isinstance(value, dict), f"{key} is missing or no JSON object") else {}

    def records(self) -> dict[str, dict[str, Any]]:
        """The commit records by unit."""
        found = {}
        for key in sorted(self.objects):
            if key.startswith("_commits/"):
                self.demand(key.endswith(".json"), f"{key} is no commit record")
                record = self.value(key)
                found[key.removeprefix("_commits/").removesuffix(".json")] = record
                self.demand(f"_commits/{record.get('unit')}.json" == key, f"{key} is of another unit")
        return found


def committed(objects: Mapping[str, bytes], rows: Rows) -> list[str]:
    """What is wrong with a run that is to be committed; nothing if it is right."""
    run = _Run(objects, rows)
    manifest = run.value("manifest.json")
    if not manifest:
        return run.complaints
    files = _listed(run, manifest, "the manifest")
    records = run.records()
    total: Counter[str] = Counter()
    written: Rows = Counter()
    for unit, record in records.items():
        _add(run, written, _unit(run, unit, record, total), unit)
    _conserved(run, written, full=not manifest.get("incremental"))
    named = [file for record in records.values() for file in record.get("files", ())]
    run.demand(_lines(named) == _lines(files), "the commit records and the manifest do not name the same files")
    counts = {status: total[status] for status in STATUSES}
    run.demand(manifest.get("counts") == counts, f"the manifest counts {manifest.get('counts')}, rows are {counts}")
    told, count = manifest.get("documents"), total.total()
    run.demand(told == count, f"the manifest tells {told} documents, there are {count} rows")
    run.demand(manifest.get("ids_digest") == _multiset(written), "the manifest's digest of ids is not that of the rows")
    metrics = manifest.get("totals", {}).get("metrics", {})  # where they are, or why they could not be written
    run.demand(metrics.get("file", "run.json") in run.objects, "metrics.prom is named and not there")
    told = sum(record.get("tally", {}).get("documents", 0) for record in records.values())
    run.demand(told == count, f"commit records tell {told} documents, there are {count} rows")
    _left_over(run, {file.get("path") for file in files})
    return run.complaints


def uncommitted(objects: Mapping[str, bytes], rows: Rows) -> list[str]:
    """What is wrong with a run that is not committed: its committed units must be whole, all the same."""
    run = _Run(objects, rows)
    run.demand("manifest.json" not in objects, "there is a manifest")
    written: Rows = Counter()
    for unit, record in run.records().items():
        _add(run, written, _unit(run, unit, record, Counter()), unit)
    _conserved(run, written, full=False)
    return run.complaints


def _unit(run: _Run, unit: str, record: Mapping[str, Any], total: Counter[str]) -> Rows:
    """The rows of one unit, whose files are looked into."""
    rows: Rows = Counter()
    counts: Counter[str] = Counter()
    for file in _listed(run, record, f"the record of unit {unit}"):
        listed = _file(run, file)
        found = [row[:2] for row in listed]
        run.firsts.update(key for _, key, again in listed if not again)
        wrongly = [key for _, key, again in listed if again and file["status"] != "rejected"]
        run.demand(not wrongly, f"{file.get('path')} holds rows of repeated ids, such as {wrongly[:1]}")
        name = str(file.get("path", "")).rpartition("/")[2]
        run.demand(name.startswith(f"{unit}-"), f"{file.get('path')} is named by unit {unit}")
        rows.update(found)
        counts[file["status"]] += len(found)
    size, there = record.get("input", {}).get("rows"), counts.total()
    run.demand(size == there, f"unit {unit} has {size} rows, {there} are written")
    run.demand(record.get("ids_digest") == _multiset(rows), f"unit {unit}: the digest of ids is not that of its rows")
    told = {status: count for status, count in record.get("tally", {}).get("statuses", {}).items() if count}
    run.demand(told == dict(counts), f"unit {unit}: its tally tells {told}, its rows are {dict(counts)}")
    total.update(counts)
    return rows


def _listed(run: _Run, holder: Mapping[str, Any], who: str) -> list[dict[str, Any]]:
    """The descriptions of files in the manifest or a record, those that are none left out."""
    members = {"path": str, "status": str, "schema": str, "rows": int, "bytes": int, "sha256": str}
    listed = holder.get("files", [])
    fine = [one for one in listed if all(isinstance(one.get(name), kind) for name, kind in members.items())]
    run.demand(len(fine) == len(listed), f"{who} describes a file incompletely")
    paths = Counter(one["path"] for one in fine)
    run.demand(len(paths) == len(fine), f"{who} names a file twice")
    return fine


def _file(run: _Run, file: Mapping[str, Any]) -> list[Row]:
    """The rows of one file, which is held against its description."""
    path, status, schema = file["path"], file["status"], file["schema"]
    folder = path.split("/")[:-1]
    right = len(folder) == 2 and folder[0] == f"status={status}" and _is_folder_of(folder[1], schema)
    run.demand(right, f"{path} lies in the wrong folder")
    run.demand(status in STATUSES, f"{path} has a status that there is not")
    data = run.objects.get(path)
    if data is None:
        run.complaints.append(f"{path} is named and not there")
        return []
    run.demand(len(data) == file["bytes"], f"{path} has {len(data)} bytes, not {file['bytes']}")
    run.demand(hashlib.sha256(data).hexdigest() == file["sha256"], f"{path} has another sha256")
    try:
        rows, found = _table(data)
    except (pa.ArrowException, OSError) as error:
        run.complaints.append(f"{path} is no Parquet: {error}")
        return []
    layout = run.layouts.setdefault((status, schema), found)
    run.demand(layout.equals(found, check_metadata=True), f"{path} has another Arrow schema")
    body = "document_text" if status == "rejected" else "record"
    run.demand(body in layout.names, f"{path} has no column {body}")
    run.demand(len(rows) == file["rows"], f"{path} has {len(rows)} rows, not {file['rows']}")
    return rows


def _is_folder_of(folder: str, schema: str) -> bool:
    """A name that is too long for a disk is cut, with some digits behind that tell it from others."""
    if unquote(folder) == f"schema={schema}":
        return True
    begun, _, digits = folder.rpartition("-")
    cut = len(folder) > 150 and bool(re.fullmatch("[0-9a-f]{16}", digits))
    return cut and f"schema={schema}".startswith(unquote(begun, errors="ignore"))


@lru_cache(maxsize=64)
def _table(data: bytes) -> tuple[list[Row], pa.Schema]:
    """The rows of a file, and the file's layout."""
    parquet = pq.ParquetFile(pa.BufferReader(data))
    table = parquet.read(columns=["source", "document_id", "problems"])
    rows = [
        (
            str(row["source"]).rpartition("/")[2],
            str(row["document_id"]),
            any(problem["code"] == "duplicate_id" for problem in row["problems"] or ()),
        )
        for row in table.to_pylist()
    ]
    return rows, parquet.schema_arrow


def _add(run: _Run, written: Rows, found: Rows, unit: str) -> None:
    twice = [row for row, count in found.items() if count > 1 or row in written]
    run.demand(not twice, f"unit {unit}: {len(twice)} rows are written twice, such as {twice[:1]}")
    written.update(found)


def _conserved(run: _Run, written: Rows, *, full: bool) -> None:
    lost, more = run.rows - written, written - run.rows
    run.demand(not (full and lost), f"{lost.total()} rows of the input are not written, such as {list(lost)[:1]}")
    run.demand(not more, f"{more.total()} rows are written that the input does not have, such as {list(more)[:1]}")
    had, has = Counter(key for _, key in run.rows.elements()), Counter(key for _, key in written.elements())
    several = [key for key in has if run.firsts[key] > 1]
    run.demand(not several, f"{len(several)} ids have more than one row that counts, such as {several[:1]}")
    none = [key for key in has if not run.firsts[key]]
    run.demand(not (full and none), f"{len(none)} ids have no row that counts, such as {none[:1]}")
    odd = [key for key, count in has.items() if count > had[key]]
    run.demand(not odd, f"{len(odd)} ids stand in more rows than in the input, such as {odd[:1]}")


def _left_over(run: _Run, named: set[Any]) -> None:
    """A committed run holds nothing that was only needed on the way."""
    for key in sorted(run.objects):
        if key.startswith("status="):
            run.demand(key in named, f"{key} is there and not named")
        run.demand(not key.startswith("_journal/"), f"{key} is left in the journal")
        run.demand(".tmp-" not in key, f"{key} is left of a write that broke off")
    run.demand("duplicates.json" in run.objects, "duplicates.json is not there")


def _lines(files: Iterable[Any]) -> list[str]:
    return sorted(json.dumps(file, sort_keys=True) for file in files)


def _multiset(rows: Rows) -> str:
    """The sum of the ids' hashes, whatever their order (docs/output.md)."""
    parts = (hashlib.sha256(key.encode()).digest()[:16] for _, key in rows.elements())
    return f"{sum(int.from_bytes(part, 'big') for part in parts) % 2**128:032x}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.checker", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("--id-column", default="id")
    parser.add_argument("--uncommitted", action="store_true")
    chosen = parser.parse_args(argv)
    judge = uncommitted if chosen.uncommitted else committed
    complaints = judge(read_folder(chosen.run), read_input(chosen.input, chosen.id_column))
    print("\n".join(complaints) or "nothing is wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
