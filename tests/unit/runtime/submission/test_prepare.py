"""What is sent: nothing that the job needs is missing, nothing secret is shown, and the id is that of the work."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from submission_scenes import write_job

from pipeline.errors import InputError, JobFileError
from pipeline.runtime.submission.package import package_of
from pipeline.runtime.submission.prepare import STOP_WAIT, Options, Prepared, RunOptions, prepare
from pipeline.runtime.submission.server import RUN


@pytest.fixture
def work(tmp_path: Path) -> Path:
    write_job(tmp_path / "work")
    return tmp_path / "work"


def prepared(work: Path, run: RunOptions | None = None, **options: Any) -> Prepared:
    run = run or RunOptions()
    return prepare(work / "jobs/nightly.yaml", Options(**{"working_dir": work, "by": "job", "run": run, **options}))


def spoil(work: Path, key: str, value: Any) -> None:
    path = work / "jobs/nightly.yaml"
    job = yaml.safe_load(path.read_text(encoding="utf-8"))
    section, _, name = key.rpartition(".")
    (job[section] if section else job)[name] = value
    path.write_text(yaml.safe_dump(job), encoding="utf-8")


def test_the_files_are_those_that_ray_packs(work: Path) -> None:
    from ray._private.ray_constants import get_runtime_env_default_excludes
    from ray._private.runtime_env.packaging import create_package

    for name in (".git/x", ".venv/x", "data/big.bin", "data/keep.txt", "tmp/x", "a/tmp/x", "notes.md"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("content", encoding="utf-8")
    (work / ".gitignore").write_text("tmp/\n", encoding="utf-8")
    (work / "data/.rayignore").write_text("*.bin\n", encoding="utf-8")
    package = package_of(work, ["*.md", "!schemas/**/*.md"])
    packed = work.parent / "packed.zip"
    excludes = [*get_runtime_env_default_excludes(), *package.excludes]
    create_package(str(work), packed, include_gitignore=True, excludes=excludes)
    with zipfile.ZipFile(packed) as archive:
        assert dict(package.files) == {one.filename: one.file_size for one in archive.infolist() if not one.is_dir()}
    assert {"data/keep.txt", "jobs/nightly.yaml"} <= set(package.files)
    assert not {"data/big.bin", "tmp/x", "a/tmp/x", "notes.md", ".git/x", ".venv/x"} & set(package.files)


def test_the_command_is_of_the_working_directory(work: Path) -> None:
    run = RunOptions(("rejected",), fresh=True, slot="a b", overlap="queue")
    request = prepared(work, run, command="/opt/g/bin/gristmill").request
    told = "--fresh --again rejected --slot 'a b' --overlap queue"
    assert request.entrypoint == f"/opt/g/bin/gristmill run jobs/nightly.yaml {told}"
    assert request.working_dir == str(work)


@pytest.mark.parametrize("command", ["", "it's"])
def test_a_command_that_is_none_is_refused(work: Path, command: str) -> None:
    with pytest.raises(JobFileError, match="--command"):
        prepared(work, command=command)


def test_what_makes_no_sense_is_told_here(work: Path) -> None:
    with pytest.raises(JobFileError, match="--again speaks of incremental runs"):
        prepared(work, RunOptions(("all",)), by="auto")


def test_a_relative_output_is_refused(work: Path) -> None:
    spoil(work, "output", "out")
    with pytest.raises(JobFileError, match="removed after the job"):
        prepared(work)


@pytest.mark.parametrize(
    ("key", "value"),
    [("schemas", "../../elsewhere"), ("input.path", "../../in.jsonl"), ("input.path", "../../more/*.jsonl")],
)
def test_what_lies_outside_is_refused(work: Path, key: str, value: str) -> None:
    spoil(work, key, value)
    with pytest.raises(JobFileError, match=rf"{key}: .* is outside of the working directory"):
        prepared(work)


def test_the_job_itself_lies_in_the_working_directory(work: Path) -> None:
    with pytest.raises(JobFileError, match=r"the job file: .* is outside"):
        prepared(work, working_dir=work / "schemas")


@pytest.mark.parametrize(
    ("ignored", "key"),
    [
        ("*.jsonl", "input.path"),
        ("schemas/", "schemas"),
        ("engines/", "engine"),
        ("nightly.yaml", "the job file"),
        ("list.csv", "lookups.0.path"),
        ("recorded/", "engine.recording"),
    ],
)
def test_what_is_left_out_of_the_package_is_refused(work: Path, ignored: str, key: str) -> None:
    (work / ".gitignore").write_text(f"{ignored}\n", encoding="utf-8")
    (work / "jobs/list.csv").write_text("c\nAnn\n", encoding="utf-8")
    spoil(work, "lookups", [{"pointer": "/vendor", "path": "list.csv", "column": "c"}])
    if key == "engine.recording":
        (work / "recorded").mkdir()
        (work / "recorded/a.jsonl").write_text("{}\n", encoding="utf-8")
        (work / "engines/e.yaml").write_text("engine: recorded\nrecording: ../recorded\n", encoding="utf-8")
    with pytest.raises(JobFileError, match=rf"{key}: .* is not sent to the cluster"):
        prepared(work)


def test_what_a_link_leads_to_is_sent_under_its_name(work: Path) -> None:
    (work / "schemas").rename(work.parent / "elsewhere")
    (work / "schemas").symlink_to(work.parent / "elsewhere")
    assert "schemas/note/1/schema.json" in prepared(work).package.files


def test_a_glob_is_of_a_folder_that_is_sent(work: Path) -> None:
    spoil(work, "input.path", "*.jsonl")
    assert prepared(work)
    spoil(work, "input.path", "nowhere/part-?.jsonl")
    with pytest.raises(JobFileError, match="does not exist"):
        prepared(work)


@pytest.mark.parametrize("path", ["s3://bucket/in/", "/data/in.jsonl", "/data/*.jsonl"])
def test_uris_and_absolute_paths_are_the_clusters(work: Path, path: str) -> None:
    spoil(work, "input.path", path)
    assert prepared(work).why_not == "--id-by job"


def test_a_path_by_a_variable_is_what_the_variable_says(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(work, "input.path", "${DATA_OF_A_TEST:-../../elsewhere}/in.jsonl")
    with pytest.raises(JobFileError, match=r"input\.path"):
        prepared(work)
    monkeypatch.setenv("DATA_OF_A_TEST", "/data")
    assert prepared(work)


def test_only_named_variables_travel_and_their_values_are_not_shown(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_A_TEST", "hunter2-and-more")
    monkeypatch.setenv("OTHER_OF_A_TEST", "stays here")
    found = prepared(work, env=("KEY_OF_A_TEST",))
    assert found.request.env["KEY_OF_A_TEST"] == "hunter2-and-more"
    assert "OTHER_OF_A_TEST" not in found.request.env
    assert "hunter2" not in repr(found) + repr(found.attempt("x"))


@pytest.mark.parametrize("name", ["A=secret-value", STOP_WAIT, "NOT_SET_IN_A_TEST", "GRISTMILL_SUBMISSION"])
def test_variables_that_cannot_travel_are_refused(work: Path, name: str) -> None:
    with pytest.raises(JobFileError, match="--env") as refused:
        prepared(work, env=(name,))
    assert "secret-value" not in str(refused.value)


def test_ray_waits_as_long_as_the_drain_and_more(work: Path) -> None:
    spoil(work, "safety", {"drain_seconds": 100.5})
    assert int(prepared(work).request.env[STOP_WAIT]) >= 101 + 10


def test_no_credentials_go_into_the_metadata(work: Path) -> None:
    spoil(work, "output", "s3://key:word@bucket/out")
    found = prepared(work)
    assert "word" not in repr(found.request.metadata) + found.request.id


# --- the id


def test_the_id_is_of_the_work_and_not_of_place_or_speed(work: Path, tmp_path: Path) -> None:
    first = prepared(work).request.id
    spoil(work, "placement", {"actors": 2})
    spoil(work, "safety", {"drain_seconds": 5})
    assert prepared(work).request.id == first
    moved = write_job(tmp_path / "moved", input={"path": "/data/in", "schema": "note@1"})
    spoil(work, "input.path", "/data/in")
    assert prepare(moved, Options(tmp_path / "moved", by="job")).request.id == prepared(work).request.id
    assert first.startswith("nightly-")


@pytest.mark.parametrize("change", ["slot", "given slot", "schema", "instructions", "sampling", "again", "input"])
def test_other_work_has_another_id(work: Path, change: str) -> None:
    first, run = prepared(work).request.id, RunOptions()
    if change == "slot":
        spoil(work, "slot", "2026-01-02")
    elif change == "sampling":
        spoil(work, "sampling", {"max_tokens": 7})
    elif change == "input":
        spoil(work, "input.path", "/data/other.jsonl")
    elif change == "again":
        run = RunOptions(("all",))
    elif change == "given slot":
        run = RunOptions(slot="2026-01-02")
    else:
        file = {"schema": "schema.json", "instructions": "instructions.md"}[change]
        path = work / "schemas/note/1" / file
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert prepared(work, run).request.id != first


def test_an_input_that_cannot_be_read_here_leaves_the_jobs_own_id(work: Path) -> None:
    spoil(work, "input.path", "/on/the/cluster/only.jsonl")
    found = prepared(work, by="auto")
    assert found.known is None and RUN not in found.request.metadata
    assert "/on/the/cluster/only.jsonl" in found.why_not
    assert found.request.id == prepared(work, by="job").request.id
    with pytest.raises(InputError):
        prepared(work, by="run")
