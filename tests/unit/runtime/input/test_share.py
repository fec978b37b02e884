"""A share of units: the very documents of the run that they were cut for, whatever format, and none that came since."""

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
from pipeline.records import Document
from pipeline.runtime.input import InputScan, Unit, read_unit, scan
from pipeline.runtime.input.share import share_of
from pipeline.schema.fingerprint import add_multisets, multiset_digest

FORMATS = ["jsonl", "csv", "parquet"]


def rows_of(count: int) -> list[dict[str, Any]]:
    """Rows of two schemas; some ids come twice, some schemas and texts are missing."""
    draw = random.Random(count)
    rows = [{"id": f"d{n}", "text": f"text {n}", "s": f"k{draw.randrange(2)}@1"} for n in range(count)]
    for n in range(5, count, 11):
        rows[n]["id"] = rows[n - 4]["id"]
    rows[3]["text"], rows[7]["s"] = "", ""
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> InputConfig:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=30)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" * (1 + n % 3) for n, row in enumerate(rows)))
    return InputConfig(path=str(path), schema_column="s")


def documents(units: tuple[Unit, ...], config: InputConfig) -> list[Document]:
    return [one for unit in units for one in read_unit(Unit.from_json(json.loads(json.dumps(unit.to_json()))), config)]


def held(key: str) -> bool:
    return int(multiset_digest((key,)), 16) % 3 == 0


def check(found: InputScan, of: InputScan, config: InputConfig) -> None:
    whole = documents(of.units, config)
    expected = sorted((one for one in whole if held(one.id)), key=lambda one: one.source)
    share = documents(found.units, config)
    assert sorted(share, key=lambda one: one.source) == expected
    assert 0 < len(expected) == found.documents == sum(unit.rows for unit in found.units) < len(whole)
    assert found.schema_counts == Counter(one.schema for one in expected)
    repeats = [one.id for one in expected if any(problem.code == "duplicate_id" for problem in one.problems)]
    assert found.duplicate_count == len(repeats) and set(found.duplicate_examples) <= set(repeats)
    assert found.ids_digest == multiset_digest(one.id for one in expected)
    assert found.ids_digest == add_multisets(unit.ids_digest for unit in found.units)
    assert [unit.id for unit in found.units] == [f"{n:06d}" for n in range(len(found.units))]
    assert all(len({one.schema for one in documents((unit,), config)}) == 1 for unit in found.units)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("cut", "again"), [(7, 4), (50, None), (None, 1000), (1, 9)])
def test_a_share_is_the_same_documents_in_units_of_their_own(
    tmp_path: Path, form: str, cut: int | None, again: int | None
) -> None:
    config = write(tmp_path / f"in.{form}", rows_of(120))
    whole = scan(config, cut)
    found = share_of(whole.units, config, whole.snapshot, again, held)
    check(found, whole, config)
    assert any("duplicate_id" in str(one.problems) for one in documents(found.units, config))
    assert again is None or max(unit.rows for unit in found.units) <= again
    assert share_of(whole.units[::-1], config, whole.snapshot, again, held) == found


@pytest.mark.parametrize("column", ["id", None])
def test_text_files_are_shared_too(tmp_path: Path, column: str | None) -> None:
    for n in range(30):
        (tmp_path / f"{n:02d}.txt").write_text(f"text {n % 25}")
    config = InputConfig(path=str(tmp_path), schema="k@1", id_column=column)
    whole = scan(config, 4)
    check(share_of(whole.units, config, whole.snapshot, 3, held), whole, config)


def test_what_came_since_is_not_looked_at_and_what_changed_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.jsonl", rows_of(40))
    config = InputConfig(path=str(folder), schema_column="s")
    whole = scan(config, 10)
    write(folder / "0.jsonl", [{"id": "d1", "text": "new", "s": "k0@1"}])
    with (folder / "a.jsonl").open("a") as file:
        file.write('{"id": "appended", "text": "new", "s": "k0@1"}\n')
    found = share_of(whole.units, config, whole.snapshot, None, held)
    check(found, whole, config)
    write(folder / "a.jsonl", [{**row, "text": "other"} for row in rows_of(40)])
    with pytest.raises(InputError, match="changed since the scan"):
        share_of(whole.units, config, whole.snapshot, None, held)


def test_a_share_of_a_part_of_the_input_has_nothing_of_the_rest(tmp_path: Path) -> None:
    config = write(tmp_path / "in.jsonl", rows_of(120))
    part = scan(config, 10, lambda key, _schema, _content: int(key[1:]) >= 60)
    check(share_of(part.units, config, part.snapshot, 6, held), part, config)


def test_an_empty_share_says_so(tmp_path: Path) -> None:
    config = write(tmp_path / "in.jsonl", rows_of(20))
    whole = scan(config, 10)
    with pytest.raises(InputError, match=r"none of the 20 documents.*larger share"):
        share_of(whole.units, config, whole.snapshot, None, lambda _key: False)
