"""Where input can lie: directories, globs and URIs; and what tells one input from another."""

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
from pipeline.runtime.input import InputScan, read_unit, scan
from pipeline.schema.fingerprint import multiset_digest

ROWS = [{"id": f"d{i}", "text": f"text {i}", "kind": "ab"[i % 2]} for i in range(23)]


def config(path: object, **more: Any) -> InputConfig:
    return InputConfig(**{"path": str(path), **({} if "schema_column" in more else {"schema": "note"}), **more})


def read_all(found: InputScan, of: InputConfig) -> list[Document]:
    return [document for unit in found.units for document in read_unit(unit, of)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_text_directory_with_subdirectories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ["b/z.md", "a.txt", "b/a/x.html", "_skip.txt", ".hidden/y.txt", "b/_temporary/q.txt", "b/data.bin"]:
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_text(path)
    monkeypatch.chdir(tmp_path)
    of = config("in")
    found = scan(of, 2)
    documents = read_all(found, of)
    assert [d.id for d in documents] == ["a.txt", "b/a/x.html", "b/z.md"]
    assert [d.source for d in documents] == ["in/a.txt", "in/b/a/x.html", "in/b/z.md"]
    assert [d.text for d in documents] == ["a.txt", "b/a/x.html", "b/z.md"]
    by_content = config("in", id_column=None)
    assert [d.id for d in read_all(scan(by_content, 2), by_content)] == [
        hashlib.sha256(d.text.encode()).hexdigest()[:32] for d in documents
    ]
    assert scan(by_content, 2).ids_digest == multiset_digest(d.id for d in read_all(scan(by_content, 2), by_content))
    monkeypatch.chdir("in")
    assert [d.source for d in read_all(scan(config("."), 2), config("."))] == ["a.txt", "b/a/x.html", "b/z.md"]


def test_globs_pick_files_and_skip_hidden_ones(tmp_path: Path) -> None:
    for path in ["2024/a.jsonl", "2025/a.jsonl", "2025/deep/b.jsonl", "2025/_c.jsonl", "2025/note.txt"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / path, [{"id": path, "text": path}])
    wanted = {
        "2024/*.jsonl": ["2024/a.jsonl"],
        "202[!4]/*.jsonl": ["2025/a.jsonl"],
        "202?/a.jsonl": ["2024/a.jsonl", "2025/a.jsonl"],
        "**/*.jsonl": ["2024/a.jsonl", "2025/a.jsonl", "2025/deep/b.jsonl"],
    }
    for pattern, expected in wanted.items():
        paths = [str(tmp_path / pattern)]
        if "?" not in pattern:  # which starts the query of a URI
            paths.append(f"{tmp_path.as_uri()}/{pattern}")
        for path in paths:
            documents = read_all(scan(config(path), 2), config(path))
            assert [d.id.partition("#")[0] for d in documents] == expected, path
            assert [d.source for d in documents] == [
                f"{path[: path.index(str(tmp_path))]}{tmp_path}/{e}#0" for e in expected
            ]


def test_uris_of_local_and_remote_file_systems(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROWS)
    of = config((tmp_path / "a.jsonl").as_uri())
    found = scan(of, 5)
    assert [d.source for d in read_all(found, of)] == [f"file://{tmp_path}/a.jsonl#{i}" for i in range(23)]
    assert found.snapshot == scan(config(tmp_path / "a.jsonl"), 5).snapshot

    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for suffix in ("jsonl", "csv", "parquet"):
        memory.pipe(f"/{tmp_path.name}/{suffix}/x.{suffix}", write(tmp_path / f"x.{suffix}", ROWS).read_bytes())
        of = config(f"fsspec+memory://{tmp_path.name}/{suffix}")
        found = scan(of, 5)
        documents = read_all(found, of)
        assert [d.text for d in documents] == [row["text"] for row in ROWS]
        assert documents[0].source == f"fsspec+memory:///{tmp_path.name}/{suffix}/x.{suffix}#0"
        assert found.snapshot == scan(of, 7).snapshot


def test_snapshot_changes_with_content_and_with_what_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ROWS)
    snapshots = [
        scan(of, 5).snapshot
        for of in (
            config(path),
            config(path, limit=23),
            config(path, text_column="kind"),
            config(path, id_column=None),
            config(path, schema_column="kind"),
            config(path, schema="other"),
        )
    ]
    assert scan(config(path), 9).snapshot == snapshots[0]
    write(path, [{**ROWS[0], "text": "TEXT 0"}, *ROWS[1:]])
    snapshots.append(scan(config(path), 5).snapshot)
    assert len(set(snapshots)) == 7
