"""Run directories among other things that lie in an output, and what `run.json` keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import JobFileError, OutputError, RunChangedError
from pipeline.job import JobConfig
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.secrets import is_secret, without_credentials
from pipeline.runtime.source import source_of
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


def test_a_run_that_another_version_cut_into_other_units_is_not_gone_on_with(work: Any) -> None:
    run = work.open()
    record = json.loads(run.store.get("run.json") or b"")
    run.store.put("run.json", json.dumps({**record, "cut": -1}).encode())
    with pytest.raises(RunChangedError, match="another version"):
        work.open()
    del record["cut"]  # of an earlier version that did not tell
    run.store.put("run.json", json.dumps(record).encode())
    assert work.open().identity == run.identity


def test_strangers_among_the_runs_are_left_alone(work: Any) -> None:
    output = open_store(work.job.output)
    for name in ("run=x\\y", "run=", "run=abc def"):
        (Path(work.job.output) / name).mkdir(parents=True)
    assert work.open().where.startswith(output.where)


@pytest.mark.parametrize("below", ["", "out", "a/b"])
def test_an_output_in_the_input_is_refused(tmp_path: Path, below: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    parts = {"name": "j", "engine": {"engine": "sampler"}}
    for output in (folder / below, tmp_path / "link" / below):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(folder)
        job = JobConfig.model_validate({**parts, "input": {"path": str(folder), "schema": "s"}, "output": str(output)})
        with pytest.raises(JobFileError, match="lies below"):
            source_of(job, {}, open_store(str(output)), ())
    beside = JobConfig.model_validate(
        {**parts, "input": {"path": str(folder), "schema": "s"}, "output": f"{folder}-out"}
    )
    assert source_of(beside, {}, open_store(beside.output), ()).origin is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(
            (name, True)
            for name in ("token", "hf_token", "clientSecret", "accessToken", "dbPassword", "api_keys", "pwd")
        ),
        *((name, True) for name in ("pwd", "session_key", "AWS_SECRET_ACCESS_KEY", "X-Api-Key", "secrets", "Bearer")),
        *((name, False) for name in ("eos_token", "stop_token", "max_output_tokens", "num_speculative_tokens")),
        *((name, False) for name in ("tokenizer", "keyboard", "monkey", "key", "passage", "author", "secretary")),
    ],
)
def test_names_of_secrets_are_told_however_they_are_spelled(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
