"""Units have one schema each, cut in a bounded window; whatever their size, each row is in exactly one."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input import InputScan, Unit, grouping, read_unit, scan
from pipeline.runtime.input.picks import packed, unpacked
from pipeline.schema.fingerprint import add_multisets, multiset_digest

FORMATS = ["jsonl", "csv", "parquet"]
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
            for number, row in enumerate(rows):
                writer.writerow(row)
                file.write("\n" * (number % 3 == 2))
    else:
        path.write_text("".join(json.dumps(row) + "\n" * (1 + n % 3) for n, row in enumerate(rows)))
    return InputConfig(path=str(path), schema_column="s")


def travelled(unit: Unit) -> Unit:
    return Unit.from_json(json.loads(json.dumps(unit.to_json())))


def read(found: InputScan, config: InputConfig) -> list[Document]:
    """All documents in the order of their rows, after checking what units promise."""
    documents = []
    for unit in found.units:
        assert travelled(unit) == unit
        mine = read_unit(unit, config)
        assert {document.schema for document in mine} == {unit.schema}
        assert unit.ids_digest == multiset_digest(document.id for document in mine)
        documents += mine
    assert found.documents == len(documents)
    assert found.ids_digest == add_multisets(unit.ids_digest for unit in found.units)
    assert found.schema_counts == Counter(document.schema for document in documents)
    return sorted(documents, key=lambda document: int(document.source.rpartition("#")[2]))


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z", ""])), min_size=1, max_size=40),
    st.none() | st.integers(1, 4),
    st.sampled_from(FORMATS),
    st.none() | st.sets(st.sampled_from("abcdef")),
)
@QUIET
def test_any_mix_is_read_back_whole_with_its_duplicates(
    tmp_path: Path, mix: list[tuple[str, str]], size: int | None, suffix: str, kept: set[str] | None
) -> None:
    rows = [{"id": key, "text": f"text {n}", "s": schema} for n, (key, schema) in enumerate(mix)]
    config = write(tmp_path / f"a.{suffix}", rows)
    found = scan(config, size, None if kept is None else lambda key, _schema, _content: key in kept)
    taken = [n for n, (key, _) in enumerate(mix) if kept is None or key in kept]
    documents = read(found, config)
    assert [(d.id, d.text, d.schema) for d in documents] == [(*mix[n], f"text {n}")[::2] + mix[n][1:] for n in taken]
    repeated = {n for n in taken if mix[n][0] in {key for key, _ in mix[:n]}}
    assert [any(p.code == "duplicate_id" for p in d.problems) for d in documents] == [n in repeated for n in taken]
    assert found.duplicate_count == len(repeated)
    assert list(found.duplicate_examples) == list(dict.fromkeys(mix[n][0] for n in sorted(repeated)))[:5]
    assert all(unit.rows <= (size or grouping.SMALLEST) for unit in found.units)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_unit_stays_within_its_window_and_a_stretch_of_one_schema_is_read_alone(tmp_path: Path, suffix: str) -> None:
    units = scan(write(tmp_path / f"mixed.{suffix}", rows_of(4000, 50)), 10).units
    assert max(unit.places()[-1] for unit in units) < 16 * 10
    assert all(before.first_row < after.first_row for before, after in pairwise(units))
    config = write(tmp_path / f"sorted.{suffix}", sorted(rows_of(900, 3), key=lambda row: str(row["s"])))
    units = scan(config, 10).units
    assert not any(unit.picks for unit in units)
    assert all(before.end == after.start for before, after in pairwise(units))


def test_units_grow_with_the_input(tmp_path: Path) -> None:
    config = write(tmp_path / "a.jsonl", [{**row, "s": "k@1"} for row in rows_of(9000, 1)])
    sizes = [unit.rows for unit in scan(config).units]
    assert sizes[:-1] == [grouping.size_of(None, sum(sizes[:n])) for n in range(len(sizes) - 1)]
    assert [grouping.size_of(None, before) for before in (0, 3000, 10**9)] == [32, 46, 1000]


@pytest.mark.parametrize("suffix", FORMATS)
def test_large_rows_make_small_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(grouping, "UNIT_BYTES", 3000)
    noise = random.Random(3)
    rows = [{**row, "text": noise.randbytes(250).hex()} for row in rows_of(90, 2)]
    rows[40]["text"] = noise.randbytes(5000).hex()
    config = write(tmp_path / f"a.{suffix}", rows)
    found = scan(config, 50)
    sizes = [sum(len(document.text) for document in read_unit(unit, config)) for unit in found.units]
    assert sum(size > 3000 for size in sizes) == 1  # the one that no unit could hold
    assert max(unit.rows for unit in found.units) <= 6
    if suffix != "parquet":  # of which only means are known
        assert sorted(unit.rows for unit in found.units)[-4:] == [5, 5, 5, 5]


def test_a_window_ends_after_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(tmp_path / "a.jsonl", rows_of(2000, 40))
    monkeypatch.setattr(grouping, "_WINDOW_BYTES", 5000)
    assert all(unit.end - unit.start <= 5000 for unit in scan(config, 100).units)


@pytest.mark.parametrize("suffix", [*FORMATS, "txt"])
def test_few_rows_among_many_that_are_left_out_share_units(tmp_path: Path, suffix: str) -> None:
    if suffix == "txt":
        for n in range(400):
            (tmp_path / f"d{n:03d}.txt").write_text(f"text {n}")
        config = InputConfig.model_validate({"path": str(tmp_path), "schema": "k0@1"})
    else:
        config = write(tmp_path / f"a.{suffix}", rows_of(400, 1))
    kept = {f"d{n:03d}.txt" if suffix == "txt" else f"d{n}" for n in range(0, 400, 40)}
    found = scan(config, 4, lambda key, _schema, _content: key in kept)
    assert [unit.rows for unit in found.units] == [4, 4, 2]
    assert {d.id for unit in found.units for d in read_unit(travelled(unit), config)} == kept
    assert found.snapshot == scan(config, 4).snapshot
    nothing = scan(config, 4, lambda *_: False)
    assert (nothing.units, nothing.documents, nothing.snapshot) == ((), 0, found.snapshot)


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_a_row_is_told_by_changes_with_all_that_is_read_of_it(tmp_path: Path, suffix: str) -> None:
    def told(more: str = "m", text: str = "t\ud800", columns: tuple[str, ...] = ("more",), s: str = "k") -> list[str]:
        row = {"id": "a", "text": text.replace("\ud800", "") if suffix == "parquet" else text, "s": s, "more": more}
        path = tmp_path / f"a.{suffix}"
        if suffix == "csv":
            path.write_bytes(("\n".join([",".join(row), ",".join(row.values())])).encode("utf-8", "replace"))
        else:
            write(path, [row])
        seen: list[str] = []
        config = InputConfig(path=str(path), schema_column="s", columns=columns)
        scan(config, 1, lambda _key, _schema, content: bool(seen.append(content)))
        return seen

    same = told()
    assert same == told(s="other")
    assert told(columns=()) == told(more="n", columns=())
    assert len({*same, *told(more="n"), *told(text="u"), *told(text=""), *told(columns=())}) == 5


@given(st.lists(st.sampled_from("xyz"), min_size=4, max_size=20), st.sampled_from(["jsonl", "csv"]), st.data())
@settings(QUIET, max_examples=40)
def test_a_changed_byte_is_found_by_its_unit_and_misleads_no_other(
    tmp_path: Path, mix: list[str], suffix: str, data: Any
) -> None:
    config = write(tmp_path / f"a.{suffix}", [{"id": f"d{n}", "text": f"t {n}", "s": s} for n, s in enumerate(mix)])
    found = scan(config, 3)
    before = {unit.id: read_unit(unit, config) for unit in found.units}
    path = tmp_path / f"a.{suffix}"
    content = bytearray(path.read_bytes())
    victim = data.draw(st.sampled_from(found.units))
    row = data.draw(st.sampled_from(before[victim.id])).text.encode()
    at = content.index(row) + data.draw(st.integers(0, len(row) - 1))
    content[at] = data.draw(st.sampled_from(b'\n", \\{}'))
    if bytes(content) == path.read_bytes():
        return
    path.write_bytes(content)
    with pytest.raises(InputError, match="was changed since the scan"):
        read_unit(victim, config)
    for unit in found.units:
        try:
            assert read_unit(unit, config) == before[unit.id]
        except InputError as error:
            assert "was changed since the scan" in str(error)


def test_a_record_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    config = write(tmp_path / "a.jsonl", rows_of(5, 1))
    (unit,) = scan(config, 9).units
    record = {name: value for name, value in unit.to_json().items() if name not in ("schema", "picks")}
    earlier = Unit.from_json(record)
    assert earlier.schema == ""
    assert read_unit(earlier, config) == read_unit(unit, config)


@given(st.sets(st.integers(0, 300), min_size=1).map(sorted))
def test_picks_are_short_and_come_back(rows: list[int]) -> None:
    text = packed(rows)
    assert unpacked(text, len(rows)) == rows
    assert len(text) <= 4 * len(rows)


@pytest.mark.parametrize("picks", ["0x5", "0 1 2", "x", "0x999999999999", "-1", "0 0 ", [0, 1], 7, None, "0\n1"])
def test_picks_that_are_none_are_of_another_version(tmp_path: Path, picks: Any) -> None:
    (unit,) = scan(write(tmp_path / "a.jsonl", rows_of(2, 1)), 9).units
    with pytest.raises(InputError, match="another version"):
        Unit.from_json({**unit.to_json(), "picks": picks or {"a": 1}})
