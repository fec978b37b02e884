"""What an incremental run keeps: the index in files, and the pass over the input, which is not made twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import s3_server
from since_nights import Nights

from pipeline.runtime.since import Since, choose
from pipeline.runtime.since.index import Parts, read_parts, superseded_schema
from pipeline.runtime.store import LocalStore


def test_the_index_is_cut_into_files(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), "out")
    schema = superseded_schema()
    parts = Parts(store, "_since/x", schema, rows=4)
    for start, size in ((0, 3), (3, 0), (3, 9), (12, 1)):
        columns = [[f"{name}{n}" for n in range(start, start + size)] for name in schema.names]
        parts.add(pa.table([pa.array(column, pa.string()) for column in columns], schema))
    files = parts.close()
    assert [file["rows"] for file in files] == [4, 4, 4, 1]
    found = [row["document_id"] for part in read_parts(store, files) for row in part.to_pylist()]
    assert found == [f"document_id{n}" for n in range(13)]


class Collection:
    """An input file and the incremental run that reads it; `passes` counts how often it was read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nights, self.path, self.passes = Nights(folder), folder / "in.jsonl", 0
        real = choose.scan

        def counted(*arguments: Any) -> Any:
            self.passes += 1
            return real(*arguments)

        monkeypatch.setattr(choose, "scan", counted)

    def write(self, ids: str) -> None:
        self.path.write_text("".join(json.dumps({"id": one, "text": f"text of {one}"}) + "\n" for one in ids))

    def since(self, *again: str, **parts: Any) -> Since:
        source = {"path": str(self.path), "schema": "s@1", "since": "last"}
        return self.nights.since(again, **{"input": source, **parts})


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    return Collection(tmp_path, monkeypatch)


def test_a_resumed_run_knows_what_is_left_without_reading_the_input(collection: Collection) -> None:
    collection.write("abcabd")
    first = collection.since()
    found = first.scan(2)
    assert found.documents == 6 and found.duplicate_count == 2
    assert first.told() == "the first incremental run of `nightly`: 4 documents, all new"
    again = collection.since()
    assert again.scan(2) == found and again.counts == first.counts
    assert collection.passes == 1


def test_the_input_is_read_again_when_anything_that_the_pass_depends_on_changed(collection: Collection) -> None:
    collection.write("abc")
    collection.since().scan(2)
    collection.since().scan(3)
    collection.since(clean=["invisible"]).scan(3)
    collection.write("abcd")
    assert collection.since().scan(3).documents == 4
    assert collection.passes == 4
    (kept,) = (path for path in (collection.nights.folder / "out" / "_scans" / "nightly").glob("*.npz"))
    kept.write_bytes(kept.read_bytes()[:-1])
    assert collection.since().scan(3).documents == 4
    assert collection.passes == 5


def test_rows_that_are_left_out_are_in_no_unit(collection: Collection) -> None:
    collection.nights.night([("a", "1"), ("b", "2")], input={"path": "x", "schema": "s@1", "since": "last"})
    collection.write("cc")
    since = collection.since()
    found = since.scan(5)
    assert [unit.rows for unit in found.units] == [2] and found.duplicate_count == 1
    assert since.counts["new"] == 1 and since.counts["gone"] == 2 and not since.nothing
    assert since.told().endswith(": 1 new, 2 gone")


def test_a_bucket_does_what_a_disk_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    nights, output = Nights(tmp_path), f"s3://{s3_server.new_bucket()}/nightly"
    assert nights.night([("a", "1"), ("b", "bad")], output=output) is not None
    tuesday = [("a", "1"), ("b", "2"), ("c", "3")]
    second = nights.night(tuesday, output=output)
    assert second is not None and (second["sequence"], second["unchanged"], second["new"]) == (2, 1, 1)
    assert nights.night(tuesday, output=output) is None
    base = nights.since(output=output).base
    assert base is not None
    found = [row for part in read_parts(base.store, base.files) for row in part.to_pylist()]
    assert sorted((row["document_id"], row["run_id"] == base.run_id) for row in found) == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]
