"""What no schema says of a pod: that it may do little, that what it mounts is there, and that nodes take it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Manifest = Mapping[str, Any]

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
KEY = re.compile(rf"({SUBDOMAIN.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
IMAGE = re.compile(r"[^:@\s]+(:\d+/[^:@\s]+)?(:(?!latest$)[\w][\w.-]*|@sha256:[0-9a-f]{64})")
CREDENTIAL = re.compile(r"AKIA[0-9A-Z]{16}|-----BEGIN|(?i:(secret|access)_?(access_?)?key)")
SPOT = {
    "gristmill.dev/spot": "true",
    "cloud.google.com/gke-spot": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""Taints of nodes that can be taken away: of terraform's pools, of GKE's, of AKS's."""

SOURCES = {"emptyDir", "configMap", "persistentVolumeClaim"}


def faults_of_pod(template: Manifest, asks_kubernetes: bool) -> Iterator[str]:
    """What is wrong with a pod's template; `asks_kubernetes`: an autoscaler in it has to."""
    spec, labels = template["spec"], template["metadata"]["labels"]
    for key, value in labels.items():
        if not KEY.fullmatch(key) or not VALUE.fullmatch(value):
            yield f"no legal label: {key}={value}"
    if labels["app.kubernetes.io/component"] not in ("head", "engines", "workers", "submitter"):
        yield "nothing says which part it is"
    yield from _rights(spec, asks_kubernetes)
    yield from _volumes(spec)
    if labels["app.kubernetes.io/component"] == "submitter":
        if spec.get("restartPolicy") != "Never":
            yield "a container that is begun again finds what the last one left"
    else:
        yield from _ray_node(spec)
    for container in spec["containers"]:
        yield from _container(container, container["name"])
        yield from _accelerator(container, spec)
        if container.get("imagePullPolicy") not in ("Always", "IfNotPresent", "Never"):
            yield f"no legal imagePullPolicy: {container.get('imagePullPolicy')}"


def _ray_node(spec: Manifest) -> Iterator[str]:
    if not spec["terminationGracePeriodSeconds"] >= 30:
        yield "is killed before it could end"
    (container,) = spec["containers"]
    paths = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    environment = {one["name"]: one.get("value", "") for one in container["env"]}
    for name in ("HOME", "GRISTMILL_CACHE", "HF_MODULES_CACHE", "HF_HOME"):
        top = "/" + environment[name].split("/")[1]
        if top not in paths or (paths[top] and name != "HF_HOME"):
            yield f"{name} cannot be written"
    for one in spec.get("tolerations", []):
        if one["key"] not in (*SPOT, "nvidia.com/gpu") or SPOT.get(one["key"]) != one.get("value"):
            yield f"tolerates what no pool of nodes is tainted with: {one}"
    if 0 < sum(one["key"] in SPOT for one in spec.get("tolerations", [])) < len(SPOT):
        yield "tolerates the spot nodes of some clouds only"


def faults_of_autoscaler(options: Manifest) -> Iterator[str]:
    """Of KubeRay's container beside the head."""
    yield from _container({"image": "autoscaler:1", **options}, "autoscaler", scratch=False)
    if options["version"] != "v2" or options["imagePullPolicy"] not in ("Always", "IfNotPresent", "Never"):
        yield "autoscaler: another one than was tried"
    if {one["name"] for one in options["volumeMounts"]} != {"tmp", "scratch"}:
        yield "autoscaler: mounts what the head's pod does not have"


def ports_of(template: Manifest) -> list[tuple[str, int]]:
    """Names and numbers of the ports of a pod."""
    containers = template["spec"]["containers"]
    return [(port["name"], port["containerPort"]) for one in containers for port in one.get("ports", [])]


def _rights(spec: Manifest, asks_kubernetes: bool) -> Iterator[str]:
    context = spec.get("securityContext", {})
    if not context.get("runAsNonRoot") or not context.get("runAsUser", 0) > 0:
        yield "may run as root"
    if not (context.get("runAsGroup", 0) > 0 and context.get("fsGroup", 0) > 0):
        yield "files that it writes are of group root, or volumes are not its own"
    if context.get("fsGroupChangePolicy") not in ("OnRootMismatch", "Always"):
        yield "no legal fsGroupChangePolicy"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "no seccomp profile"
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        yield "shares something with its node"
    if spec.get("enableServiceLinks") is not False:
        yield "learns of every service of its namespace, in variables that may be taken for ours"
    if spec.get("automountServiceAccountToken") is not asks_kubernetes:
        yield "has no token to ask Kubernetes for pods with" if asks_kubernetes else "has a token for Kubernetes"


