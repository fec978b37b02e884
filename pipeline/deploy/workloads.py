"""What runs: RayJob, RayCronJob, RayService, and the Job or CronJob that submits to the pool of a RayService.

Kubernetes' own Job looks at exit codes, so that what cannot succeed is not tried again. KubeRay's does not: it tries
every job that failed again, with a cluster of its own, as often as `retries` says.
"""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.deploy.pods import SERVE_PORT, autoscaler, labels_of, plain_pod, ray_pod
from pipeline.deploy.sizes import Group, cluster_of
from pipeline.deploy.values import Schedule, Values
from pipeline.deploy.work import JOB_FILE, MOUNT, Deployment
from pipeline.errors import InputError, JobFileError, SchemaError, StoppedError

Body = dict[str, Any]

OBJECT_STORE_BYTES = 1 << 30
"""Ray's object store: no document goes through it, and by default it would take 30 % of a pod's memory."""

SLOT = "GRISTMILL_SLOT"
"""The variable of a submitter in which a time of a schedule has its name."""

FINAL = (JobFileError, InputError, SchemaError, StoppedError)
"""What the next pod would find in the same way."""

_SUBMITTER = {
    "limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
    "requests": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi"},
}


def ray_job(found: Deployment, ray_version: str) -> Body:
    """A RayJob with a cluster of its own, or a RayCronJob that makes one at its times."""
    values = found.values
    # KubeRay adds the command, in which a shell of this pod reads the entrypoint first.
    submitter = {"name": "ray-job-submitter", "env": _submitter_env(values), "resources": _SUBMITTER}
    spec = {
        "entrypoint": " ".join(["gristmill", "run", f"{MOUNT}/{JOB_FILE}", *_run_words(values)]),
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
    # The id is that of the job, whatever its input holds: a pod after one that was lost follows what runs already.
    submit = ["exec gristmill submit", f"/tmp/job/{JOB_FILE}", "--working-dir /tmp/job --id-by job"]
    submit += [f"--address http://{pool}-head-svc:8265", *(f"--env {name}" for name in values.env), *_words(values)]
    token = {"name": values.ray_token, "key": "auth_token"}
    container = {
        "name": "submitter",
        "command": ["/bin/bash", "-c", f"set -e; mkdir /tmp/job; cp -RL {MOUNT}/* /tmp/job; {' '.join(submit)}"],
        "env": [
            *_submitter_env(values),
            {"name": "RAY_AUTH_MODE", "value": "token"},
            {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": token}},
            *({"name": name, "value": value} for name, value in values.env.items()),
        ],
        "resources": _SUBMITTER,
    }
    final = sorted(kind.exit_code for kind in FINAL)
    rule = {"onExitCodes": {"containerName": "submitter", "operator": "In", "values": final}, "action": "FailJob"}
    job = {
        "backoffLimit": values.retries,
        "podFailurePolicy": {"rules": [rule]},
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


def _words(values: Values) -> list[str]:
    """Options of `gristmill run`, which `gristmill submit` takes as well. The job's file holds a fixed slot."""
    words = [*(["--fresh"] if values.fresh else []), *(f"--again {one}" for one in values.again)]
    return [*words, f'--slot "${SLOT}"'] if values.schedule is not None and values.schedule.slots else words


def _run_words(values: Values) -> list[str]:
    """Those of `gristmill run` on a cluster of its own, where nothing else keeps two times of a schedule apart."""
    return [*([] if values.schedule is None else [f"--overlap {values.schedule.overlap}"]), *_words(values)]


def _submitter_env(values: Values) -> list[Body]:
    """Of a pod that submits. Kubernetes names the pod's Job by the time of the schedule, and by the same name in each
    further attempt."""
    job = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    slot = values.schedule is not None and values.schedule.slots
    return [{"name": "HOME", "value": "/scratch"}, *([{"name": SLOT, "valueFrom": job}] if slot else [])]


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
