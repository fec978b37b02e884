"""Run directories among other things that lie in an output, and what `run.json` keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import OutputError
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.secrets import without_credentials
from pipeline.runtime.store import open_store

FOREIGN = [b"{}", b"", b"not json", b"[1]", b"\xff", b'{"origin": {}, "run_id": 5}', b'{"run_id": "x", "work": {}}']


@pytest.mark.parametrize("content", FOREIGN)
def test_a_neighbour_of_another_kind_is_passed_over(work: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "out" / "run=other").mkdir(parents=True)
    (tmp_path / "out" / "run=other" / "run.json").write_bytes(content)
    (tmp_path / "out" / "run=folder" / "run.json").mkdir(parents=True)
    assert work.finish(work.open()).documents == 12


@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_record_in_the_runs_own_directory_is_told(work: Any, content: bytes) -> None:
    directory = Path(work.open().where)
    (directory / "run.json").write_bytes(content)
    with pytest.raises(OutputError, match=r"run\.json is not what gristmill"):
        work.open()
    assert (directory / "run.json").read_bytes() == content


@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_manifest_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(OutputError, match="not a manifest"):
        read_manifest(open_store(str(tmp_path)))


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("s3://key:secret@bucket/x/*.jsonl?endpoint_override=e&k=secret", "s3://bucket/x/*.jsonl"),
        ("s3://bucket?access_key=secret", "s3://bucket"),
        ("gs://anonymous@bucket/a@b/x", "gs://bucket/a@b/x"),
        ("hdfs://user:secret@host:8020/a", "hdfs://host:8020/a"),
        ("file:///a/b@c", "file:///a/b@c"),
        ("/plain/a?b@c", "/plain/a?b@c"),
    ],
)
def test_a_uri_is_kept_without_credentials(path: str, kept: str) -> None:
    assert without_credentials(path) == kept


def test_no_file_of_a_run_holds_the_credentials_of_its_input(make_work: Any, tmp_path: Path) -> None:
    work = make_work(input={"path": f"file://{tmp_path}/in.jsonl?key=SECRET", "schema": "receipt@1"})
    run = work.open()
    work.finish(run)
    assert "SECRET" not in "".join(path.read_text() for path in Path(run.where).rglob("*.json"))
    kept = json.loads((Path(run.where) / "run.json").read_text())["input"]
    assert kept["path"] == f"file://{tmp_path}/in.jsonl"
    assert kept["schema"] == "receipt@1"


def test_an_output_that_cannot_be_written_is_told_with_its_path(make_work: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="file"):
        make_work(output=str(tmp_path / "file" / "below")).open()
    with pytest.raises(OutputError, match="s3://"):
        make_work(output="gs://bucket/out").open()