def _volumes(spec: Manifest) -> Iterator[str]:
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    if any("hostPath" in volume for volume in volumes.values()):
        yield "sees files of its node"
    used = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
    if used != set(volumes):
        yield f"volumes that are mounted or there, but not both: {sorted(used ^ set(volumes))}"
    for name, volume in volumes.items():
        if len(SOURCES & set(volume)) != 1:
            yield f"{name}: a volume of nothing, or of two things"
        if "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
            yield f"{name}: may fill its node's disk"
    for mount in (one for container in spec["containers"] for one in container["volumeMounts"]):
        volume = volumes.get(mount["name"], {})
        read_only = mount.get("readOnly", False)
        if "configMap" in volume and (not read_only or mount["mountPath"] != "/etc/gristmill"):
            yield "its files may be written to, which has no effect, or are not where commands look for them"
        if "persistentVolumeClaim" in volume and read_only != volume["persistentVolumeClaim"]["readOnly"]:
            yield f"{mount['name']}: the claim may be written, and the mount not, or the other way round"
        if mount["mountPath"] == "/dev/shm" and volume["emptyDir"].get("medium") != "Memory":
            yield "Ray's object store would lie on a disk"


def _container(container: Manifest, name: str, *, scratch: bool = True) -> Iterator[str]:
    context = container.get("securityContext", {})
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True}
    if any(context.get(key) is not value for key, value in wanted.items()) or context.get("privileged"):
        yield f"{name}: may do more than it needs: {context}"
    if context.get("capabilities", {}).get("drop") != ["ALL"] or context.get("capabilities", {}).get("add"):
        yield f"{name}: has capabilities"
    if not IMAGE.fullmatch(container["image"]):
        yield f"{name}: an image that may be another tomorrow: {container['image']}"
    limits, requests = (container.get("resources", {}).get(key, {}) for key in ("limits", "requests"))
    bounded = {"cpu", "memory", *(["ephemeral-storage"] if scratch else [])}
    if not bounded <= set(limits) or not bounded <= set(requests):
        yield f"{name}: {', '.join(sorted(bounded))} need a request and a limit"
    paths = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    if len(paths) < len(container["volumeMounts"]):
        yield f"{name}: two volumes at one path"
    environment = {one["name"]: one.get("value", "") for one in container.get("env", [])}
    if paths.get("/tmp", True) or paths.get(environment.get("HOME", "/home/ray"), True):
        yield f"{name}: nothing can be written to /tmp or HOME"
    for key, value in environment.items():
        if value and (CREDENTIAL.search(key) or CREDENTIAL.search(value)):
            yield f"{name}: a credential in plain text: {key}"
    for one in container.get("env", []):
        origin = one.get("valueFrom", {})
        secret = origin.get("secretKeyRef", {"name": "-", "key": "-"})
        if ("value" in one) == bool(origin) or not all(origin.values()) or not {"name", "key"} <= set(secret):
            yield f"{name}: {one['name']} has no value, or two"
    ports = ports_of({"spec": {"containers": [container]}})
    if len({port for _, port in ports}) < len(ports) or len({key for key, _ in ports}) < len(ports):
        yield f"{name}: a port or its name occurs twice"
    if not all(0 < port < 1 << 16 for _, port in ports):
        yield f"{name}: no legal port"


def _accelerator(container: Manifest, spec: Manifest) -> Iterator[str]:
    limits, requests = container["resources"]["limits"], container["resources"]["requests"]
    if limits.get("nvidia.com/gpu") != requests.get("nvidia.com/gpu"):
        yield "GPUs that are asked for must be the limit"
    tolerations = spec.get("tolerations", [])
    tolerated = {one["key"] for one in tolerations if one["operator"] == "Exists" and one["effect"] == "NoSchedule"}
    if "nvidia.com/gpu" in limits and "nvidia.com/gpu" not in tolerated:
        yield "GPU nodes are tainted, and that is not tolerated"
    if any((one["operator"] == "Equal") != bool(one.get("value")) for one in tolerations):
        yield "tolerates a taint that has no value"
