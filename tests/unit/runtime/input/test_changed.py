"""A unit that no longer holds what the scan saw is refused, and one that does is not, whatever changed elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input import InputScan, Unit, read_unit, scan
from pipeline.schema.fingerprint import add_multisets, multiset_digest

CHANGED = r"was changed since the scan\. Start a new run\."
ROWS = [{"id": f"d{i}", "text": f"text {i}"} for i in range(9)]


def config(path: object, **more: Any) -> InputConfig:
    return InputConfig(**{"path": str(path), "schema": "note", **more})


def write(path: Path, rows: list[dict[str, str]] = ROWS) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    else:
        path.mkdir(exist_ok=True)
        for row in rows:
            (path / f"{row['id']}.txt").write_text(row["text"])
    return path


def refused(found: InputScan, of: InputConfig) -> list[int]:
    """Which units are."""
    numbers = []
    for number, unit in enumerate(found.units):
        try:
            read_unit(Unit.from_json(json.loads(json.dumps(unit.to_json()))), of)
        except InputError as error:
            assert str(error).endswith("was changed since the scan. Start a new run."), error
            numbers.append(number)
    return numbers


NAMES = ["a.jsonl", "a.csv", "a.parquet", "texts"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content_ids", [False, True])
def test_a_text_of_equal_length_under_the_same_id_is_a_change(tmp_path: Path, name: str, content_ids: bool) -> None:
    of = config(write(tmp_path / name), **({"id_column": None} if content_ids else {}))
    found = scan(of, 2)
    assert refused(found, of) == []
    write(tmp_path / name, [*ROWS[:4], {"id": "d4", "text": "TEXT 4"}, *ROWS[5:]])
    assert refused(found, of) == ([2] if name != "a.parquet" else [0, 1, 2, 3, 4])
    assert refused(scan(of, 2), of) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_each_unit_holds_is_in_its_ids_digest(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    for size in (1, 4, 20):
        for limit in (None, 7):
            of = config(tmp_path / name, limit=limit)
            found = scan(of, size)
            for unit in found.units:
                assert unit.ids_digest == multiset_digest(document.id for document in read_unit(unit, of))
            assert add_multisets(unit.ids_digest for unit in found.units) == found.ids_digest


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_rows_that_were_added_change_no_unit_before_them(tmp_path: Path, name: str) -> None:
    of = config(write(tmp_path / name))
    found = scan(of, 4)
    write(tmp_path / name, [*ROWS, *ROWS])
    assert refused(found, of) == []
    write(tmp_path / name, [ROWS[8], *ROWS])
    assert refused(found, of) == [0, 1, 2]
    write(tmp_path / name, ROWS[:5])
    assert refused(found, of) == [1, 2]


def test_a_header_that_swaps_columns_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text\na,b\nc,d\n")
    found = scan(config(path), 1)
    path.write_text("text,id\na,b\nc,d\n")
    assert refused(found, config(path)) == [0, 1]


def test_bytes_that_move_from_one_text_to_the_next_are_a_change(tmp_path: Path) -> None:
    of = config(write(tmp_path / "texts", [{"id": "a", "text": "one two"}, {"id": "b", "text": " three"}]))
    found = scan(of, 2)
    write(tmp_path / "texts", [{"id": "a", "text": "one"}, {"id": "b", "text": " two three"}])
    with pytest.raises(InputError, match="texts/a.txt or one of the 1 files after it " + CHANGED):
        read_unit(found.units[0], of)


def test_parquet_that_is_another_file_is_a_change_before_its_columns_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    found = scan(config(path), 5)
    pq.write_table(pa.table({"other": [1]}), path)
    assert refused(found, config(path)) == [0, 1]
    path.write_bytes(b"not Parquet")
    assert refused(found, config(path)) == [0, 1]


def test_parquet_is_told_by_size_and_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    found, before = scan(config(path), 5), path.stat().st_mtime_ns
    os.utime(path, ns=(before, before + 1))
    assert refused(found, config(path)) == [0, 1]
    os.utime(path, ns=(before, before))
    assert refused(found, config(path)) == []


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "txt"])
@pytest.mark.parametrize("content_ids", [False, True])
def test_remote_files_are_checked_too(tmp_path: Path, suffix: str, content_ids: bool) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    folder = f"/{tmp_path.name}{content_ids}{suffix}"

    def upload(rows: list[dict[str, str]]) -> None:
        if suffix == "txt":
            for row in rows:
                memory.pipe(f"{folder}/{row['id']}.txt", row["text"].encode())
        else:
            memory.pipe(f"{folder}/x.{suffix}", write(tmp_path / f"x.{suffix}", rows).read_bytes())

    upload(ROWS)
    of = config(f"fsspec+memory:/{folder}", **({"id_column": None} if content_ids else {}))
    found = scan(of, 4)
    assert refused(found, of) == []
    # This file system tells no times, so that files which are not hashed change by their size only.
    upload([{"id": "d0", "text": "another text, a longer one"}, *ROWS[1:]])
    assert refused(found, of)[0] == 0


@given(st.lists(st.sampled_from([b"", b" ", b"{}", b"x", b'{"id":1,"text":"t"}', b'a,"b', b'"', b"1,t"]), max_size=12),
       st.integers(1, 4), st.sampled_from([b"\n", b"\r\n"]), st.sampled_from(["jsonl", "csv"]), st.data())  # fmt: skip
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_byte_of_a_row_counts(
    tmp_path: Path, parts: list[bytes], size: int, end: bytes, suffix: str, data: Any
) -> None:
    path = tmp_path / f"a.{suffix}"
    first = b"id,text\n1,t" if suffix == "csv" else b'{"id": 1, "text": "t"}'
    path.write_bytes(b"\xef\xbb\xbf" + end.join([first, *parts]))
    found = scan(config(path), size)
    assert refused(found, config(path)) == []
    number = data.draw(st.integers(0, len(found.units) - 1))
    unit = found.units[number]
    place = data.draw(st.integers(unit.start, unit.end - 1))
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=CHANGED):
        read_unit(unit, config(path))
    for other in (*found.units[:number], *found.units[number + 1 :]):
        read_unit(other, config(path))


def test_a_record_of_another_version_is_an_input_error(tmp_path: Path) -> None:
    (unit,) = scan(config(write(tmp_path / "a.jsonl")), 20).units
    record = unit.to_json()
    assert Unit.from_json(record) == unit
    for broken in ({k: v for k, v in record.items() if k != "check"}, {**record, "more": 1}, {"id": "000000"}):
        with pytest.raises(InputError, match="unit 000000 was recorded by another version"):
            Unit.from_json(broken)
