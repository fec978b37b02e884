"""What is wrong with one document is told on that document, and never stops a job or loses a row."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input import read_unit, scan
from pipeline.schema.fingerprint import multiset_digest
from pipeline.steps.codes import CODES

GOOD = {"id": "good", "text": "good", "s": "note"}


def read(path: Path, **more: Any) -> list[Document]:
    """All documents, after checking that scan and read agree whatever the size of units."""
    config = InputConfig(**{"path": str(path), **({} if "schema_column" in more else {"schema": "note"}), **more})
    results = []
    for size in (1, 2, 50):
        found = scan(config, size)
        documents = [document for unit in found.units for document in read_unit(unit, config)]
        results.append(sorted(documents, key=lambda document: document.source))
        assert found.ids_digest == multiset_digest(d.id for d in results[-1])
    assert results[0] == results[1] == results[2]
    problems = [p for d in results[0] for p in d.problems]
    assert all(p.attempt == 0 and p.pointer == "" and CODES[p.code].layer == "read" for p in problems)
    return results[0]


def second(path: Path, line: bytes | dict[str, Any], **more: Any) -> tuple[Document, list[str], str]:
    """The document of a JSONL line that follows a good one, its codes, and its messages."""
    raw = line if isinstance(line, bytes) else json.dumps(line).encode()
    path = path / "in.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n\n  \n" + raw + b"\n" + json.dumps({**GOOD, "id": "z"}).encode())
    documents = read(path, **more)
    assert [documents[0].id, documents[-1].id] == ["good", "z"] or more
    assert len(documents) == 3
    problems = documents[1].problems
    return documents[1], [p.code for p in problems], "; ".join(p.message for p in problems)


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (b"{not json", "{not json", "not JSON: Expecting property name"),
        (b"[1, 2]", "[1, 2]", "type list, not an object"),
        (b"null", "null", "type NoneType, not an object"),
        (b'{"text": "cut', '{"text": "cut', "not JSON: Unterminated string"),
        (b"[" * 200_000, "[" * 200_000, "nested too deeply"),
        (b'{"id": ' + b"9" * 5000 + b"}", '{"id": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
    ],
)
def test_line_that_is_not_an_object(tmp_path: Path, line: bytes, text: str, message: str) -> None:
    document, codes, messages = second(tmp_path, line)
    assert (document.id, document.text, document.schema) == ("in.jsonl#1", text, "note")
    assert codes == ["document_unreadable"]
    assert message in messages


@pytest.mark.parametrize("name", ["id", "text", "s"])
def test_a_key_that_is_used_may_not_repeat(tmp_path: Path, name: str) -> None:
    whole = {"id": "x", "text": "t", "s": "note"}
    line = json.dumps(whole)[:-1] + f', "{name}": "again"}}'
    document, codes, messages = second(tmp_path, line.encode(), schema_column="s")
    assert (document.id, document.text, codes[-1]) == ("in.jsonl#1", line, "document_unreadable")
    assert f"the key `{name}` occurs more than once" in messages
    escaped = line.replace('"text": "again"', '"te\\u0078t": "again"')
    assert "occurs more than once" in second(tmp_path, escaped.encode(), schema_column="s")[2]


def test_other_keys_may_repeat(tmp_path: Path) -> None:
    line = b'{"id": "x", "n": 1, "n": {"text": 1, "text": 2}, "text": "t", "s": [{"id": 1, "id": 2, "s": 1, "s": 2}]}'
    document, codes, _ = second(tmp_path, line)
    assert (document.id, document.text, codes) == ("x", "t", [])
    document, codes, _ = second(tmp_path, b'{"id": "a", "id": "b", "text": "t"}', id_column=None)
    assert (document.text, codes) == ("t", [])


def test_line_that_is_neither_utf8_nor_json(tmp_path: Path) -> None:
    document, codes, messages = second(tmp_path, b"\xff\x00oops")
    assert document.text == "\ufffd\ufffdoops"
    assert codes == ["document_not_utf8", "document_characters_replaced", "document_unreadable"]
    assert "invalid start byte at byte 0" in messages


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "column `text` is missing, not a string"),
        ({"text": None}, "column `text` is null"),
        ({"text": 5}, "column `text` is a int"),
        ({"text": ["a"]}, "column `text` is a list"),
        ({"text": {"a": 1}}, "column `text` is an object"),
    ],
)
def test_text_that_is_no_string(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    document, codes, messages = second(tmp_path, {"id": "x", **value})
    assert (document.id, document.text, codes) == ("x", "", ["document_unreadable"])
    assert message in messages
    document, codes, _ = second(tmp_path, {"id": "x", **value}, id_column=None)
    assert (document.id, codes) == ("in.jsonl#1", ["document_unreadable"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "is missing"),
        ({"id": None}, "is null"),
        ({"id": ""}, "is an empty string"),
        ({"id": True}, "is a bool"),
        ({"id": 1.0}, "is a float"),
        ({"id": [1]}, "is a list"),
    ],
)
def test_row_without_an_id_gets_its_position(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    document, codes, messages = second(tmp_path, {"text": "t", **value})
    assert (document.id, document.text, codes) == ("in.jsonl#1", "t", ["document_without_id"])
    assert f"column `id` {message}, not a string or an integer" == messages


def test_positional_ids_differ_between_files_of_one_name(tmp_path: Path) -> None:
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "x.jsonl").write_text(json.dumps({**GOOD, "id": part}) + "\noops\n")
    assert [d.id for d in read(tmp_path)] == ["a", "a/x.jsonl#1", "b", "b/x.jsonl#1"]


@pytest.mark.parametrize("identifier", [7, -1, 10**40])
def test_integers_are_ids(tmp_path: Path, identifier: int) -> None:
    document, codes, _ = second(tmp_path, {"id": identifier, "text": "t"})
    assert (document.id, codes) == (str(identifier), [])


@pytest.mark.parametrize("value", [{}, {"s": None}, {"s": ""}, {"s": 3}])
def test_row_without_a_schema(tmp_path: Path, value: dict[str, Any]) -> None:
    document, codes, messages = second(tmp_path, {"id": "x", "text": "t", **value}, schema_column="s")
    assert (document.schema, codes) == ("", ["document_without_schema"])
    assert "column `s` is" in messages


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    document, codes, _ = second(tmp_path, b'{"id": "x", "text": "caf\xe9"}')
    assert (document.text, codes) == ("caf\ufffd", ["document_not_utf8"])

    (tmp_path / "a.csv").write_bytes(b"id,text\nx,caf\xe9\ny,ok\n")
    documents = read(tmp_path / "a.csv")
    assert [(d.id, d.text) for d in documents] == [("x", "caf\ufffd"), ("y", "ok")]
    assert [[p.code for p in d.problems] for d in documents] == [["document_not_utf8"], []]

    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    (document,) = read(tmp_path / "a.txt")
    assert (document.id, document.text) == ("a.txt", "caf\ufffd")
    assert [p.code for p in document.problems] == ["document_not_utf8"]


@pytest.mark.parametrize("dictionary", [False, True])
def test_parquet_strings_that_are_not_utf8(tmp_path: Path, dictionary: bool) -> None:
    binary = pa.array([b"ok", b"caf\xe9", b"fine"])
    text = pa.Array.from_buffers(pa.string(), 3, binary.buffers())
    table = pa.table({"id": text, "text": text.dictionary_encode() if dictionary else text, "b": binary})
    pq.write_table(table, tmp_path / "a.parquet")
    for column in ("text", "b"):
        documents = read(tmp_path / "a.parquet", text_column=column)
        assert [(d.id, d.text) for d in documents] == [(v, v) for v in ("ok", "caf\ufffd", "fine")]
        assert [[p.code for p in d.problems] for d in documents] == [[], ["document_not_utf8"] * 2, []]


@pytest.mark.parametrize("text", ["", " \n\t\u2003"])
def test_blank_text(tmp_path: Path, text: str) -> None:
    document, codes, _ = second(tmp_path, {"id": "x", "text": text})
    assert (document.text, codes) == (text, ["document_empty"])
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (document,) = read(tmp_path / "a.txt")
    assert [p.code for p in document.problems] == ["document_empty"]


def test_characters_that_cannot_be_stored(tmp_path: Path) -> None:
    document, codes, messages = second(tmp_path, b'{"id": "x", "text": "a\\u0000b\\ud800c\\ud83d\\ude00"}')
    assert (document.text, codes) == ("a\ufffdb\ufffdc😀", ["document_characters_replaced"])
    assert messages == "2 NUL or lone surrogate characters of the text replaced by U+FFFD"
    document, codes, messages = second(tmp_path, b'{"id": "\\udc00x", "text": "t"}')
    assert (document.id, codes) == ("\ufffdx", ["document_characters_replaced"])
    assert "of the id" in messages


def test_ids_from_content_hash_the_text_as_it_was(tmp_path: Path) -> None:
    document, codes, _ = second(tmp_path, b'{"text": "a\\ud800"}', id_column=None)
    assert document.id == hashlib.sha256(b"a\xed\xa0\x80").hexdigest()[:32]
    document, codes, _ = second(tmp_path, {"text": "good"}, id_column=None)
    assert codes == ["duplicate_id"]


def test_duplicate_names_its_id(tmp_path: Path) -> None:
    document, codes, messages = second(tmp_path, {"id": "good", "text": "again"})
    assert (document.text, codes) == ("again", ["duplicate_id"])
    assert messages == "the id 'good' occurred before in the input"


def test_malformed_csv_records(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text\n1,ok\n2,"a"b\n3,a,b,c\n4\n5,a\rb\n6,ok\n7,"never closed\n8,swallowed\n')
    documents = read(path)
    assert [d.id for d in documents] == ["1", "a.csv#1", "a.csv#2", "4", "a.csv#4", "6", "a.csv#6"]
    assert [d.text for d in documents] == [
        "ok", '2,"a"b', "3,a,b,c", "", "5,a\rb", "ok", '7,"never closed\n8,swallowed'
    ]  # fmt: skip
    codes = [[p.code for p in d.problems] for d in documents]
    assert codes == [[], *[["document_unreadable"]] * 4, [], ["document_unreadable"]]
    assert "4 fields, the header 2" in documents[2].problems[0].message
    assert "unexpected end of data" in documents[6].problems[0].message
    assert "swallowed 1 line after its own" in documents[6].problems[0].message
    assert not any("swallowed" in p.message for d in documents[:6] for p in d.problems)


@pytest.mark.parametrize("lines", [0, 1, 2, 500])
@pytest.mark.parametrize("end", ["\n", '\n9,"closed"\n', ""])
def test_a_quote_that_is_not_closed_tells_how_much_it_swallowed(tmp_path: Path, lines: int, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,ok\n\n2,"open' + "\n3,x" * lines + end)
    first, second = read(path)[:2]
    assert (first.text, [p.code for p in second.problems]) == ("ok", ["document_unreadable"])
    swallowed = lines + ("closed" in end)
    told = f"; a quote that is not closed seems to have swallowed {swallowed} line{'s' * (swallowed > 1)} after its own"
    assert second.problems[0].message.endswith(told if swallowed else "unexpected end of data")


def test_parquet_nulls_and_other_types(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([None, None]), "text": pa.array([None, "t"]), "s": ["note", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    documents = read(tmp_path / "a.parquet", schema_column="s")
    assert [(d.id, d.text, d.schema) for d in documents] == [("a.parquet#0", "", "note"), ("a.parquet#1", "t", "")]
    assert [[p.code for p in d.problems] for d in documents] == [
        ["document_without_id", "document_unreadable"],
        ["document_without_id", "document_without_schema"],
    ]
