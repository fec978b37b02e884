"""What runs: RayJob, RayCronJob, RayService, and the Job or CronJob that submits to the pool of a RayService."""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.deploy.pods import SERVE_PORT, autoscaler, labels_of, plain_pod, ray_pod
from pipeline.deploy.sizes import Group, cluster_of
from pipeline.deploy.values import Schedule, Values
from pipeline.deploy.work import JOB_FILE, MOUNT, Deployment

Body = dict[str, Any]

OBJECT_STORE_BYTES = 1 << 30
"""Ray's object store: no document goes through it, and by default it would take 30 % of a pod's memory."""

_SUBMITTER = {
    "limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
    "requests": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi"},
}


def ray_job(found: Deployment, ray_version: str) -> Body:
    """A RayJob with a cluster of its own, or a RayCronJob that makes one at its times."""
    values = found.values
    home = [{"name": "HOME", "value": "/scratch"}]
    submitter = {"name": "ray-job-submitter", "env": home, "resources": _SUBMITTER}  # KubeRay adds the command
    spec = {
        "entrypoint": f"gristmill run {MOUNT}/{JOB_FILE}",
        "submissionMode": "K8sJobMode",
        "backoffLimit": values.retries,
        "preRunningDeadlineSeconds": values.start_seconds,
        **({} if values.deadline_seconds is None else {"activeDeadlineSeconds": values.deadline_seconds}),
        "deletionStrategy": {"deletionRules": _deletion(values)},
        "submitterPodTemplate": plain_pod(found, "submitter", submitter),
        "rayClusterSpec": ray_cluster(found, ray_version),
    }
    if values.schedule is None:
        return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": _named(values), "spec": spec}
    again = {**_when(values.schedule), "jobTemplate": spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": _named(values), "spec": again}


def ray_service(found: Deployment, serve: Any, ray_version: str) -> Body:
    """A RayService. Its proxies listen on every node that holds a part of the application, for other pods as well."""
    config = {
        **serve,
        "proxy_location": "EveryNode",
        "http_options": {**(serve.get("http_options") or {}), "host": "0.0.0.0", "port": SERVE_PORT},
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": _named(found.values),
        "spec": {
            "serveConfigV2": yaml.safe_dump(config, sort_keys=False, width=120, allow_unicode=True),
            "rayClusterConfig": ray_cluster(found, ray_version),
        },
    }


def pool_job(found: Deployment, pool: str) -> Body:
    """A Job, or a CronJob, that submits to a RayService's cluster. That gets another name with each upgrade, by which a
    RayJob would have to name it; the name of its head's service stays."""
    values = found.values
    # The driver runs in the pool's head, which does not have this job's files: they go there as its working directory.
    command = (
        f"set -e; mkdir /tmp/job; cp -RL {MOUNT}/* /tmp/job; "
        f"exec ray job submit --address http://{pool}-head-svc:8265 --working-dir /tmp/job -- gristmill run {JOB_FILE}"
    )
    token = {"name": values.ray_token, "key": "auth_token"}
    container = {
        "name": "submitter",
        "command": ["/bin/bash", "-c", command],
        "env": [
            {"name": "HOME", "value": "/scratch"},
            {"name": "RAY_AUTH_MODE", "value": "token"},
            {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": token}},
        ],
        "resources": _SUBMITTER,
    }
    job = {
        "backoffLimit": values.retries,
        **({} if values.deadline_seconds is None else {"activeDeadlineSeconds": values.deadline_seconds}),
        "ttlSecondsAfterFinished": values.keep.job_seconds,
        "template": plain_pod(found, "submitter", container),
    }
    if values.schedule is None:
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _named(values), "spec": job}
    spec = {
        **_when(values.schedule),
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"metadata": {"labels": labels_of(values)}, "spec": job},
    }
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": _named(values), "spec": spec}


def ray_cluster(found: Deployment, ray_version: str) -> Body:
    """The cluster of a job or service. Nobody gets at it without its token."""
    values = found.values
    cluster = cluster_of(found.work, values)
    secret = {} if values.ray_token is None else {"secretName": values.ray_token}
    scaling = {"enableInTreeAutoscaling": True, "autoscalerOptions": autoscaler(values)} if cluster.grows else {}
    return {
        "rayVersion": ray_version,
        "authOptions": {"mode": "token", **secret},
        **scaling,
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "0.0.0.0", **_start(cluster.head)},
            "template": ray_pod(found, cluster.head, autoscales=cluster.grows),
        },
        "workerGroupSpecs": [
            {
                "groupName": group.role,
                "replicas": group.fewest,
                "minReplicas": group.fewest,
                "maxReplicas": group.most,
                "rayStartParams": _start(group),
                "template": ray_pod(found, group),
            }
            for group in cluster.groups
        ],
    }


def _start(group: Group) -> dict[str, str]:
    cpus = {} if group.ray_cpus is None else {"num-cpus": str(group.ray_cpus)}
    return {**cpus, "object-store-memory": str(OBJECT_STORE_BYTES)}


def _when(schedule: Schedule) -> Body:
    return {"schedule": schedule.cron, "timeZone": schedule.time_zone, "suspend": schedule.suspend}


def _named(values: Values) -> Body:
    return {"name": values.name, "labels": labels_of(values)}


def _deletion(values: Values) -> list[Body]:
    """The cluster goes soon after its job; the job's object later, or those of a schedule would pile up for ever."""
    ends = ({"jobStatus": "SUCCEEDED"}, {"jobStatus": "FAILED"}, {"jobDeploymentStatus": "Failed"})
    times = (("DeleteCluster", values.keep.cluster_seconds), ("DeleteSelf", values.keep.job_seconds))
    return [
        {"policy": policy, "condition": {**end, "ttlSeconds": seconds}} for end in ends for policy, seconds in times
    ]
