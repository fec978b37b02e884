"""Mistakes: planted in manifests, each is found by the checks; made in values, each is refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deployments import VLLM, deployment, manifests, service
from kubernetes_schemas import problems
from manifest_checks import cluster_of, faults
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.deploy.schedules import check_cron
from pipeline.errors import GristmillError, JobFileError, SchemaError

Objects = dict[str, Any]
Change = Callable[[Objects], Any]


def job_of(objects: Objects) -> Any:
    return objects["RayCronJob"]["spec"]["jobTemplate"]


def cluster(objects: Objects) -> Any:
    return cluster_of(objects["RayCronJob"])


def head(objects: Objects) -> Any:
    return cluster(objects)["headGroupSpec"]["template"]


def container(objects: Objects) -> Any:
    return head(objects)["spec"]["containers"][0]


def engines(objects: Objects) -> Any:
    return cluster(objects)["workerGroupSpecs"][0]


def rules(objects: Objects) -> Any:
    return job_of(objects)["deletionStrategy"]["deletionRules"]


AGAINST_THE_SCHEMA: dict[str, tuple[Change, str]] = {
    "a field that does not exist": (lambda o: job_of(o).update(entryPoint="x"), "'entryPoint' was unexpected"),
    "deep in a pod": (lambda o: container(o).update(imagePullpolicy="Always"), "'imagePullpolicy' was unexpected"),
    "a field is missing": (lambda o: o["RayCronJob"]["spec"].pop("schedule"), "'schedule' is a required property"),
    "a number for a text": (lambda o: engines(o)["rayStartParams"].update({"num-cpus": 0}), "is not of type 'string'"),
    "a text for a number": (lambda o: engines(o).update(replicas="1"), "is not of type 'integer'"),
    "no quantity": (lambda o: container(o)["resources"]["limits"].update(memory="8 GB"), "does not match"),
    "not one of a few": (lambda o: cluster(o)["authOptions"].update(mode="tokens"), "is not one of"),
    "a rule of the CRD": (lambda o: rules(o)[0].update(condition={"ttlSeconds": 1}), "requires either the JobStatus"),
    "another rule": (lambda o: job_of(o).update(managedBy="somebody"), "managedBy field value must be"),
    "too large a number": (lambda o: job_of(o).update(activeDeadlineSeconds=2**31), "does not fit into int32"),
    "two ports alike": (lambda o: container(o)["ports"].append(container(o)["ports"][0]), "containerPort, protocol"),
    "a version that is not": (lambda o: o["RayCronJob"].update(apiVersion="ray.io/v2"), "'ray.io/v1' was expected"),
    "in a PodMonitor": (lambda o: o["PodMonitor"]["spec"].update(endpoints=[]), "'endpoints' was unexpected"),
    "in a ConfigMap": (lambda o: o["ConfigMap"]["data"].update(number=1), "is not of type 'string'"),
    "in metadata": (lambda o: o["ServiceAccount"]["metadata"].update(label={}), "'label' was unexpected"),
}

UNFIT: dict[str, tuple[Change, str]] = {
    "an illegal name": (lambda o: o["RayCronJob"]["metadata"].update(name="Receipts_1"), "no legal name"),
    "too long a name": (lambda o: o["RayCronJob"]["metadata"].update(name="r" * 37), "no legal name"),
    "an illegal label": (lambda o: head(o)["metadata"]["labels"].update(team="a b"), "no legal label"),
    "an object's label": (lambda o: o["RayCronJob"]["metadata"]["labels"].update({"a/b/c": "d"}), "no legal label"),
    "a name for a service": (lambda o: o["RayCronJob"]["metadata"].update(name="1st"), "begin with a letter"),
    "two groups alike": (lambda o: engines(o).update(groupName="workers"), "two groups have the same name"),
    "no seccomp": (lambda o: head(o)["spec"]["securityContext"].pop("seccompProfile"), "no seccomp profile"),
    "the node's network": (lambda o: head(o)["spec"].update(hostNetwork=True), "shares something with its node"),
    "two at one path": (lambda o: container(o)["volumeMounts"][1].update(mountPath="/tmp"), "two volumes at one path"),
    "a port's number": (
        lambda o: container(o)["ports"][1].update(containerPort=8080),
        "a port or its name occurs twice",
    ),
    "latest": (lambda o: container(o).update(image="example/gristmill:latest"), "may be another tomorrow"),
    "no tag": (lambda o: container(o).update(image="registry:5000/gristmill"), "may be another tomorrow"),
    "a selector": (lambda o: head(o)["metadata"]["labels"].pop("app.kubernetes.io/instance"), "passes over a pod"),
    "a port's name": (lambda o: container(o)["ports"][2].update(name="as_metrics"), "no pod has a port ['as-metrics']"),
    "root": (lambda o: head(o)["spec"]["securityContext"].update(runAsUser=0), "may run as root"),
    "a writable root": (lambda o: container(o)["securityContext"].update(readOnlyRootFilesystem=False), "more than it"),
    "privileged": (lambda o: container(o)["securityContext"].update(privileged=True), "more than it needs"),
    "capabilities": (lambda o: container(o)["securityContext"].update(capabilities={}), "has capabilities"),
    "the autoscaler": (lambda o: cluster(o)["autoscalerOptions"].pop("securityContext"), "autoscaler: may do more"),
    "no autoscaler": (lambda o: cluster(o).update(enableInTreeAutoscaling=False), "exactly where a group may grow"),
    "a mute autoscaler": (lambda o: head(o)["spec"].update(automountServiceAccountToken=False), "no token to ask"),
    "no limit": (lambda o: container(o)["resources"]["limits"].pop("memory"), "a request and a limit"),
    "no place to write": (lambda o: container(o)["volumeMounts"].pop(0), "nothing can be written to /tmp"),
    "a volume of the node": (lambda o: head(o)["spec"]["volumes"][0].update(hostPath={"path": "/"}), "files of its"),
    "a volume that is not": (lambda o: head(o)["spec"]["volumes"].pop(), "but not both"),
    "GPUs by halves": (
        lambda o: engines(o)["template"]["spec"]["containers"][0]["resources"].update(
            requests={"cpu": "1", "memory": "1Gi"}
        ),
        "must be the limit",
    ),
    "a taint": (lambda o: engines(o)["template"]["spec"].pop("tolerations"), "not tolerated"),
    "another ConfigMap": (lambda o: o["ConfigMap"]["metadata"].update(name="other"), "is not there"),
    "a key": (lambda o: o["ConfigMap"]["data"].pop("job.yaml"), "has other keys"),
    "no account": (lambda o: o["ServiceAccount"]["metadata"].update(name="other"), "no service account"),
    "an open cluster": (lambda o: cluster(o).pop("authOptions"), "whoever reaches the head can run code"),
    "a key in plain text": (
        lambda o: container(o)["env"].append({"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}),
        "a credential in plain text",
    ),
    "more than the most": (lambda o: engines(o).update(replicas=9), "not between minReplicas and maxReplicas"),
    "two ways to end": (lambda o: job_of(o).update(shutdownAfterJobFinishes=True), "exclude each other"),
}


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return {one["kind"]: one for one in manifests(deployment(tmp_path, values={"schedule": {"cron": "@daily"}}))}


@pytest.mark.parametrize("mistake", AGAINST_THE_SCHEMA)
def test_what_an_api_server_would_refuse_or_drop(objects: Objects, shared: Path, mistake: str) -> None:
    crds = shared / "data" / "kuberay-crds"
    assert [text for one in objects.values() for text in problems(one, crds)] == []
    change, told = AGAINST_THE_SCHEMA[mistake]
    change(objects)
    found = [text for one in objects.values() for text in problems(one, crds)]
    assert any(told in text for text in found), found


@pytest.mark.parametrize("mistake", UNFIT)
def test_what_would_not_fit_or_do_too_much(objects: Objects, mistake: str) -> None:
    change, told = UNFIT[mistake]
    change(objects)
    found = faults(list(objects.values()))
    assert any(told in text for text in found), found


def test_a_proxy_that_listens_elsewhere(tmp_path: Path) -> None:
    found = manifests(service(tmp_path))
    (workload,) = [one for one in found if one["kind"] == "RayService"]
    workload["spec"]["serveConfigV2"] = workload["spec"]["serveConfigV2"].replace("port: 8000", "port: 8001")
    assert any("pods offer {8000}" in text for text in faults(found))


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a key that is not": ({}, {"imagee": "x:1"}, "did you mean `image`"),
    "latest": ({}, {"image": "gristmill:latest"}, "another image tomorrow"),
    "no tag": ({}, {"image": "localhost:5000/gristmill"}, "another image tomorrow"),
    "a name": ({}, {"name": "Receipts"}, "name: String should match"),
    "too long for a schedule": ({}, {"name": "r" * 40, "schedule": {"cron": "@daily"}}, "at most 36"),
    "neither nor": ({}, {"job": None}, "exactly one of `job` and `service`"),
    "no cron": ({}, {"schedule": {"cron": "61 * * * *"}}, "minute '61'"),
    "no zone": ({}, {"schedule": {"cron": "@daily", "time_zone": "Europe/Atlantis"}}, "no time zone"),
    "keys of a store": ({}, {"env": {"AWS_ACCESS_KEY_ID": "x"}}, "come from `identity`"),
    "keys of a store, hidden": (
        {},
        {"secret_env": {"AWS_SECRET_ACCESS_KEY": {"secret": "s", "key": "k"}}},
        "come from `identity`",
    ),
    "a secret in the open": ({}, {"env": {"HF_TOKEN": "x"}}, "name that in `secret_env`"),
    "a secret in the engine": ({"engine": {**VLLM, "environment": {"HF_TOKEN": "x"}}}, {}, "engine.environment"),
    "a key that nobody gives": (
        {"engine": {"engine": "http", "base_url": "http://llm/v1", "model": "m", "api_key_env": "LLM_KEY"}},
        {},
        "asks for LLM_KEY",
    ),
    "a path of this machine": ({"output": "out"}, {}, "a path of this machine, which pods do not see"),
    "events on this machine": ({"events": {"path": "log"}}, {}, "events.path"),
    "a model of this machine": ({"engine": {**VLLM, "model": "./m"}}, {}, "engine.model"),
    "a model from nowhere": ({"engine": {**VLLM, "model": "a/b"}}, {"models": {}}, "nothing in a pod holds a/b"),
    "a volume over the image": ({}, {"volumes": [{"claim": "c", "path": "/tmp/x"}]}, "would hide or lie in"),
    "two at one path": ({}, {"volumes": [{"claim": c, "path": "/d"} for c in "ab"]}, "the same path"),
    "a variable twice": (
        {},
        {"env": {"A": "x"}, "secret_env": {"A": {"secret": "s", "key": "k"}}},
        "A stands in `env`",
    ),
    "output that cannot be": (
        {"output": "/d/out"},
        {"volumes": [{"claim": "c", "path": "/d", "read_only": True}]},
        "is on a volume that is `read_only`",
    ),
    "engines that go anywhere": ({"engine": {**VLLM, "num_gpus": 0}}, {}, "Use `kind: local`"),
    "a pool that is not used": ({}, {"pool": "extract", "ray_token": "t"}, "`placement.kind: serve`"),
    "a pool without a token": ({"placement": {"kind": "serve"}}, {"pool": "extract"}, "ray_token"),
    "times the wrong way": ({}, {"keep": {"cluster_seconds": 9, "job_seconds": 8}}, "must not be less"),
    "a size": ({}, {"head": {"cpu": 1, "memory": "8GB"}}, "memory: String should match"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_values_that_could_not_work_are_refused(tmp_path: Path, mistake: str) -> None:
    job, values, told = REFUSED[mistake]
    with pytest.raises(JobFileError) as refused:
        manifests(deployment(tmp_path, job, values))
    assert told in str(refused.value)


def test_services_that_could_not_work_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="asks for GRISTMILL_TOKEN"):
        service(tmp_path, values={"secret_env": {}})
    with pytest.raises(JobFileError, match="`schedule`, `pool`, `slot`, `again` and `fresh` are for a job"):
        service(tmp_path, values={"schedule": {"cron": "@daily"}})
    with pytest.raises(JobFileError, match="one grammar back end"):
        service(tmp_path, {"engine": {**VLLM, "backend": "auto"}})
    assert service(tmp_path, {"online": {"open": True}}, {"secret_env": {}})


def test_a_schema_that_cannot_be_used_is_told_before_the_night(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="receipt@7"):
        deployment(tmp_path, {"input": {"path": "s3://in/", "schema": "receipt@7"}})


def test_more_than_a_config_map_takes(tmp_path: Path) -> None:
    folder = tmp_path / "schemas" / "big" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text('{"type": "object", "properties": {"a": {"type": "string"}}}')
    (folder / "instructions.md").write_text("x" * (900 << 10))
    job = {"schemas": str(tmp_path / "schemas"), "input": {"path": "s3://in/", "schema": "big@1"}}
    with pytest.raises(GristmillError, match="a ConfigMap takes"):
        deployment(tmp_path, job)


@pytest.mark.parametrize("cron", ["@daily", "*/5 0-6 1,15 jan-mar MON", "0 2 * * *", "30 1 ? * 0", "5/15 * * * *"])
def test_cron(cron: str) -> None:
    check_cron(cron)


@pytest.mark.parametrize("cron", ["", "@noon", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *"])
def test_no_cron(cron: str) -> None:
    with pytest.raises(ValueError):
        check_cron(cron)


def test_the_command_writes_what_it_prints_and_tells_mistakes_by_its_exit_code(tmp_path: Path) -> None:
    deployment(tmp_path)
    values = str(tmp_path / "values.yaml")
    printed = CliRunner().invoke(app, ["render", values])
    assert printed.exit_code == 0
    target = tmp_path / "out.yaml"
    assert CliRunner().invoke(app, ["render", values, "--output", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == printed.output
    missing = CliRunner().invoke(app, ["render", str(tmp_path / "none.yaml")])
    assert isinstance(missing.exception, JobFileError)
