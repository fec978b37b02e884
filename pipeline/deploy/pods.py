"""Pods: what runs in them, as whom, with which volumes. Every pod here would pass Kubernetes' `restricted` standard.

The root file system is read-only. What is written goes to /tmp (Ray's sessions and logs), /dev/shm (its object store,
NCCL) and /scratch (HOME: caches of vLLM, Triton and of compiled schemas), all of which go with the pod.
"""

from __future__ import annotations

import math
from typing import Any

from pipeline.deploy.sizes import Group
from pipeline.deploy.values import Pods, Values
from pipeline.deploy.work import MOUNT, Deployment
from pipeline.serve_app.settings import AppConfig

USER, GROUP = 1000, 100
"""User `ray` and group `users` of Ray's images, as which ours runs, too."""

GRACE_SECONDS = 30
SERVE_PORT = 8000
PROXY = ("RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "pipeline.serve_app.proxy:middlewares")

SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
GPU = "nvidia.com/gpu"
_SPOT = (
    ("gristmill.dev/spot", "true"),  # of terraform/modules/node_pools
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
_SHM = "4Gi"
_WRITABLE = (("tmp", "/tmp"), ("scratch", "/scratch"))
_HEAD_PORTS = (("gcs-server", 6379), ("dashboard", 8265), ("as-metrics", 44217), ("dash-metrics", 44227))


def labels_of(values: Values) -> dict[str, str]:
    """What every object and pod of a deployment carries."""
    return {"app.kubernetes.io/part-of": "gristmill", "app.kubernetes.io/instance": values.name}


def ray_pod(found: Deployment, group: Group, *, autoscales: bool = False) -> dict[str, Any]:
    """The template of the head's pod or of those of a group. KubeRay fills in how Ray is started, and its probes."""
    values, is_head = found.values, group.role == "head"
    serves = isinstance(found.work, AppConfig)
    ports = [*(_HEAD_PORTS if is_head else ()), ("metrics", 8080), *((("serve", SERVE_PORT),) if serves else ())]
    container = {
        "name": "ray-head" if is_head else "ray-worker",
        "image": values.image,
        "imagePullPolicy": values.pull_policy,
        "env": _environment(found),
        "ports": [{"name": name, "containerPort": port} for name, port in ports],
        "resources": _resources(group, getattr(values, group.name)),
        "securityContext": SECURITY,
        "volumeMounts": _mounts(values),
    }
    spec = {
        **_pod(values, getattr(values, group.name), group.gpus),
        # The autoscaler beside the head asks Kubernetes for pods; nobody else talks to it.
        "automountServiceAccountToken": is_head and autoscales,
        "terminationGracePeriodSeconds": GRACE_SECONDS + math.ceil(_drain_seconds(found)),
        "containers": [container],
        "volumes": _volumes(found, getattr(values, group.name)),
    }
    return {"metadata": _metadata(values, group.role), "spec": spec}


def plain_pod(found: Deployment, role: str, container: dict[str, Any]) -> dict[str, Any]:
    """The template of a pod that is no Ray node, only talks to one; `container` has its name, command and resources.
    It has the deployment's files if it is to send them."""
    values, sends = found.values, found.values.pool is not None
    full = {
        "name": container["name"],
        "image": values.image,
        "imagePullPolicy": values.pull_policy,
        **container,
        "securityContext": SECURITY,
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in _WRITABLE]
        + ([_config_mount()] if sends else []),
    }
    volumes = [{"name": name, "emptyDir": {"sizeLimit": "1Gi"}} for name, _ in _WRITABLE]
    spec = {
        **_pod(values, values.head, 0),
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "containers": [full],
        "volumes": [*volumes, *([_config_volume(found)] if sends else [])],
    }
    return {"metadata": _metadata(values, role), "spec": spec}


def autoscaler(values: Values) -> dict[str, Any]:
    """KubeRay's container beside the head, which asks for pods and gives them back."""
    size = {"cpu": "500m", "memory": "1Gi"}
    return {
        "version": "v2",
        "imagePullPolicy": values.pull_policy,
        "resources": {"limits": size, "requests": size},
        "securityContext": SECURITY,
        "env": [{"name": "HOME", "value": "/scratch"}],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in _WRITABLE],
    }


