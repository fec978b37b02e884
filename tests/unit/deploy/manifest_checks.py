"""What no schema says of a set of manifests: that its parts fit each other, and that its pods may do little."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import yaml
from pod_checks import KEY, SUBDOMAIN, VALUE, faults_of_autoscaler, faults_of_pod, ports_of
from workload_checks import faults_of_cluster, faults_of_workload

Manifest = Mapping[str, Any]

LONGEST = {"RayJob": 47, "RayService": 47, "RayCronJob": 36, "CronJob": 52, "Job": 63}
"""KubeRay 1.7's own limits (`MaxRayJobNameLength` and the others); Kubernetes' for its own kinds."""

OURS = ("app.kubernetes.io/part-of", "app.kubernetes.io/instance")
"""Labels by which all of a deployment is selected."""


def faults(manifests: Sequence[Manifest]) -> list[str]:
    """Everything that is wrong, each with the object that it is in."""
    found = []
    for manifest in manifests:
        where = f"{manifest.get('kind')} {manifest.get('metadata', {}).get('name')}"
        checks: list[Callable[[], Iterator[str]]] = [partial(_names, manifest), partial(_objects, manifest, manifests)]
        checks += [partial(_template, one, manifest, manifests) for one in templates(manifest)]
        found += [f"{where}: {text}" for check in checks for text in _told(check)]
    for whole in (_together, _monitors):
        found += _told(partial(whole, manifests))
    return found


def _told(check: Callable[[], Iterator[str]]) -> list[str]:
    try:
        return list(check())
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, yaml.YAMLError) as error:
        return [f"incomplete: {type(error).__name__} {error}"]


def templates(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """The pod templates in an object, each with the name of its group."""
    for name, part in _parts(manifest):
        if isinstance(part, dict) and isinstance(part.get("spec"), dict) and "containers" in part["spec"]:
            yield name, part


def cluster_of(manifest: Manifest) -> Manifest | None:
    """The Ray cluster in an object."""
    return next((part for _, part in _parts(manifest) if isinstance(part, dict) and "headGroupSpec" in part), None)


def _parts(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, value
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = [(value.get("groupName", name) if key == "template" else key, one) for key, one in value.items()]
    elif isinstance(value, list):
        items = [(name, one) for one in value]
    for key, one in items:
        yield from _parts(one, key)


def _names(manifest: Manifest) -> Iterator[str]:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    if not SUBDOMAIN.fullmatch(name) or len(name) > LONGEST.get(kind, 253):
        yield f"no legal name: {name}"
    if kind.startswith("Ray") and not name[0].isalpha():
        yield f"KubeRay makes a service of this name, which has to begin with a letter: {name}"
    for key in ("labels", "annotations"):
        for one, value in manifest["metadata"].get(key, {}).items():
            if not KEY.fullmatch(one) or (key == "labels" and not VALUE.fullmatch(value)):
                yield f"no legal {key[:-1]}: {one}={value}"


def _objects(manifest: Manifest, manifests: Sequence[Manifest]) -> Iterator[str]:
    kind = manifest["kind"]
    if kind == "ServiceAccount" and manifest.get("automountServiceAccountToken") is not False:
        yield "pods get a token for Kubernetes without being told to"
    if kind == "ConfigMap":
        yield from _config_map(manifest)
    if kind in LONGEST:
        yield from faults_of_workload(manifest)
    if kind == "CronJob" and manifest["spec"]["jobTemplate"]["metadata"]["labels"] != manifest["metadata"]["labels"]:
        yield "its jobs are not selected by its labels"
    if (cluster := cluster_of(manifest)) is not None:
        yield from faults_of_cluster(cluster)
        if cluster.get("enableInTreeAutoscaling"):
            yield from faults_of_autoscaler(cluster["autoscalerOptions"])
    if kind == "RayService":
        served = yaml.safe_load(manifest["spec"]["serveConfigV2"])
        ports = {dict(ports_of(one)).get("serve") for _, one in templates(manifest)}
        if ports != {served["http_options"]["port"]} or served["http_options"]["host"] != "0.0.0.0":
            yield f"the proxy listens at {served['http_options']}, and pods offer {ports} as `serve`"


def _config_map(manifest: Manifest) -> Iterator[str]:
    if sum(map(len, manifest["data"].values())) > 1 << 20:
        yield "more than 1 MiB"
    if manifest.get("immutable") is not True or not re.search(r"-[0-9a-f]{10}$", manifest["metadata"]["name"]):
        yield "may be changed under a run that began from it"
    if manifest["metadata"].get("annotations", {}).get("helm.sh/resource-policy") != "keep":
        yield "Helm takes it away from a run that began from it"


def _template(named: tuple[str, Manifest], manifest: Manifest, manifests: Sequence[Manifest]) -> Iterator[str]:
    name, template = named
    cluster = cluster_of(manifest) or {}
    asks = name == "headGroupSpec" and bool(cluster.get("enableInTreeAutoscaling"))
    labels = manifest["metadata"]["labels"]
    for text in chain(faults_of_pod(template, asks), _refers(template, manifests)):
        yield f"{name}: {text}"
    if any(template["metadata"]["labels"].get(key) != labels[key] for key in OURS):
        yield f"{name}: is not selected by the labels of the object"


def _refers(template: Manifest, manifests: Sequence[Manifest]) -> Iterator[str]:
    there = {(one["kind"], one["metadata"]["name"]): one for one in manifests}
    account = template["spec"]["serviceAccountName"]
    if any(kind == "ServiceAccount" for kind, _ in there) and ("ServiceAccount", account) not in there:
        yield f"no service account {account}"
    for volume in template["spec"]["volumes"]:
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            data = there.get(("ConfigMap", name), {}).get("data")
            paths = {item["key"]: item["path"] for item in volume["configMap"]["items"]}
            if data is None or set(paths) != set(data):
                yield f"ConfigMap {name} is not there, or has other keys"
            if any(key.replace("..", "/") != path for key, path in paths.items()):
                yield f"ConfigMap {name}: a file lies elsewhere than the job looks for it"


def _together(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What is the same in all objects and pods of a deployment."""
    for key in OURS:
        if len({one["metadata"]["labels"][key] for one in manifests}) != 1:
            yield f"objects differ in {key}"
    if manifests[0]["metadata"]["labels"][OURS[0]] != "gristmill":
        yield "objects are not of gristmill"
    if len({one["metadata"]["namespace"] for one in manifests}) != 1:
        yield "objects are in several namespaces"
    pods = [one["spec"] for manifest in manifests for _, one in templates(manifest)]
    for key in ("image", "imagePullPolicy"):
        if len({container.get(key) for pod in pods for container in pod["containers"]}) > 1:
            yield f"pods differ in {key}"
    if len({pod["serviceAccountName"] for pod in pods}) > 1:
        yield "pods are of several service accounts"
    nodes = [pod for pod in pods if pod["containers"][0]["name"].startswith("ray-") and "restartPolicy" not in pod]
    for key in ("env", "volumeMounts"):
        if len({repr(pod["containers"][0][key]) for pod in nodes}) > 1:
            yield f"pods of one cluster differ in {key}"
    if len({repr([one.get("persistentVolumeClaim") for one in pod["volumes"]]) for pod in nodes}) > 1:
        yield "pods of one cluster see different volumes"
    yield from _job(manifests, nodes)


