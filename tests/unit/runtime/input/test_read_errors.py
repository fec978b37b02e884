"""What stops a job before it starts: each message says what is wrong, where, and what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input import read_unit, scan
from pipeline.runtime.input.scan import MAX_SCHEMAS

ROW = {"id": "1", "text": "t", "kind": "note"}


def config(path: object, **more: Any) -> InputConfig:
    return InputConfig(**{"path": str(path), **({} if "schema_column" in more else {"schema": "note"}), **more})


def fails(path: object, *says: str, **more: Any) -> None:
    with pytest.raises(InputError) as error:
        scan(config(path, **more), 10)
    for words in says:
        assert words in str(error.value)


def write(path: Path, *rows: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        path.write_text("\n".join(lines))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_nothing_there(tmp_path: Path) -> None:
    fails(tmp_path / "no.jsonl", "no.jsonl does not exist", "Give a file")
    fails(tmp_path / "no" / "*.jsonl", f"{tmp_path}/no does not exist")
    fails(tmp_path, "no file matches", str(tmp_path))
    fails(tmp_path / "*.jsonl", "no file matches", "*.jsonl")
    write(tmp_path / "a.jsonl", ROW)
    fails(tmp_path, "no file matches", format="csv")
    fails(tmp_path / "a[z-a].jsonl", "glob that cannot be used")


def test_uris_that_cannot_be_opened_keep_their_secrets(tmp_path: Path) -> None:
    for uri in ("nope://user:secret@host/x", "file:///with blank?key=secret"):
        with pytest.raises(InputError, match="cannot be opened") as error:
            scan(config(uri), 10)
        assert "secret" not in str(error.value)
    fails((tmp_path / "x.csv").as_uri(), "does not exist")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "b.csv", "a.parquet"])
def test_no_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())}), path)
    else:
        path.write_text({"a.jsonl": "\n  \n", "a.csv": "id,text\n\n", "b.csv": ""}[name])
    fails(path, "the input is empty", name)


@pytest.mark.parametrize("content", [b"", b"PAR1 garbage", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_corrupt_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "a.parquet", ROW)
    (tmp_path / "b.parquet").write_bytes(content)
    fails(tmp_path, "cannot read", "b.parquet as Parquet")


def test_corrupt_parquet_page_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [str(i) for i in range(99)], "text": ["marker" * 50 + str(i) for i in range(99)]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    unit = scan(config(path), 100).units[0]
    written = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().replace(b"marker50", b"marker5X"))
    os.utime(path, ns=(written, written))  # a disk's fault and not a change, which is told another way
    with pytest.raises(InputError, match=r"a\.parquet as Parquet"):
        read_unit(unit, config(path))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_missing_columns_are_named_with_the_nearest(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a.{suffix}", ROW)
    columns = "Columns: id, text, kind."
    fails(path, "the column `txt` (input.text_column)", columns, "Did you mean `text`?", text_column="txt")
    fails(path, "`ids` (input.id_column)", columns, "Did you mean `id`?", "`id_column: null`", id_column="ids")
    fails(path, "`kinds` (input.schema_column)", columns, "Did you mean `kind`?", schema_column="kinds")
    without = write(tmp_path / f"b.{suffix}", {"text": "t"})
    fails(without, "the column `id` (input.id_column)", "Or set `id_column: null` to make ids from the texts.")
    assert scan(config(without, id_column=None), 10).documents == 1


def test_jsonl_needs_a_column_in_one_of_the_first_rows_only(tmp_path: Path) -> None:
    other = {"body": "x"}
    assert scan(config(write(tmp_path / "a.jsonl", *[other] * 50, ROW)), 10).documents == 51
    fails(write(tmp_path / "b.jsonl", *[other] * 100, ROW), "no row of the first 100 of", "b.jsonl", "Columns: body")
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3):
        write(many / f"{number}.jsonl", other if number < 2 else ROW)
    assert scan(config(many), 10).documents == 3
    (tmp_path / "c.jsonl").write_text("not json\n" * 3)
    assert scan(config(tmp_path / "c.jsonl"), 10).documents == 3


def test_columns_that_occur_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,text\n1,a,b\n")
    fails(tmp_path / "a.csv", "column `text` (input.text_column) occurs 2 times")
    pq.write_table(pa.table([["1"], ["2"], ["t"]], names=["id", "id", "text"]), tmp_path / "a.parquet")
    fails(tmp_path / "a.parquet", "column `id` (input.id_column) occurs 2 times")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), [1.0, None]),
        (pa.bool_(), [True]),
        (pa.timestamp("us"), [0]),
        (pa.decimal128(5, 0), [1]),
        (pa.list_(pa.string()), [["a"]]),
        (pa.binary(2), [b"ab"]),
        (pa.dictionary(pa.int32(), pa.float64()), [1.0]),
    ],
)
def test_parquet_ids_that_are_neither_strings_nor_integers(tmp_path: Path, kind: pa.DataType, values: Any) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": pa.array(values, kind), "text": [f"t{i}" for i in range(len(values))]})
    pq.write_table(table, path)
    fails(path, f"column `id` (input.id_column) of {path} is of type {pq.read_schema(path).field('id').type}", "null`")
    assert scan(config(path, id_column=None), 10).documents == len(values)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.int8(),
        pa.uint64(),
        pa.null(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_parquet_ids_that_are_strings_integers_or_only_null(tmp_path: Path, kind: pa.DataType) -> None:
    pq.write_table(pa.table({"id": pa.array([None], kind), "text": ["t"]}), tmp_path / "a.parquet")
    assert scan(config(tmp_path / "a.parquet"), 10).documents == 1


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    bad = os.fsdecode(b"caf\xe9")
    for number, path in enumerate((f"{bad}.txt", f"below/{bad}.jsonl", f"{bad}/below/a.txt", f"_{bad}.png")):
        root = tmp_path / str(number)
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("t")
        directory = root / "below" if path.startswith("below") else root
        for of in (root, root / "**/*", root.as_uri()):
            fails(of, f"the directory {directory} holds a name that is not UTF-8", "caf\\xe9", "Rename it")
        fails(root / path, "input.path", "is not UTF-8")


def test_text_files_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("t")
    fails(tmp_path, "text files have no columns", schema_column="kind")


def test_header_that_is_not_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,"text"x\n1,t\n')
    fails(tmp_path, "the header of", "a.csv", "cannot be read")


def test_mixed_formats_unless_one_is_chosen(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROW)
    write(tmp_path / "b.csv", {**ROW, "id": "2"})
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "part-0").write_text(json.dumps({**ROW, "id": "3"}))
    fails(tmp_path, "mixes formats (1 csv, 1 jsonl, 1 text)", "set `input.format`")
    fails(tmp_path / "*.*", "mixes formats")
    assert scan(config(tmp_path, format="jsonl"), 10).documents == 2
    assert scan(config(tmp_path / "part-*", format="jsonl"), 10).documents == 1
    fails(tmp_path / "part-*", "cannot tell the format of part-0", ".ndjson", "set `input.format`")
    fails(tmp_path / "part-0", "cannot tell the format of part-0")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.JSONL.zst"])
def test_compressed_files_are_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "b.jsonl", ROW)
    (tmp_path / "backup.zip").write_bytes(b"PK")
    assert scan(config(tmp_path), 10).documents == 1
    (tmp_path / name).write_bytes(b"\x1f\x8b")
    for path in (tmp_path, tmp_path / name, tmp_path / "*"):
        fails(path, "is compressed, which is not supported", "Decompress it")
    fails(tmp_path / name, f"{name} in", format="jsonl")


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_file_that_changed_after_the_scan(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a.{suffix}", ROW, ROW, ROW)
    of = config(path)
    units = scan(of, 2).units
    write(path, ROW)
    with pytest.raises(InputError, match=r"was changed since the scan\. Start a new run\."):
        read_unit(units[0], of)
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        read_unit(units[1], of)


def test_file_that_may_not_be_read_or_vanished(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROW)
    write(tmp_path / "b.jsonl", {**ROW, "id": "2"})
    units = scan(config(tmp_path), 2).units
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(InputError, match=r"cannot read .*b\.jsonl"):
        read_unit(units[1], config(tmp_path))


def test_a_column_that_is_surely_not_that_of_schemas_is_refused(tmp_path: Path) -> None:
    """Each name would have a unit of its own."""
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": "x"}) + "\n" for n in range(MAX_SCHEMAS + 1)))
    with pytest.raises(InputError, match="schema_column"):
        scan(InputConfig(path=str(path), schema_column="id"))
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": "x"}) + "\n" for n in range(MAX_SCHEMAS)))
    assert len(scan(InputConfig(path=str(path), schema_column="id")).schema_counts) == MAX_SCHEMAS
