"""The job file: checked before anything starts, with messages that say what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.errors import JobFileError
from pipeline.job import JobConfig
from pipeline.jobfile import load_engine, load_job

ROOT = Path(__file__).parents[2]
JOB = {
    "name": "t",
    "input": {"path": "in.jsonl", "schema": "receipt@1"},
    "output": "out",
    "engine": {"engine": "sampler"},
}


def saved(folder: Path, content: Any, name: str = "job.yaml") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def refusal(folder: Path, content: Any) -> str:
    with pytest.raises(JobFileError) as caught:
        load_job(saved(folder, content))
    return str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_job_of_this_repository_loads(path: Path) -> None:
    assert isinstance(load_job(path), JobConfig)


@pytest.mark.parametrize("path", sorted((ROOT / "serve_configs").glob("[!o]*.yaml")), ids=lambda path: path.name)
def test_every_engine_config_of_this_repository_loads(path: Path) -> None:
    """Those that are no applications (`online_*.yaml`)."""
    assert load_engine(path).engine in ("vllm", "sampler", "http")


def test_defaults_fit_a_laptop_and_the_job_cannot_be_changed(tmp_path: Path) -> None:
    job = load_job(saved(tmp_path, JOB))
    assert (job.placement.actors, job.retry.max_attempts, job.policy.degraded, job.engine.num_gpus) == (1, 2, True, 0)
    with pytest.raises(ValueError, match="frozen"):
        job.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "where", "nearest"),
    [
        ({"smpling": {}}, "smpling", "sampling"),
        ({"input": {**JOB["input"], "id_colum": "x"}}, "input.id_colum", "id_column"),
        ({"input": {**JOB["input"], "schema_name": "x"}}, "input.schema_name", "schema"),
        ({"retry": {"max_attempt": 3}}, "retry.max_attempt", "max_attempts"),
        ({"retry": {"ladder": [{"temprature": 1}]}}, "retry.ladder.0.temprature", "temperature"),
        ({"sampling": {"narrow": {"max_item": 1}}}, "sampling.narrow.max_item", "max_items"),
        ({"lookups": [{"pointer": "/a", "path": "p", "colum": "c"}]}, "lookups.0.colum", "column"),
        ({"engines": {"big": {"engine": "vllm", "dtyp": "x"}}}, "engines.big.vllm.dtyp", "dtype"),
        ({"sampling": {"max_token": 3}}, "sampling.max_token", "max_tokens"),
        ({"policy": {"degrade": True}}, "policy.degrade", "degraded"),
        ({"placement": {"actor": 1}}, "placement.actor", "actors"),
        ({"engine": {"engine": "sampler", "sed": 1}}, "engine.sampler.sed", "seed"),
        ({"engine": {"engine": "vllm", "max_model_length": 1}}, "engine.vllm.max_model_length", "max_model_len"),
        ({"engine": {"engine": "recorded", "recordings": "x"}}, "engine.recorded.recordings", "recording"),
        (
            {"engine": {"engine": "sampler", "faults": [{"kind": "die", "share": 1, "second": 1}]}},
            "engine.sampler.faults.0.second",
            "seconds",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(
    tmp_path: Path, change: Any, where: str, nearest: str
) -> None:
    assert f"{where}: unknown key; did you mean `{nearest}`?" in refusal(tmp_path, {**JOB, **change})


def test_a_key_that_is_like_no_other_is_answered_with_all_that_are_known(tmp_path: Path) -> None:
    message = refusal(tmp_path, {**JOB, "policy": {"zzzzzz": 1}})
    assert "known here: preset, degraded" in message


def test_an_engine_file_names_the_nearest_key_too(tmp_path: Path) -> None:
    path = saved(tmp_path, {"engine": "vllm", "dtyp": "auto"}, "engine.yaml")
    with pytest.raises(JobFileError, match="did you mean `dtype`"):
        load_engine(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "name"),
        ({"name": "../x"}, "name"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": "many"}}, "retry.max_attempts"),
        ({"retry": {"deadline_seconds": 0}}, "retry.deadline_seconds"),
        ({"sampling": {"temperature": 3}}, "sampling.temperature"),
        ({"placement": {"kind": "cloud"}}, "placement.kind"),
        ({"placement": {"unit_documents": 10_001}}, "placement.unit_documents"),
        ({"input": {"path": "x"}}, "exactly one of `schema`"),
        ({"input": {**JOB["input"], "schema_column": "s"}}, "exactly one of `schema`"),
        ({"input": {**JOB["input"], "limit": 0}}, "input.limit"),
        ({"input": "in.jsonl"}, "input"),
        ({"engine": {"engine": "gpt"}}, "engine"),
        ({"engine": {"model": "embedded"}}, "engine"),
        ({"engine": {"engine": "sampler", "faults": [{"kind": "explode", "share": 1}]}}, "faults.0.kind"),
        ({"output": None}, "output"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path: Path, change: Any, words: str) -> None:
    message = refusal(tmp_path, {**JOB, **change})
    assert words in message
    assert "job.yaml" in message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, {**JOB, "nam": 1, "retry": {"max_attempts": 99}, "slot": 5})
    assert all(words in message for words in ("nam:", "retry.max_attempts", "slot"))


@pytest.mark.parametrize("content", ["", "- a\n- b", "just text", "a: [", "a: 1\n\tb: 2", "\x00"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, content: str) -> None:
    assert "job.yaml" in refusal(tmp_path, content)


def test_missing_files_are_told_with_their_path(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"nope\.yaml"):
        load_job(tmp_path / "nope.yaml")
    assert "engines/nope.yaml" in refusal(tmp_path, {**JOB, "engine": "engines/nope.yaml"})
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(JobFileError, match="not YAML"):
        load_job(tmp_path / "bytes.yaml")


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "engines").mkdir()
    saved(tmp_path / "engines", {"engine": "recorded", "recording": "tape"}, "e.yaml")
    job = load_job(saved(tmp_path / "jobs", {**JOB, "schemas": "../schemas", "engine": "../engines/e.yaml"}))
    assert job.input.path == str(tmp_path / "jobs" / "in.jsonl")
    assert (job.output, job.schemas) == (str(tmp_path / "jobs" / "out"), str(tmp_path / "schemas"))
    assert job.engine.recording == str(tmp_path / "engines" / "tape")
    inline = load_job(saved(tmp_path / "jobs", {**JOB, "engine": {"engine": "recorded", "recording": "tape"}}))
    assert inline.engine.recording == str(tmp_path / "jobs" / "tape")


def test_uris_absolute_paths_and_model_names_stay_as_they_are(tmp_path: Path) -> None:
    engine = {"engine": "vllm", "model": "org/name"}
    content = {**JOB, "input": {"path": "s3://b/x.parquet", "schema": "a@1"}, "output": "/data/out", "engine": engine}
    job = load_job(saved(tmp_path, content))
    assert (job.input.path, job.output, job.engine.model) == ("s3://b/x.parquet", "/data/out", "org/name")
    local = load_job(saved(tmp_path, {**JOB, "engine": {"engine": "vllm", "model": "./weights"}}))
    assert local.engine.model == str(tmp_path / "weights")


def test_variables_are_filled_in_and_defaults_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {**JOB, "input": {"path": "${GRIST_T:-../data}/x.jsonl", "schema": "a@1"}, "output": "o/${GRIST_U:-day}"}
    path = saved(tmp_path, content)
    for unset in (None, ""):
        monkeypatch.delenv("GRIST_T", raising=False)
        if unset is not None:
            monkeypatch.setenv("GRIST_T", unset)
        job = load_job(path)
        assert (job.input.path, job.output) == (str(tmp_path.parent / "data/x.jsonl"), str(tmp_path / "o/day"))
    monkeypatch.setenv("GRIST_T", "rel")
    monkeypatch.setenv("GRIST_U", "night")
    monkeypatch.chdir(tmp_path.parent)
    job = load_job(path)
    assert (job.input.path, job.output) == (str(tmp_path.parent / "rel/x.jsonl"), str(tmp_path / "o/night"))


def test_a_variable_without_value_or_default_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRIST_T", raising=False)
    assert "${GRIST_T}" in refusal(tmp_path, {**JOB, "output": "${GRIST_T}/x"})


def test_the_engines_path_may_hold_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, {"engine": "sampler", "seed": 9}, "e.yaml")
    monkeypatch.setenv("GRIST_E", str(tmp_path))
    assert load_job(saved(tmp_path, {**JOB, "engine": "${GRIST_E}/e.yaml"})).engine.seed == 9


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "engines").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    saved(home / "engines", {"engine": "recorded", "recording": "~/tape"}, "e.yaml")
    content = {"input": {"path": "~/in/*.jsonl", "schema": "a@1"}, "output": "${GRIST_T:-~/out}", "schemas": "~/s"}
    job = load_job(saved(tmp_path, {**JOB, **content, "engine": "~/engines/e.yaml"}))
    assert (job.input.path, job.output, job.schemas) == (f"{home}/in/*.jsonl", f"{home}/out", f"{home}/s")
    assert job.engine.recording == f"{home}/tape"
    job = load_job(saved(tmp_path, {**JOB, "output": "a~/b", "engine": {"engine": "vllm", "model": "~/weights"}}))
    assert (job.output, job.engine.model) == (str(tmp_path / "a~/b"), f"{home}/weights")


@pytest.mark.parametrize(
    ("content", "key", "line"),
    [
        ("name: a\nslot: b\nname: c\n", "name", 3),
        ("input:\n  path: a\n  path: a\n", "path", 3),
        ("name: a\n'name': b\n", "name", 2),
        ("engine: {faults: [{kind: die, share: 1, kind: loop}]}", "kind", 1),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  y: 1\n  y: 2\n", "y", 5),
    ],
)
def test_a_key_that_occurs_twice_is_named_with_its_line(tmp_path: Path, content: str, key: str, line: int) -> None:
    told = f"job.yaml, line {line}: the key `{key}` occurs twice"
    assert told in refusal(tmp_path, content)
    with pytest.raises(JobFileError, match=told):
        load_engine(tmp_path / "job.yaml")


def test_a_merged_key_may_be_overridden(tmp_path: Path) -> None:
    content = """
name: t
output: out
engine: {engine: sampler}
input: {<<: {path: x, limit: 4}, path: /a, schema: b@1}
"""
    job = load_job(saved(tmp_path, content))
    assert (job.input.path, job.input.limit, job.input.schema_name) == ("/a", 4, "b@1")


@pytest.mark.parametrize("content", ["slot: !!timestamp 2024-02-30", "[" * 5000, "? [a]\n: b"])
def test_yaml_that_cannot_be_built_is_refused(tmp_path: Path, content: str) -> None:
    assert "job.yaml is not YAML" in refusal(tmp_path, content)