def _job(manifests: Sequence[Manifest], nodes: Sequence[Manifest]) -> Iterator[str]:
    """What the job in the ConfigMap looks for in its pods."""
    (files,) = [one["data"] for one in manifests if one["kind"] == "ConfigMap"]
    job = yaml.safe_load(files.get("job.yaml", "{}"))
    mounts = [mount["mountPath"] for pod in nodes for mount in pod["containers"][0]["volumeMounts"]]
    for path in filter(None, (job.get("input", {}).get("path"), job.get("output"))):
        if nodes and "://" not in path and not any(path.startswith(f"{mount}/") for mount in mounts):
            yield f"no pod has the volume of {path}"
    for cluster in filter(None, map(cluster_of, manifests)):
        groups = {group["groupName"] for group in cluster["workerGroupSpecs"]}
        if job.get("placement", {}).get("kind") == "actors" and "workers" not in groups:
            yield "no pod does the work of the CPU"


def _monitors(manifests: Sequence[Manifest]) -> Iterator[str]:
    pods = [one for manifest in manifests for name, one in templates(manifest) if name != "submitterPodTemplate"]
    for monitor in (one for one in manifests if one["kind"] == "PodMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        if any(not wanted.items() <= pod["metadata"]["labels"].items() for pod in pods) or set(wanted) != set(OURS):
            yield "PodMonitor: its selector passes over a pod, or takes in those of others"
        named = [{name for name, _ in ports_of(pod) if "metrics" in name} for pod in pods]
        offered = {name for names in named for name in names}
        if not all(named):
            yield "PodMonitor: a pod has no port of metrics"
        asked = {one["port"] for one in monitor["spec"]["podMetricsEndpoints"]}
        if asked - offered:
            yield f"PodMonitor: no pod has a port {sorted(asked - offered)}"
        if offered - asked:
            yield f"PodMonitor: nobody asks the ports {sorted(offered - asked)}"
        if not set(monitor["spec"]["podTargetLabels"]) >= {"ray.io/cluster", "ray.io/group"}:
            yield "PodMonitor: series of two clusters cannot be told apart"
        for one in monitor["spec"]["podMetricsEndpoints"]:
            if one.get("honorLabels") is not True or not one.get("interval"):
                yield "PodMonitor: the label `job` of our series is overwritten, or nothing says how often to ask"
            (ours,) = one["metricRelabelings"]
            taken = re.fullmatch(ours["regex"], "ray_gristmill_documents_total")
            if ours["sourceLabels"] != ["__name__"] or ours["targetLabel"] != "__name__" or taken is None:
                yield "PodMonitor: our series keep the prefix of Ray"
            elif taken[1] != "gristmill_documents_total":
                yield "PodMonitor: our series get another name than the dashboards ask for"
