"""The objects of a deployment, as YAML that is the same for the same input, byte by byte."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pipeline.deploy import workloads
from pipeline.deploy.pods import key_of, labels_of
from pipeline.deploy.values import Monitoring, Values
from pipeline.deploy.work import Deployment, load_deployment

Manifest = dict[str, Any]


def render(path: str | Path) -> str:
    """The manifests of a file of values, for `kubectl apply -f -`.

    Raises:
        JobFileError: the values, or what they name, cannot be used.
        SchemaError: a schema cannot be used.
    """
    note = f"# Rendered by `gristmill render {Path(path).name}`. Do not edit: change the values and render again.\n"
    return note + to_yaml(manifests_of(load_deployment(path)))


def manifests_of(found: Deployment) -> list[Manifest]:
    """All objects of a deployment, in an order in which they can be created."""
    values = found.values
    objects = [
        *([_account(values)] if values.identity.create else []),
        _config_map(found),
        workload_of(found),
        *([_monitor(values, values.monitoring)] if values.monitoring is not None and values.pool is None else []),
    ]
    return [{**one, "metadata": _metadata(values, one["metadata"])} for one in objects]


def workload_of(found: Deployment) -> Manifest:
    """The one object that runs: RayService, RayJob, RayCronJob, or what submits a job to the pool of a service."""
    values = found.values
    if found.serve is not None:
        return workloads.ray_service(found, found.serve, ray_version())
    if values.pool is not None:
        return workloads.pool_job(found, values.pool)
    return workloads.ray_job(found, ray_version())


def ray_version() -> str:
    """Ray's version here, which is the image's: both come from one lock."""
    return importlib.metadata.version("ray")


def to_yaml(objects: Sequence[Manifest]) -> str:
    """YAML documents; text of several lines stays readable."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=4096, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Without anchors, which some tools do not read."""

    def ignore_aliases(self, data: Any) -> bool:
        """Always: equal parts are written out."""
        return True

    def text(self, data: str) -> yaml.ScalarNode:
        """Text of several lines as a block."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_Dumper.add_representer(str, _Dumper.text)


def _metadata(values: Values, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"name": metadata["name"], "namespace": values.namespace, **metadata}


def _account(values: Values) -> Manifest:
    identity = values.identity
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": values.account,
            "labels": labels_of(values),
            **({"annotations": dict(identity.annotations)} if identity.annotations else {}),
        },
        "automountServiceAccountToken": False,
    }


def _config_map(found: Deployment) -> Manifest:
    """Helm, by which Terraform applies manifests, would take away the one of the rendering before; a run that began
    under that one still mounts it in the pods that start later."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": found.config_map,
            "labels": labels_of(found.values),
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "immutable": True,
        "data": {key_of(path): text for path, text in sorted(found.files.items())},
    }


def _monitor(values: Values, monitoring: Monitoring) -> Manifest:
    """Ray's metrics, ours among them: Ray puts `ray_` before their names, which is taken off again. Their label `job`,
    which is the job's name, is kept (`honorLabels`)."""
    ours = {"sourceLabels": ["__name__"], "regex": "ray_(gristmill_.+)", "targetLabel": "__name__"}
    ports = ("metrics", "as-metrics", "dash-metrics")
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": values.name, "labels": {**monitoring.labels, **labels_of(values)}},
        "spec": {
            "selector": {"matchLabels": labels_of(values)},
            "podTargetLabels": ["ray.io/cluster", "ray.io/group"],
            "podMetricsEndpoints": [
                {"port": port, "interval": monitoring.interval, "honorLabels": True, "metricRelabelings": [ours]}
                for port in ports
            ],
        },
    }
