"""The columns of a row that business rules see: JSON values, whatever the format, and they change nothing else."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input import read_unit, scan
from pipeline.runtime.input.values import MAX_DEPTH, json_value


def read(path: Path, *columns: str, **more: Any) -> list[Document]:
    """The documents, after checking that columns change neither units nor ids nor texts."""
    plain = InputConfig.model_validate({"path": str(path), "schema": "note", **more})
    config = plain.model_copy(update={"columns": columns})
    found = scan(config, 2)
    assert found == scan(plain, 2)
    documents = [document for unit in found.units for document in read_unit(unit, config)]
    without = [document for unit in found.units for document in read_unit(unit, plain)]
    assert [(d.id, d.text, d.source) for d in documents] == [(d.id, d.text, d.source) for d in without]
    assert not any(d.columns for d in without)
    return documents


def jsonl(path: Path, *rows: Any) -> Path:
    file = path / "in.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def parquet(path: Path, **columns: Any) -> Path:
    size = len(next(iter(columns.values())))
    ids = [f"d{n}" for n in range(size)]
    pq.write_table(pa.table({"id": ids, "text": [f"text {n}" for n in ids], **columns}), path / "in.parquet")
    return path / "in.parquet"


@pytest.mark.parametrize("content_ids", [False, True])
def test_jsonl_columns_are_the_rows_values(tmp_path: Path, content_ids: bool) -> None:
    order = {"no": 7, "lines": [{"sum": 1.5, "paid": True}], "note": None, "big": 2**70}
    path = jsonl(tmp_path, {"id": "a", "text": "t", "order": order, "other": 1}, {"id": "b", "text": "u"})
    first, second = read(path, "order", "id", "order", **({"id_column": None} if content_ids else {}))
    assert first.columns == {"order": order, "id": "a"}
    assert second.columns == {"id": "b"}  # a rule asks has(input.order)
    assert first.problems == second.problems == ()


def test_csv_columns_are_texts(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text,total,who\n1,t,007.50,"a\nb"\n2,u,,\n')
    first, second = read(tmp_path / "in.csv", "total", "who")
    assert first.columns == {"total": "007.50", "who": "a\nb"}
    assert second.columns == {"total": "", "who": ""}


PARQUET = [
    (pa.array([Decimal("10.00"), Decimal("-0.10"), None], pa.decimal128(10, 2)), [10.0, -0.1, None]),
    (pa.array([Decimal(10), Decimal(2**70), None], pa.decimal128(38, 0)), [10, 2**70, None]),
    (pa.array([Decimal(2**70), Decimal("1.5"), None], pa.decimal128(38, 2)), [2**70, 1.5, None]),
    (pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]), ["2024-02-29", None, "0001-01-01"]),
    (
        pa.array([1, 86_400_000_000_001, None], pa.timestamp("ns", "UTC")),
        ["1970-01-01T00:00:00.000000001+00:00", "1970-01-02T00:00:00.000000001+00:00", None],
    ),
    (pa.array([dt.datetime(2024, 1, 2, 3, 4, 5), None, None]), ["2024-01-02T03:04:05", None, None]),
    (pa.array([dt.time(3, 4, 5), None, None]), ["03:04:05", None, None]),
    (pa.array([dt.timedelta(seconds=90), None, None]), [90.0, None, None]),
    (pa.array([float("nan"), float("inf"), 0.5]), [None, None, 0.5]),
    (pa.array([b"caf\xc3\xa9", None, b""], pa.binary()), ["café", None, ""]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())), [{"k": 1}, {}, None]),
    (pa.array([{"a": [1, None]}, None, {"a": None}]), [{"a": [1, None]}, None, {"a": None}]),
    (pa.array([2**63 - 1, -(2**63), None]), [2**63 - 1, -(2**63), None]),
]


@pytest.mark.parametrize(("column", "expected"), PARQUET, ids=lambda value: str(getattr(value, "type", "")))
def test_parquet_columns_become_json(tmp_path: Path, column: pa.Array, expected: list[Any]) -> None:
    documents = read(parquet(tmp_path, x=column), "x")
    found = [document.columns["x"] for document in documents]
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    assert not any(document.problems for document in documents)
    json.dumps(found, allow_nan=False)


def test_a_decimal_that_no_double_holds_is_read_like_the_same_digits_of_json(tmp_path: Path) -> None:
    digits = "0.12345678901234567890123"
    (document,) = read(parquet(tmp_path, x=pa.array([Decimal(digits)], pa.decimal128(38, 30))), "x")
    assert document.columns["x"] == json.loads(digits)


def test_one_value_that_cannot_be_taken_costs_its_own_document(tmp_path: Path) -> None:
    far = pa.array([0, 2**62, 1], pa.timestamp("us"))
    twice = pa.array([[("k", 1)], [("k", 1)], [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    broken = pa.StructArray.from_arrays([pa.array([b"\xff", b"ok", b"ok"]).cast(pa.binary()).view(pa.string())], ["s"])
    documents = read(parquet(tmp_path, far=far, twice=twice, broken=broken), "far", "twice", "broken")
    codes = [[(p.code, p.message.split("`")[1]) for p in document.problems] for document in documents]
    assert codes == [
        [("document_not_utf8", "broken")],
        [("document_unreadable", "far")],
        [("document_unreadable", "twice")],
    ]
    assert [set(document.columns) for document in documents] == [
        {"far", "twice"},
        {"twice", "broken"},
        {"far", "broken"},
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", "text": "t", "x": 1, "x": 2}', "more than once"),
        ('{"id": "a", "text": "t", "x": [{"k": 1, "k": 2}]}', "repeats a key"),
        ('{"id": "a", "text": "t", "x": ' + "[" * 65 + "]" * 65 + "}", "nested deeper"),
    ],
)
def test_an_ambiguous_or_bottomless_value_is_told_and_not_guessed(tmp_path: Path, line: str, says: str) -> None:
    bad, good = read(jsonl(tmp_path, line, {"id": "b", "text": "t", "x": 1}), "x")
    assert [p.code for p in bad.problems] == ["document_unreadable"]
    assert "`x`" in bad.problems[0].message
    assert says in bad.problems[0].message
    assert (bad.id, bad.columns, good.columns) == ("a", {}, {"x": 1})


def test_characters_that_cannot_be_stored_are_replaced_and_told_wherever_they_stand(tmp_path: Path) -> None:
    path = jsonl(tmp_path, {"id": "a", "text": "t", "x": {"k\x00": ["\ud800", "fine"]}, "y": "é"})
    (document,) = read(path, "x", "y")
    assert document.columns == {"x": {"k\ufffd": ["\ufffd", "fine"]}, "y": "é"}
    assert [p.code for p in document.problems] == ["document_characters_replaced"]
    assert document.problems[0].message.startswith("2 NUL or lone surrogate characters of column `x`")


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_missing_column_is_told_before_the_run_with_the_nearest(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in.{suffix}"
    table = pa.table({"id": ["a"], "text": ["t"], "order_total": ["1"]})
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        path.write_text(
            '{"id": "a", "text": "t", "order_total": 1}' if suffix == "jsonl" else "id,text,order_total\na,t,1\n"
        )
    config = InputConfig.model_validate({"path": str(path), "schema": "note", "columns": ["id", "ordertotal"]})
    with pytest.raises(InputError, match=r"`ordertotal` \(input.columns\).*Did you mean `order_total`"):
        scan(config, 5)


def test_text_files_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("t")
    config = InputConfig.model_validate({"path": str(tmp_path / "a.txt"), "schema": "note", "columns": ["x"]})
    with pytest.raises(InputError, match=r"text files have no columns.*input\.columns"):
        scan(config, 5)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.dates()
    | st.datetimes() | st.times() | st.timedeltas() | st.uuids() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@given(ANYTHING)
def test_whatever_a_reader_hands_over_becomes_json_or_a_fault(value: Any) -> None:
    found = json_value(value)
    assert found.json is None or not found.fault
    text = json.dumps(found.json, allow_nan=False, ensure_ascii=False)
    assert "\x00" not in text
    text.encode("utf-8")


@given(st.integers(MAX_DEPTH - 3, MAX_DEPTH + 3), st.sampled_from([list, dict]))
def test_depth_is_bounded(depth: int, kind: Any) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind is list else {"k": value}
    assert bool(json_value(value).fault) == (depth > MAX_DEPTH)
