"""What no schema says of a workload: that it starts a command of ours, that it ends, and that its Ray fits together."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import typer.main
from pod_checks import ports_of

from pipeline.cli import app
from pipeline.deploy.schedules import check_cron

Manifest = Mapping[str, Any]

HEAD_PORTS = {"gcs-server": 6379, "dashboard": 8265, "metrics": 8080, "as-metrics": 44217, "dash-metrics": 44227}
"""Names that KubeRay looks for, and the numbers that Ray is started with."""

RAY_PARAMETERS = {"dashboard-host", "num-cpus", "object-store-memory"}
ENDS = ({"jobStatus": "SUCCEEDED"}, {"jobStatus": "FAILED"}, {"jobDeploymentStatus": "Failed"})
FINAL = {2, 3, 4, 10}
"""Exit codes of README that the next try would find in the same way."""


def faults_of_workload(manifest: Manifest) -> Iterator[str]:
    """Of a RayJob, RayCronJob, Job, CronJob; a RayService has nothing of its own."""
    kind, spec = manifest["kind"], manifest["spec"]
    if kind in ("RayCronJob", "CronJob"):
        yield from _schedule(spec)
        if kind == "CronJob" and spec.get("concurrencyPolicy") != "Forbid":
            yield "two runs at a time"
    if kind in ("RayJob", "RayCronJob"):
        yield from _ray_job(spec["jobTemplate"] if kind == "RayCronJob" else spec)
        alone = r".* --overlap (refuse|queue)( .*)?"
        if kind == "RayCronJob" and not re.fullmatch(alone, spec["jobTemplate"]["entrypoint"]):
            yield "two runs at a time"
    if kind in ("Job", "CronJob"):
        yield from _job(spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)


def faults_of_cluster(cluster: Manifest) -> Iterator[str]:
    """Of a Ray cluster."""
    groups, head = cluster["workerGroupSpecs"], cluster["headGroupSpec"]
    if cluster["rayVersion"] != importlib.metadata.version("ray"):
        yield "another Ray than that of the image"
    if cluster.get("authOptions", {}).get("mode") != "token":
        yield "whoever reaches the head can run code: authOptions.mode is not token"
    if len({group["groupName"] for group in groups}) < len(groups):
        yield "two groups have the same name"
    for group in groups:
        if not 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]:
            yield f"{group['groupName']}: replicas are not between minReplicas and maxReplicas"
        if group["template"]["metadata"]["labels"]["app.kubernetes.io/component"] != group["groupName"]:
            yield f"{group['groupName']}: its pods say that they are of another group"
    grows = any(group["minReplicas"] < group["maxReplicas"] for group in groups)
    if grows != cluster.get("enableInTreeAutoscaling", False):
        yield "an autoscaler is needed exactly where a group may grow"
    if not HEAD_PORTS.items() <= dict(ports_of(head["template"])).items():
        yield "KubeRay, Prometheus or a submitter looks for a port of the head that is not there"
    if head["rayStartParams"].get("dashboard-host") != "0.0.0.0":
        yield "no other pod reaches the job server"
    if bool(groups) != (head["rayStartParams"].get("num-cpus") == "0"):
        yield "a head with groups does no work, and one without does all"
    for group in (head, *groups):
        yield from _ray_start(group)


def _ray_start(group: Manifest) -> Iterator[str]:
    given = group["rayStartParams"]
    (container,) = group["template"]["spec"]["containers"]
    if strange := set(given) - RAY_PARAMETERS:
        yield f"Ray is started with {sorted(strange)}"
    memory = int(container["resources"]["limits"]["memory"].removesuffix("Mi")) << 20
    if not 0 < int(given["object-store-memory"]) < memory / 2:
        yield "Ray's object store takes the memory of its pod"
    if not re.fullmatch(r"\d+", given.get("num-cpus", "0")):
        yield "a number of CPUs that Ray does not understand"
    gpus = "nvidia.com/gpu" in container["resources"]["limits"]
    if gpus and "groupName" in group and given.get("num-cpus") != "0":
        yield "CPU work would come to the engines' pods"


def _schedule(spec: Manifest) -> Iterator[str]:
    try:
        check_cron(spec["schedule"])
        ZoneInfo(spec["timeZone"])
    except (ValueError, LookupError) as error:
        yield f"never due: {error}"
    if spec.get("suspend") is not False:
        yield "never begins"


def _ray_job(job: Manifest) -> Iterator[str]:
    submitter = job["submitterPodTemplate"]["spec"]["containers"][0]
    if "headGroupSpec" not in job["rayClusterSpec"]:
        yield "no cluster"
    if job.get("submissionMode") != "K8sJobMode" or submitter.get("command"):
        yield "KubeRay gives the submitter its command in K8sJobMode only"
    if not job["backoffLimit"] >= 0 or not job["preRunningDeadlineSeconds"] > 0:
        yield "waits for ever"
    if job.get("shutdownAfterJobFinishes") and job.get("deletionStrategy"):
        yield "shutdownAfterJobFinishes and deletionRules exclude each other"
    rules = {
        (str(_end(one)), one["policy"]): one["condition"]["ttlSeconds"]
        for one in job["deletionStrategy"]["deletionRules"]
    }
    for end in ENDS:
        cluster, itself = (rules.get((str(end), policy)) for policy in ("DeleteCluster", "DeleteSelf"))
        if cluster is None or itself is None or cluster > itself:
            yield f"a cluster that stays when its job ends with {end}"
    yield from _command(shlex.split(job["entrypoint"]), "run", "/etc/gristmill/job.yaml")


def _end(rule: Manifest) -> dict[str, Any]:
    return {key: value for key, value in rule["condition"].items() if key != "ttlSeconds"}


def _job(job: Manifest) -> Iterator[str]:
    (container,) = job["template"]["spec"]["containers"]
    if not job["backoffLimit"] >= 0 or not job["ttlSecondsAfterFinished"] >= 0:
        yield "is tried for ever, or kept for ever"
    (rule,) = job["podFailurePolicy"]["rules"]
    on = rule["onExitCodes"]
    if rule["action"] != "FailJob" or on["operator"] != "In" or set(on["values"]) != FINAL:
        yield "what cannot succeed is tried again, or what can is not"
    if on["containerName"] != container["name"]:
        yield "exit codes of a container that is not there"
    shell, flag, line = container["command"]
    if (shell, flag) != ("/bin/bash", "-c") or not line.startswith("set -e; "):
        yield "a command that goes on after a part of it failed"
    environment = {one["name"]: one for one in container["env"]}
    secret = environment["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
    if environment["RAY_AUTH_MODE"]["value"] != "token" or secret["key"] != "auth_token" or not secret["name"]:
        yield "the pool's cluster asks for its token"
    words = shlex.split(line.rpartition("exec ")[2])
    yield from _command(words, "submit", "/tmp/job/job.yaml")
    if not re.fullmatch(r"http://[a-z][-a-z0-9]*-head-svc:8265", words[words.index("--address") + 1]):
        yield "no head of a RayService"
    if "/etc/gristmill/*" not in line or "--working-dir /tmp/job" not in line:
        yield "the files of the job are not sent"


def _command(words: list[str], name: str, job_path: str) -> Iterator[str]:
    """Whether our own command line takes it."""
    command: Any = typer.main.get_command(app)
    if words[:3] != ["gristmill", name, job_path]:
        yield f"begins with {words[:3]}"
        return
    try:
        command.commands[name].make_context(name, words[2:])
    except typer.main.click.exceptions.ClickException as error:
        yield f"gristmill refuses its command: {error.format_message()}"
