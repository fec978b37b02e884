"""Units have one schema each, cut in a bounded window; whatever their size, each row is in exactly one."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input import InputScan, Unit, grouping, read_unit, scan, scan_once
from pipeline.runtime.store import open_store

FORMATS = ["jsonl", "csv", "parquet"]


def rows_of(count: int, schemas: int, seed: int = 0) -> list[dict[str, Any]]:
    chosen = random.Random(seed)
    return [{"id": f"d{n}", "text": f"text {n}", "s": f"k{chosen.randrange(schemas)}@1"} for n in range(count)]


def write(path: Path, rows: list[dict[str, Any]]) -> InputConfig:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=70)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" * (1 + n % 3) for n, row in enumerate(rows)))
    return InputConfig(path=str(path), schema_column="s")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("size", [1, 7, None])
def test_each_row_is_in_one_unit_of_its_own_schema(tmp_path: Path, suffix: str, size: int | None) -> None:
    rows = rows_of(700, 9)
    config = write(tmp_path / f"a.{suffix}", rows)
    found = scan(config, size)
    seen = []
    for unit in found.units:
        travelled = Unit.from_json(json.loads(json.dumps(unit.to_json())))
        documents = read_unit(travelled, config)
        assert travelled == unit
        assert {document.schema for document in documents} == {unit.schema}
        assert len(documents) == unit.rows <= (size or grouping.SMALLEST)
        seen += [(document.id, document.text, document.schema) for document in documents]
    assert sorted(seen) == sorted((row["id"], row["text"], row["s"]) for row in rows)
    assert found.documents == 700
    assert found.schema_counts == Counter(row["s"] for row in rows)


def test_a_unit_stays_within_its_window_and_a_stretch_of_one_schema_is_no_pick(tmp_path: Path) -> None:
    mixed = write(tmp_path / "mixed.jsonl", rows_of(4000, 50))
    for unit in scan(mixed, 10).units:
        assert not unit.picks or unit.picks[-1] < 16 * 10
    sorted_rows = sorted(rows_of(900, 3), key=lambda row: str(row["s"]))
    assert not any(unit.picks for unit in scan(write(tmp_path / "sorted.jsonl", sorted_rows), 10).units)


def test_units_grow_with_the_input_and_are_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(tmp_path / "a.jsonl", [{**row, "s": "k@1"} for row in rows_of(9000, 1)])
    sizes = [unit.rows for unit in scan(config).units]
    assert sizes[0] == grouping.SMALLEST
    assert sizes[:-1] == sorted(sizes[:-1])
    assert max(sizes) > 2 * grouping.SMALLEST
    monkeypatch.setattr(grouping, "UNIT_BYTES", 1000)
    assert max(unit.rows for unit in scan(config, 500).units) < 30


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_that_are_left_out_are_in_no_unit(tmp_path: Path, suffix: str) -> None:
    rows = rows_of(300, 3)
    rows[100]["id"] = rows[200]["id"] = "d5"
    config = write(tmp_path / f"a.{suffix}", rows)
    kept = {f"d{n}" for n in range(0, 300, 7)} | {"d5"}
    contents: dict[str, str] = {}

    def select(key: str, schema: str, content: str) -> bool:
        contents[f"{key} {len(contents)}"] = content
        return key in kept

    found = scan(config, 20, select)
    documents = [document for unit in found.units for document in read_unit(unit, config)]
    assert Counter(d.id for d in documents) == Counter(row["id"] for row in rows if row["id"] in kept)
    assert sum(any(p.code == "duplicate_id" for p in d.problems) for d in documents) == 2
    assert found.duplicate_count == 2
    assert found.documents == len(documents)
    assert len(set(contents.values())) == 300
    assert found.snapshot == scan(config, 20).snapshot
    assert not scan(config, 20, lambda *_: False).units


def test_a_changed_row_of_another_unit_is_no_ones_business_but_its_own(tmp_path: Path) -> None:
    config = write(tmp_path / "a.jsonl", rows_of(60, 2))
    found = scan(config, 100)
    assert len(found.units) == 2
    path = tmp_path / "a.jsonl"
    victim, other = found.units
    text = read_unit(victim, config)[3].text
    path.write_text(path.read_text().replace(f'"{text}"', f'"{text.replace("text", "Text")}"'))
    read_unit(other, config)
    with pytest.raises(InputError, match="changed"):
        read_unit(victim, config)


class TestSavedScan:
    def found(self, tmp_path: Path, config: InputConfig, size: int | None = None) -> InputScan:
        return scan_once(config, size, open_store(str(tmp_path / "out")))

    def test_it_is_what_a_scan_finds(self, tmp_path: Path) -> None:
        rows = rows_of(500, 4)
        rows[30]["id"] = rows[3]["id"]
        config = write(tmp_path / "a.jsonl", rows)
        assert self.found(tmp_path, config) == self.found(tmp_path, config) == scan(config)
        assert len(list((tmp_path / "out" / "_scans").iterdir())) == 1

    def test_another_file_another_taking_another_size_or_a_torn_one_is_scanned_anew(self, tmp_path: Path) -> None:
        config = write(tmp_path / "a.jsonl", rows_of(100, 2))
        first = self.found(tmp_path, config)
        assert self.found(tmp_path, config.model_copy(update={"limit": 50})).documents == 50
        assert len(self.found(tmp_path, config, 1).units) == 100
        for saved in (tmp_path / "out" / "_scans").iterdir():
            saved.write_bytes(saved.read_bytes()[:-20])
        assert self.found(tmp_path, config) == first
        with (tmp_path / "a.jsonl").open("a") as file:
            file.write(json.dumps({"id": "new", "text": "x", "s": "k0@1"}) + "\n")
        assert self.found(tmp_path, config).documents == 101
