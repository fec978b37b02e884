"""Manifests: legal for KubeRay's CRDs, fitting together, with as many pods and GPUs as the engine config says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import ARGS, ROOT, VLLM, deployment, manifests, service
from kubernetes_schemas import problems
from manifest_checks import cluster_of, faults, templates

from pipeline.deploy.manifests import manifests_of, render, to_yaml
from pipeline.jobfile import load_job, read_work
from pipeline.serve_app.settings import AppConfig

EXAMPLES = sorted((ROOT / "deploy" / "examples").glob("*.values.yaml"))
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # paths in Serve configs are relative to the working directory


@pytest.fixture(scope="session")
def crds(shared: Path) -> Path:
    return shared / "data" / "kuberay-crds"


def rendered(values: Path) -> Path:
    return values.with_name(values.name.replace(".values.", ".rendered."))


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_what_is_rendered_today(values: Path) -> None:
    assert rendered(values).read_text(encoding="utf-8") == render(values), "`make examples` renders them again"


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_legal_and_fit_together(values: Path, crds: Path) -> None:
    objects = list(yaml.safe_load_all(rendered(values).read_text(encoding="utf-8")))
    assert [text for one in objects for text in problems(one, crds)] == []
    assert faults(objects) == []


def test_every_kind_of_workload_has_an_example() -> None:
    kinds = {one["kind"] for path in EXAMPLES for one in yaml.safe_load_all(rendered(path).read_text(encoding="utf-8"))}
    assert {"RayJob", "RayCronJob", "RayService", "CronJob", "ConfigMap", "ServiceAccount", "PodMonitor"} <= kinds


def shape(objects: list[dict[str, Any]]) -> dict[str, tuple[int, int, str, str]]:
    """Of each group: fewest and most pods, GPUs of one, and the CPUs that Ray is told of."""
    cluster = next(found for one in objects if (found := cluster_of(one)) is not None)
    groups = {
        group["groupName"]: (group["minReplicas"], group["maxReplicas"], group) for group in cluster["workerGroupSpecs"]
    }
    groups["head"] = (1, 1, cluster["headGroupSpec"])
    return {
        name: (
            fewest,
            most,
            group["template"]["spec"]["containers"][0]["resources"]["limits"].get(GPU, ""),
            group["rayStartParams"].get("num-cpus", ""),
        )
        for name, (fewest, most, group) in groups.items()
    }


HEAD = (1, 1, "", "0")


@pytest.mark.parametrize(
    ("engine", "placement", "expected"),
    [
        ({}, {"max_engines": 4}, {"engines": (0, 4, "1", "0"), "workers": (2, 2, "", "")}),
        ({}, {"max_engines": 4, "cpu_actors": 2}, {"engines": (0, 4, "1", "0"), "workers": (1, 1, "", "")}),
        ({"tensor_parallel": 4}, {"max_engines": 3}, {"engines": (0, 3, "4", "0"), "workers": (1, 1, "", "")}),
        (
            {"tensor_parallel": 2, "pipeline_parallel": 3},
            {"min_engines": 2, "max_engines": 3},
            {"engines": (0, 9, "2", "0"), "workers": (1, 1, "", "")},
        ),
        ({"num_gpus": 0.5}, {"max_engines": 5}, {"engines": (0, 3, "1", "0"), "workers": (2, 2, "", "")}),
        ({"num_gpus": 2}, {"max_engines": 1}, {"engines": (0, 1, "2", "0"), "workers": (1, 1, "", "")}),
    ],
    ids=["one GPU", "fewer processes", "tensor parallel", "pipeline parallel", "half a GPU", "two, one worker"],
)
def test_pods_of_placement_actors(
    tmp_path: Path, engine: dict[str, Any], placement: dict[str, Any], expected: dict[str, Any]
) -> None:
    job = {"engine": {**VLLM, **engine}, "placement": {"kind": "actors", **placement}}
    objects = manifests(deployment(tmp_path, job))
    assert shape(objects) == {"head": HEAD, **expected}
    assert faults(objects) == []


def test_engines_that_share_a_pod_have_room_for_each(tmp_path: Path) -> None:
    values = {"engines": {"cpu": 3, "memory": "5Gi"}}
    objects = manifests(deployment(tmp_path, {"engine": {**VLLM, "num_gpus": 0.4}}, values))
    (workload,) = [one for one in objects if one["kind"] == "RayJob"]
    limits = dict(templates(workload))["engines"]["spec"]["containers"][0]["resources"]["limits"]
    assert (limits["cpu"], limits["memory"], limits[GPU]) == ("6", "10240Mi", "1")


def test_placement_local_is_one_pod_with_room_for_its_engines(tmp_path: Path) -> None:
    values = {
        "head": {"cpu": 1, "memory": "2Gi"},
        "engines": {"cpu": 4, "memory": "1536Mi", "node_selector": {"p": "g"}},
    }
    objects = manifests(deployment(tmp_path, {"placement": {"kind": "local", "actors": 3}}, values))
    assert shape(objects) == {"head": (1, 1, "3", "")}
    head = dict(templates(objects[2]))["headGroupSpec"]["spec"]
    assert head["containers"][0]["resources"]["limits"] == {
        "cpu": "13",
        "memory": "6656Mi",
        "ephemeral-storage": "20Gi",
        GPU: "3",
    }
    assert head["nodeSelector"] == {"p": "g"}
    assert faults(objects) == []


def test_a_servers_engines_need_no_pods_of_their_own(tmp_path: Path) -> None:
    http = {"engine": "http", "base_url": "http://llm/v1", "model": "m"}
    assert shape(manifests(deployment(tmp_path, {"engine": http}))) == {"head": HEAD, "workers": (2, 2, "", "")}


def test_pods_of_a_service(tmp_path: Path, crds: Path) -> None:
    wide = {"engine": {**VLLM, "tensor_parallel": 2}, "pool": {"min_replicas": 2, "max_replicas": 5}}
    objects = manifests(service(tmp_path, wide))
    assert shape(objects) == {"head": HEAD, "engines": (2, 5, "2", "0")}
    assert faults(objects) == []
    small = manifests(service(tmp_path, {"engine": {**VLLM, "num_gpus": 0}, "pool": {"max_replicas": 2}}))
    assert shape(small) == {"head": (1, 1, "", "")}
    assert faults(small) == []
    assert not [text for one in [*objects, *small] for text in problems(one, crds)]


def test_pods_outlive_the_time_that_engines_may_take_to_finish(tmp_path: Path) -> None:
    found = manifests(service(tmp_path, {"pool": {"drain_seconds": 200}}))
    (workload,) = [one for one in found if one["kind"] == "RayService"]
    assert {pod["spec"]["terminationGracePeriodSeconds"] for _, pod in templates(workload)} == {230}


def test_the_job_in_the_config_map_is_the_job(tmp_path: Path) -> None:
    keys = {"policy": {"preset": "sql", "ground": "observe"}, "retry": {"max_attempts": 3}}
    found = deployment(tmp_path, {**keys, "canary": {"schemas": str(ROOT / "schemas"), "share": 0.2}})
    there = tmp_path / "mounted"
    for path, text in found.files.items():
        (there / path).parent.mkdir(parents=True, exist_ok=True)
        (there / path).write_text(text, encoding="utf-8")
    read = load_job(there / "job.yaml")
    assert read.canary is not None and read.canary.schemas == str(there / "candidate")
    canary = read.canary.model_copy(update={"schemas": found.work.schemas})
    assert read.model_copy(update={"schemas": found.work.schemas, "canary": canary}) == found.work
    for folder in (read.schemas, read.canary.schemas):
        files = sorted(path.name for path in Path(folder).rglob("*.*"))
        assert files == ["examples.jsonl", "instructions.md", "schema.json"]


def test_the_application_is_the_one_of_the_serve_config(tmp_path: Path) -> None:
    (workload,) = [one for one in manifests(service(tmp_path)) if one["kind"] == "RayService"]
    served = yaml.safe_load(workload["spec"]["serveConfigV2"])
    args = served["applications"][0]["args"]
    assert args["schemas"] == "/etc/gristmill/schemas"
    again = read_work({**args, "schemas": ARGS["schemas"]}, ROOT, AppConfig, "args")
    assert again == service(tmp_path).work


@pytest.mark.filterwarnings("ignore")  # of Ray about itself
def test_ray_itself_takes_the_serve_config(tmp_path: Path) -> None:
    from ray.serve.schema import ServeDeploySchema

    (workload,) = [one for one in manifests(service(tmp_path)) if one["kind"] == "RayService"]
    read = ServeDeploySchema.model_validate(yaml.safe_load(workload["spec"]["serveConfigV2"]))
    assert (read.http_options.host, read.http_options.port, read.proxy_location.value) == ("0.0.0.0", 8000, "EveryNode")


def test_whatever_decides_about_records_makes_another_config_map(tmp_path: Path) -> None:
    first = deployment(tmp_path)
    assert to_yaml(manifests_of(first)) == to_yaml(manifests_of(deployment(tmp_path)))
    other = deployment(tmp_path, {"sampling": {"max_tokens": 7}})
    assert other.config_map != first.config_map
    bigger = deployment(tmp_path, values={"head": {"cpu": 3, "memory": "8Gi"}})
    assert bigger.config_map == first.config_map
    assert faults(manifests(other)) == []


def test_secrets_and_identity_reach_the_pods(tmp_path: Path) -> None:
    values = {
        "secret_env": {"HF_TOKEN": {"secret": "hub", "key": "token"}},
        "identity": {
            "service_account": "shared",
            "create": False,
            "pod_labels": {"azure.workload.identity/use": "true"},
        },
        "pull_secrets": ["registry"],
    }
    objects = manifests(deployment(tmp_path, values=values))
    assert "ServiceAccount" not in {one["kind"] for one in objects}
    for name, pod in (pair for one in objects for pair in templates(one)):
        assert pod["spec"]["serviceAccountName"] == "shared"
        assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true"
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
        assert (secret in pod["spec"]["containers"][0]["env"]) == (name != "submitterPodTemplate")


def test_spot_nodes_are_for_groups_that_say_so(tmp_path: Path) -> None:
    values = {"engines": {"cpu": 1, "memory": "1Gi", "spot": True}}
    (workload,) = [one for one in manifests(deployment(tmp_path, values=values)) if one["kind"] == "RayJob"]
    tolerated = {name: {one["key"] for one in pod["spec"].get("tolerations", [])} for name, pod in templates(workload)}
    spot = {"gristmill.dev/spot", "cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority"}
    assert tolerated == {
        "engines": {GPU, *spot},
        "workers": set(),
        "headGroupSpec": set(),
        "submitterPodTemplate": set(),
    }


def test_a_job_on_a_pool_goes_to_the_head_of_its_service(tmp_path: Path, crds: Path) -> None:
    job = {"placement": {"kind": "serve", "max_engines": 2}}
    values = {"pool": "extract", "ray_token": "opens"}
    objects = manifests(deployment(tmp_path, job, values))
    assert [one["kind"] for one in objects] == ["ServiceAccount", "ConfigMap", "Job"]
    container = objects[2]["spec"]["template"]["spec"]["containers"][0]
    assert {
        "name": "RAY_AUTH_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "opens", "key": "auth_token"}},
    } in container["env"]
    assert faults(objects) == []
    assert [text for one in objects for text in problems(one, crds)] == []