def _pod(values: Values, pods: Pods, gpus: int) -> dict[str, Any]:
    tolerations: list[dict[str, Any]] = [one.model_dump(exclude_none=True) for one in pods.tolerations]
    if gpus:
        tolerations.append({"key": GPU, "operator": "Exists", "effect": "NoSchedule"})
    if pods.spot:
        tolerations += [{"key": key, "operator": "Equal", "value": value} for key, value in _SPOT]
    return {
        "serviceAccountName": values.account,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": GROUP,
            "fsGroup": GROUP,
            "fsGroupChangePolicy": "OnRootMismatch",  # not every file of a model volume at each start
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"imagePullSecrets": [{"name": name} for name in values.pull_secrets]} if values.pull_secrets else {}),
        **({"nodeSelector": dict(pods.node_selector)} if pods.node_selector else {}),
        **({"tolerations": tolerations} if tolerations else {}),
    }


def _metadata(values: Values, role: str) -> dict[str, Any]:
    return {"labels": {**values.identity.pod_labels, **labels_of(values), "app.kubernetes.io/component": role}}


def _environment(found: Deployment) -> list[dict[str, Any]]:
    values = found.values
    plain = {
        "HOME": "/scratch",
        "GRISTMILL_CACHE": "/scratch/gristmill",
        "HF_HOME": "/models" if values.models.claim else "/scratch/huggingface",
        "HF_MODULES_CACHE": "/scratch/hf-modules",
        **(dict([PROXY]) if isinstance(found.work, AppConfig) else {}),
        **values.env,
    }
    secret = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": one.secret, "key": one.key}}}
        for name, one in values.secret_env.items()
    ]
    return [{"name": name, "value": value} for name, value in plain.items()] + secret


def _resources(group: Group, pods: Pods) -> dict[str, Any]:
    size: dict[str, Any] = {
        "cpu": str(group.cpu),
        "memory": f"{group.memory}Mi",
        "ephemeral-storage": pods.scratch,
        **({GPU: str(group.gpus)} if group.gpus else {}),
    }
    return {"limits": size, "requests": size}


def _mounts(values: Values) -> list[dict[str, Any]]:
    writable = [*_WRITABLE, ("shm", "/dev/shm")]
    mounts: list[dict[str, Any]] = [{"name": name, "mountPath": path} for name, path in writable]
    return [*mounts, _config_mount(), *({"name": name, **mount} for name, mount, _ in _claims(values))]


def _volumes(found: Deployment, pods: Pods) -> list[dict[str, Any]]:
    return [
        *({"name": name, "emptyDir": {"sizeLimit": pods.scratch}} for name, _ in _WRITABLE),
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _SHM}},
        _config_volume(found),
        *({"name": name, "persistentVolumeClaim": claim} for name, _, claim in _claims(found.values)),
    ]


def _claims(values: Values) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Claimed volumes: name, mount, claim."""
    models = values.models
    wanted = [("models", models.claim, "/models", models.read_only)] if models.claim else []
    wanted += [(f"volume-{n}", one.claim, one.path, one.read_only) for n, one in enumerate(values.volumes)]
    return [
        (name, {"mountPath": path, "readOnly": read_only}, {"claimName": claim, "readOnly": read_only})
        for name, claim, path, read_only in wanted
    ]


def _config_mount() -> dict[str, Any]:
    return {"name": "config", "mountPath": MOUNT, "readOnly": True}


def _config_volume(found: Deployment) -> dict[str, Any]:
    items = [{"key": key_of(path), "path": path} for path in sorted(found.files)]
    return {"name": "config", "configMap": {"name": found.config_map, "items": items}}


def key_of(path: str) -> str:
    """The key of a file in the ConfigMap, where a key has no slash. No part of a path begins with a dot."""
    return path.replace("/", "..")


def _drain_seconds(found: Deployment) -> float:
    work = found.work
    return work.pool.drain_seconds if isinstance(work, AppConfig) else work.safety.drain_seconds
