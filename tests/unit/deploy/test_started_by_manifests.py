"""What manifests start: commands that a shell of a pod and then our own command line understand, once at a time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import deployment, manifests
from kubernetes_schemas import problems
from manifest_checks import faults
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.deploy.work import Deployment
from pipeline.errors import InputError, JobFileError, RunBusyError, RunChangedError, SchemaError, StoppedError
from pipeline.runtime.overlap import OVERLAPS

SINCE = {"input": {"path": "s3://in/", "schema": "receipt@1", "since": "last"}}
SERVE = {**SINCE, "placement": {"kind": "serve", "max_engines": 2}}
POOL = {"pool": "extract", "ray_token": "opens", "env": {"AWS_REGION": "eu-west-3", "PLAIN": "a b"}}
NIGHTLY = {"schedule": {"cron": "@daily"}}


def workload(found: Deployment) -> Any:
    (one,) = [one for one in manifests(found) if one["kind"] not in ("ServiceAccount", "ConfigMap", "PodMonitor")]
    assert faults(manifests(found)) == []
    return one


def mounted(found: Deployment, folder: Path) -> Path:
    """The files as kubelet mounts a ConfigMap: links to links."""
    for path, text in found.files.items():
        (folder / "..now" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "..now" / path).write_text(text, encoding="utf-8")
    (folder / "..data").symlink_to("..now")
    for name in {path.split("/")[0] for path in found.files}:
        (folder / name).symlink_to(f"..data/{name}")
    return folder


def words_in_pod(line: str, environment: dict[str, str]) -> list[str]:
    """What a shell of a pod makes of a line that begins with `gristmill`."""
    told = subprocess.run(
        ["/bin/bash", "-ce", f'gristmill() {{ printf "%s\\n" "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], **environment},
    )
    return told.stdout.splitlines()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, []),
        (NIGHTLY, ["--overlap", "refuse"]),
        ({"schedule": {"cron": "@daily", "overlap": "queue", "slots": True}}, ["--overlap", "queue", "--slot", "n-7"]),
        ({"again": ["rejected", "engine"], "fresh": True}, ["--fresh", "--again", "rejected", "--again", "engine"]),
    ],
    ids=["once", "every night", "in turn, each its own", "again"],
)
def test_the_entrypoint_of_a_ray_job(tmp_path: Path, values: dict[str, Any], words: list[str]) -> None:
    spec = workload(deployment(tmp_path, SINCE, values))["spec"]
    job = spec.get("jobTemplate", spec)
    (submitter,) = job["submitterPodTemplate"]["spec"]["containers"]
    named = {one["name"]: one.get("valueFrom") for one in submitter["env"]}
    slot = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    assert ("GRISTMILL_SLOT" in named) == ("--slot" in words) and named.get("GRISTMILL_SLOT", slot) == slot
    found = words_in_pod(job["entrypoint"], {"GRISTMILL_SLOT": "n-7"})
    assert found == ["run", "/etc/gristmill/job.yaml", *words]


def test_overlaps_of_a_schedule_are_those_of_the_command(tmp_path: Path) -> None:
    for overlap in OVERLAPS[:2]:
        deployment(tmp_path, SINCE, {"schedule": {"cron": "@daily", "overlap": overlap}})
    with pytest.raises(JobFileError, match="overlap"):
        deployment(tmp_path, SINCE, {"schedule": {"cron": "@daily", "overlap": "allow"}})


def test_a_slot_of_the_values_is_in_the_job(tmp_path: Path) -> None:
    found = deployment(tmp_path, {"slot": "of the file"}, {"slot": "2026-12-01"})
    assert yaml.safe_load(found.files["job.yaml"])["slot"] == "2026-12-01"
    assert deployment(tmp_path, {"slot": "of the file"}).config_map != found.config_map


@pytest.mark.parametrize("schedule", [None, {"cron": "@daily", "slots": True}])
def test_a_job_on_a_pool_is_submitted_by_our_own_command(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, schedule: dict[str, Any] | None
) -> None:
    found = deployment(tmp_path, SERVE, {**POOL, "again": ["rejected"], "schedule": schedule})
    one = workload(found)
    assert problems(one, shared / "data" / "kuberay-crds") == []
    job = one["spec"]["jobTemplate"]["spec"] if schedule else one["spec"]
    (container,) = job["template"]["spec"]["containers"]
    line = container["command"][2].replace("/etc/gristmill", str(mounted(found, tmp_path / "etc")))
    line = line.replace("/tmp/job", str(tmp_path / "job")).replace("exec ", "")
    words = words_in_pod(line, {"GRISTMILL_SLOT": "n-7"})
    assert words[0] == "submit" and "http://extract-head-svc:8265" in words
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    for name, value in POOL["env"].items():
        assert given[name] == value and words[words.index(name) - 1] == "--env"
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "400")
    told = CliRunner().invoke(app, [*words, "--dry-run"])
    assert told.exit_code == 0, told.output
    slot = " --slot n-7" if schedule else ""
    assert f"command: gristmill run job.yaml --again rejected{slot}\n" in told.output
    assert "ray job submit --submission-id receipts-" in told.output
    assert "by job and schemas: --id-by job" in told.output


def test_what_cannot_succeed_is_not_tried_again_on_a_pool(tmp_path: Path) -> None:
    (rule,) = workload(deployment(tmp_path, SERVE, POOL))["spec"]["podFailurePolicy"]["rules"]
    final = [kind.exit_code for kind in (JobFileError, InputError, SchemaError, StoppedError)]
    assert rule["onExitCodes"]["values"] == final
    assert not {RunChangedError.exit_code, RunBusyError.exit_code} & set(final), "these may go away by themselves"


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "again without since": ({}, {"again": ["all"]}, "write `since: last`"),
    "again what": (SINCE, {"again": ["everything"]}, "rejected, degraded, engine, all"),
    "two slots": (SINCE, {"slot": "a", "schedule": {"cron": "@daily", "slots": True}}, "one slot for all times"),
    "a queue on a pool": (SERVE, {**POOL, "schedule": {"cron": "@daily", "overlap": "queue"}}, "a cluster of its own"),
    "secrets on a pool": (SERVE, {**POOL, "secret_env": {"A": {"secret": "s", "key": "k"}}}, "pods of its service"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_could_not_work_is_refused(tmp_path: Path, mistake: str) -> None:
    job, values, told = REFUSED[mistake]
    with pytest.raises(JobFileError) as refused:
        deployment(tmp_path, job, values)
    assert told in str(refused.value)


def test_a_job_that_finds_nothing_has_taken_no_gpu(tmp_path: Path) -> None:
    cluster = workload(deployment(tmp_path, SINCE, NIGHTLY))["spec"]["jobTemplate"]["rayClusterSpec"]
    engines = cluster["workerGroupSpecs"][0]
    assert (engines["groupName"], engines["replicas"], engines["minReplicas"]) == ("engines", 0, 0)
