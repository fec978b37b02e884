"""What no schema says of a set of manifests: that its parts fit each other, and that its pods may do little."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import yaml

Manifest = Mapping[str, Any]

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
KEY = re.compile(rf"({SUBDOMAIN.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
IMAGE = re.compile(r"[^:@\s]+(:\d+/[^:@\s]+)?(:(?!latest$)[\w][\w.-]*|@sha256:[0-9a-f]{64})")
LONGEST = {"RayJob": 47, "RayService": 47, "RayCronJob": 36, "CronJob": 52, "Job": 63}
"""KubeRay 1.7's own limits (`MaxRayJobNameLength` and the others); Kubernetes' for its own kinds."""

CREDENTIAL = re.compile(r"AKIA[0-9A-Z]{16}|-----BEGIN|(?i:(secret|access)_?(access_?)?key)")


def faults(manifests: Sequence[Manifest]) -> list[str]:
    """Everything that is wrong, each with the object that it is in."""
    found = []
    for manifest in manifests:
        where = f"{manifest['kind']} {manifest['metadata']['name']}"
        found += [f"{where}: {text}" for text in chain(_names(manifest), _objects(manifest, manifests))]
        for name, template in templates(manifest):
            found += [f"{where}, {name}: {text}" for text in chain(_pod(template), _refers(template, manifests))]
    return found + list(_monitors(manifests))


def templates(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """The pod templates in an object, each with the name of its group."""
    for name, part in _parts(manifest):
        if isinstance(part, dict) and "spec" in part and "containers" in part["spec"]:
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
    spec = manifest.get("spec", {})
    job = spec.get("jobTemplate", spec)
    if job.get("shutdownAfterJobFinishes") and job.get("deletionStrategy"):
        yield "shutdownAfterJobFinishes and deletionRules exclude each other"
    if (cluster := cluster_of(manifest)) is not None:
        yield from _cluster(cluster)
    if manifest["kind"] == "RayService":
        served = yaml.safe_load(spec["serveConfigV2"])
        ports = {port for _, one in templates(manifest) for name, port in _ports(one) if name == "serve"}
        if ports != {served["http_options"]["port"]} or served["http_options"]["host"] != "0.0.0.0":
            yield f"the proxy listens at {served['http_options']}, and pods offer {ports} as `serve`"
    if manifest["kind"] == "ConfigMap" and sum(map(len, manifest["data"].values())) > 1 << 20:
        yield "more than 1 MiB"


def _cluster(cluster: Manifest) -> Iterator[str]:
    groups = cluster["workerGroupSpecs"]
    if len({group["groupName"] for group in groups}) < len(groups):
        yield "two groups have the same name"
    for group in groups:
        if not group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]:
            yield f"{group['groupName']}: replicas are not between minReplicas and maxReplicas"
    grows = any(group["minReplicas"] < group["maxReplicas"] for group in groups)
    if grows != cluster.get("enableInTreeAutoscaling", False):
        yield "an autoscaler is needed exactly where a group may grow"
    if grows:
        yield from _container({"image": "autoscaler:1", **cluster["autoscalerOptions"]}, "autoscaler")
    if grows and not cluster["headGroupSpec"]["template"]["spec"].get("automountServiceAccountToken"):
        yield "the autoscaler has no token to ask Kubernetes for pods with"
    if cluster.get("authOptions", {}).get("mode") != "token":
        yield "whoever reaches the head can run code: authOptions.mode is not token"


def _pod(template: Manifest) -> Iterator[str]:
    spec = template["spec"]
    for key, value in template["metadata"]["labels"].items():
        if not KEY.fullmatch(key) or not VALUE.fullmatch(value):
            yield f"no legal label: {key}={value}"
    context = spec.get("securityContext", {})
    if not context.get("runAsNonRoot") or not context.get("runAsUser"):
        yield "may run as root"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "no seccomp profile"
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        yield "shares something with its node"
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    if any("hostPath" in volume for volume in volumes.values()):
        yield "sees files of its node"
    used = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
    if used != set(volumes):
        yield f"volumes that are mounted or there, but not both: {sorted(used ^ set(volumes))}"
    for container in spec["containers"]:
        yield from _container(container, container["name"])
        yield from _accelerator(container, spec)


def _container(container: Manifest, name: str) -> Iterator[str]:
    context = container.get("securityContext", {})
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True}
    if any(context.get(key) is not value for key, value in wanted.items()) or context.get("privileged"):
        yield f"{name}: may do more than it needs: {context}"
    if context.get("capabilities", {}).get("drop") != ["ALL"] or context.get("capabilities", {}).get("add"):
        yield f"{name}: has capabilities"
    if not IMAGE.fullmatch(container["image"]):
        yield f"{name}: an image that may be another tomorrow: {container['image']}"
    limits, requests = (container.get("resources", {}).get(key, {}) for key in ("limits", "requests"))
    if not {"cpu", "memory"} <= set(limits) or not {"cpu", "memory"} <= set(requests):
        yield f"{name}: cpu and memory need a request and a limit"
    paths = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    if len(paths) < len(container["volumeMounts"]):
        yield f"{name}: two volumes at one path"
    environment = {one["name"]: one.get("value", "") for one in container.get("env", [])}
    if paths.get("/tmp", True) or paths.get(environment.get("HOME", "/home/ray"), True):
        yield f"{name}: nothing can be written to /tmp or HOME"
    for key, value in environment.items():
        if value and (CREDENTIAL.search(key) or CREDENTIAL.search(value)):
            yield f"{name}: a credential in plain text: {key}"
    ports = _ports({"spec": {"containers": [container]}})
    if len({port for _, port in ports}) < len(ports) or len({key for key, _ in ports}) < len(ports):
        yield f"{name}: a port or its name occurs twice"


def _accelerator(container: Manifest, spec: Manifest) -> Iterator[str]:
    limits, requests = container["resources"]["limits"], container["resources"]["requests"]
    if limits.get("nvidia.com/gpu") != requests.get("nvidia.com/gpu"):
        yield "GPUs that are asked for must be the limit"
    tolerated = {one.get("key") for one in spec.get("tolerations", [])}
    if "nvidia.com/gpu" in limits and "nvidia.com/gpu" not in tolerated:
        yield "GPU nodes are tainted, and that is not tolerated"


def _refers(template: Manifest, manifests: Sequence[Manifest]) -> Iterator[str]:
    there = {(one["kind"], one["metadata"]["name"]): one for one in manifests}
    account = template["spec"]["serviceAccountName"]
    if any(kind == "ServiceAccount" for kind, _ in there) and ("ServiceAccount", account) not in there:
        yield f"no service account {account}"
    for volume in template["spec"]["volumes"]:
        if "configMap" in volume:
            name = volume["configMap"]["name"]
            data = there.get(("ConfigMap", name), {}).get("data")
            keys = {item["key"] for item in volume["configMap"]["items"]}
            if data is None or keys != set(data):
                yield f"ConfigMap {name} is not there, or has other keys"


def _monitors(manifests: Sequence[Manifest]) -> Iterator[str]:
    pods = [one for manifest in manifests for name, one in templates(manifest) if name != "submitterPodTemplate"]
    for monitor in (one for one in manifests if one["kind"] == "PodMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        if any(not wanted <= pod["metadata"]["labels"].items() for pod in pods):
            yield "PodMonitor: its selector passes over a pod"
        offered = {name for pod in pods for name, _ in _ports(pod)}
        if missing := {one["port"] for one in monitor["spec"]["podMetricsEndpoints"]} - offered:
            yield f"PodMonitor: no pod has a port {sorted(missing)}"


def _ports(template: Manifest) -> list[tuple[str, int]]:
    containers = template["spec"]["containers"]
    return [(port["name"], port["containerPort"]) for one in containers for port in one.get("ports", [])]
