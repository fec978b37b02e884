"""Every format, cut into units and read back, whole and in pieces."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input import InputScan, Unit, read_unit, scan
from pipeline.schema.fingerprint import multiset_digest

ROWS = [
    {"id": f"d{i}", "text": f"text {i}\nsecond line, “quoted” {'x' * (i % 7)}", "kind": "ab"[i % 2]} for i in range(23)
]


def config(path: object, **more: Any) -> InputConfig:
    return InputConfig(**{"path": str(path), **({} if "schema_column" in more else {"schema": "note"}), **more})


def read_all(found: InputScan, of: InputConfig) -> list[Document]:
    return [document for unit in found.units for document in read_unit(unit, of)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows in the format of the path's suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.ndjson", "a.csv"])
@pytest.mark.parametrize("size", [1, 4, 5, 23, 100])
def test_rows_come_back_once_and_in_order(tmp_path: Path, name: str, size: int) -> None:
    of = config(write(tmp_path / name, ROWS))
    found = scan(of, size)
    documents = read_all(found, of)
    assert [(d.id, d.text) for d in documents] == [(row["id"], row["text"]) for row in ROWS]
    assert [d.source for d in documents] == [f"{tmp_path}/{name}#{i}" for i in range(23)]
    assert {d.schema for d in documents} == {"note"}
    assert not any(d.problems for d in documents)
    assert found.documents == 23 == sum(unit.rows for unit in found.units)
    assert [unit.id for unit in found.units] == [f"{i:06d}" for i in range(-(-23 // size))]
    assert found.ids_digest == multiset_digest(row["id"] for row in ROWS)
    assert (found.schema_counts, found.duplicate_count, found.duplicate_examples) == ({"note": 23}, 0, ())


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv", "texts"])
def test_units_read_in_any_order_and_after_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "texts":
        path.mkdir()
        for row in ROWS:
            (path / f"{row['id']}.txt").write_text(row["text"], encoding="utf-8")
    else:
        write(path, ROWS)
    of = config(path)
    units = list(scan(of, 4).units)
    expected = [read_unit(unit, of) for unit in units]
    order = list(range(len(units))) * 2
    random.Random(7).shuffle(order)
    for number in order:
        travelled = Unit.from_json(json.loads(json.dumps(units[number].to_json())))
        assert travelled == units[number]
        assert read_unit(travelled, of) == expected[number]


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv"])
def test_schema_per_row_and_ids_from_content(tmp_path: Path, name: str) -> None:
    of = config(write(tmp_path / name, ROWS), schema_column="kind", id_column=None)
    found = scan(of, 6)
    documents = read_all(found, of)
    assert found.schema_counts == {"a": 12, "b": 11}
    in_order = sorted(documents, key=lambda d: int(d.source.partition("#")[2]))
    assert [d.schema for d in in_order] == [row["kind"] for row in ROWS]
    assert all(unit.schema == d.schema for unit in found.units for d in read_unit(unit, of))
    assert found.ids_digest == multiset_digest(d.id for d in documents)
    assert all(len(d.id) == 32 for d in documents)
    assert len({d.id for d in documents}) == len({row["text"] for row in ROWS})


@pytest.mark.parametrize("limit", [1, 4, 7, 10, 14, 15, 99])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv", "txt"])
def test_limit_counts_over_files(tmp_path: Path, suffix: str, limit: int) -> None:
    for number in range(3 if suffix != "txt" else 15):
        if suffix == "txt":
            (tmp_path / f"{number:02d}.txt").write_text(ROWS[number]["text"], encoding="utf-8")
        else:
            write(tmp_path / f"{number}.{suffix}", ROWS[number * 5 : number * 5 + 5])
    of = config(tmp_path, limit=limit)
    found = scan(of, 3)
    assert found.documents == min(limit, 15)
    assert [d.text for d in read_all(found, of)] == [row["text"] for row in ROWS[: min(limit, 15)]]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_duplicates_are_found_across_files(tmp_path: Path, suffix: str) -> None:
    ids = [["a", "b", "a"], ["c", "b", "b", "d"], ["e", "d", "a"]]
    for number, part in enumerate(ids):
        write(tmp_path / f"{number}.{suffix}", [{"id": i, "text": f"{number} {i}"} for i in part])
    of = config(tmp_path)
    found = scan(of, 2)
    assert (found.duplicate_count, found.duplicate_examples) == (5, ("a", "b", "d"))
    marked = [[p.code for p in d.problems] == ["duplicate_id"] for d in read_all(found, of)]
    assert marked == [False, False, True, False, True, True, False, False, True, True]
    assert found.ids_digest == multiset_digest(i for part in ids for i in part)


def test_csv_with_quoted_newlines_crlf_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'\xef\xbb\xbfid,text\r\n\r\n1,"a\r\nb ""q"", c"\r\n2,"\n\n"\r\n\r\n3,\xc3\xa9\r\n4,"long '
        + b"x" * 200_000
        + b'\n"'
    )
    for size in (1, 2, 9):
        documents = read_all(scan(config(path), size), config(path))
        assert [d.id for d in documents] == ["1", "2", "3", "4"]
        assert [d.text[:9] for d in documents] == ['a\r\nb "q",', "\n\n", "é", "long xxxx"]
        assert len(documents[3].text) == 200_006


def test_lines_longer_than_a_chunk(tmp_path: Path) -> None:
    rows = [{"id": str(i), "text": "é" * length} for i, length in enumerate([3, 1_700_000, 5, 524_288, 1])]
    for name in ("a.jsonl", "a.csv"):
        of = config(write(tmp_path / name, rows))
        for size in (1, 2, 9):
            assert [d.text for d in read_all(scan(of, size), of)] == [row["text"] for row in rows]


@pytest.mark.parametrize("name", ["a.jsonl", "b.txt"])
def test_byte_order_mark_is_dropped(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + (b'{"id": "x", "text": "hello"}' if name == "a.jsonl" else b"hello"))
    (document,) = read_all(scan(config(path), 9), config(path))
    assert (document.text, document.problems) == ("hello", ())


def test_parquet_with_large_integers_row_groups_and_other_string_types(tmp_path: Path) -> None:
    ids = [2**63 + i for i in range(50)]
    texts = pa.array([f"t{i % 3}" for i in range(50)]).dictionary_encode()
    table = pa.table({"id": pa.array(ids, pa.uint64()), "text": texts, "s": pa.array(["a"] * 50, pa.large_string())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    of = config(tmp_path / "a.parquet", schema_column="s")
    documents = read_all(scan(of, 4), of)
    assert [(d.id, d.text, d.schema) for d in documents] == [(str(i), f"t{n % 3}", "a") for n, i in enumerate(ids)]


lines = st.one_of(
    st.binary(max_size=40),
    st.builds(
        lambda row: json.dumps(row).encode(),
        st.dictionaries(
            st.sampled_from(["id", "text", "s", "other"]),
            st.one_of(st.none(), st.integers(), st.floats(), st.booleans(), st.text(st.characters()), st.just([1])),
        ),
    ),
    st.builds(lambda t: json.dumps({"id": t[:2], "text": t, "s": "a"}, ensure_ascii=False).encode("utf-8", "replace"),
              st.text()),
)  # fmt: skip


@given(st.lists(lines, max_size=30), st.integers(1, 7), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_scan_and_read_agree_on_any_jsonl(
    tmp_path: Path, parts: list[bytes], size: int, content_ids: bool, end: bytes
) -> None:
    first = json.dumps({"id": "ok\ud800", "text": "ok\0", "s": "a"}).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(end.join([first, *parts]))
    of = config(path, schema_column="s", **({"id_column": None} if content_ids else {}))
    found = scan(of, size)
    documents = read_all(found, of)
    assert len(documents) == found.documents
    assert found.ids_digest == multiset_digest(d.id for d in documents)
    assert found.documents == sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))
    assert found.duplicate_count == len(documents) - len({d.id for d in documents})
    assert found.duplicate_count == sum(p.code == "duplicate_id" for d in documents for p in d.problems)
    assert sum(found.schema_counts.values()) == found.documents
    json.dumps([d.text + d.id + d.schema for d in documents], ensure_ascii=False).encode("utf-8")
