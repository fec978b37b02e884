"""What an operator sets of a deployment: the file that `gristmill render` reads, with defaults and bounds.

How many pods, GPUs and engines there are is not here: that follows from the job or the application (`sizes.py`).
"""

from __future__ import annotations

import re
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, field_validator, model_validator

from pipeline.deploy.schedules import check_cron
from pipeline.jobplacement import Strict
from pipeline.runtime.since import AGAIN

MAX_NAME, MAX_SCHEDULED_NAME = 47, 36
"""The longest names that KubeRay 1.7 takes for a RayJob or RayService, and for a RayCronJob."""

CREDENTIALS = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SHARED_CREDENTIALS_FILE)|GOOGLE_APPLICATION_CREDENTIALS"
    r"|AZURE_(CLIENT_SECRET|STORAGE_(KEY|SAS_TOKEN|CONNECTION_STRING))"
)
"""Variables that hold credentials of an object store, which pods get from their identity instead."""

SECRET = re.compile(r"(?i)(^|_)(token|secret|password|passwd|credentials?|api_?key|access_?key|key)($|_)")
"""Names of variables whose values belong into a Secret."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]
ObjectName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Size = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(Mi|Gi)$")]
MountPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9][A-Za-z0-9_.-]*)+$")]
Labels = dict[str, str]

_IMAGE = re.compile(r"[a-z0-9][a-z0-9._/:-]*(:(?P<tag>[\w][\w.-]{0,127})|@sha256:[0-9a-f]{64})", re.ASCII)
_OURS = ("/etc/gristmill", "/scratch", "/tmp", "/dev", "/models", "/home/ray", "/opt/gristmill", "/var/run/secrets")


class SecretKey(Strict):
    """One key of a Secret in the same namespace."""

    secret: ObjectName
    key: str = Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)


class Toleration(Strict):
    """As in Kubernetes."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Pods(Strict):
    """What one pod of a group gets, which is both what it asks for and its limit, and on which nodes it may be. `spot`
    tolerates the taints that clouds give to nodes that can be taken away; `node_selector` chooses such nodes."""

    cpu: int = Field(ge=1)
    memory: Size
    scratch: Size = "20Gi"
    node_selector: Labels = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    spot: bool = False


class Workers(Pods):
    """Pods for the work that needs no GPU. `replicas`: null for as many as the job's CPU processes need."""

    replicas: int | None = Field(None, ge=0)


class Identity(Strict):
    """The service account, by which pods get their rights to the object store. `annotations` name the cloud's role,
    such as `eks.amazonaws.com/role-arn`; `pod_labels` are what some clouds want on pods besides."""

    service_account: Name | None = None
    create: bool = True
    annotations: Labels = Field(default_factory=dict)
    pod_labels: Labels = Field(default_factory=dict)


class Models(Strict):
    """Where models lie: `claim` is a PersistentVolumeClaim that holds a Hugging Face cache (`HF_HOME`), mounted at
    /models. Without one, each pod downloads into its own `scratch`."""

    claim: ObjectName | None = None
    read_only: bool = True


class Volume(Strict):
    """A PersistentVolumeClaim with documents or lookups, or for output; `path` is where every pod sees it."""

    claim: ObjectName
    path: MountPath
    read_only: bool = False

    @field_validator("path")
    @classmethod
    def _is_free(cls, path: str) -> str:
        if any(path == one or path.startswith(one + "/") or one.startswith(path + "/") for one in _OURS):
            raise ValueError(f"{path} would hide or lie in a path of the image; use one such as /data")
        return path


class Schedule(Strict):
    """When a job runs: five fields of cron, or a word such as `@daily`, in a time zone.

    `overlap`: what becomes of a run that is due while another one of the job is under way (`gristmill run --overlap`).
    `slots`: each time is a slot of its own, so that a run over the same input as the last one does something.
    """

    cron: str
    time_zone: str = "Etc/UTC"
    suspend: bool = False
    overlap: Literal["refuse", "queue"] = "refuse"
    slots: bool = False

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, cron: str) -> str:
        check_cron(cron)
        return cron

    @field_validator("time_zone")
    @classmethod
    def _is_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, LookupError) as error:
            raise ValueError("no time zone of this name, such as Europe/Paris") from error
        return zone


class Keep(Strict):
    """How long, in seconds, a finished job's cluster and the job's own object stay, to look at."""

    cluster_seconds: int = Field(60, ge=0, lt=2**31)
    job_seconds: int = Field(7 * 86400, ge=0, lt=2**31)

    @model_validator(mode="after")
    def _agrees(self) -> Keep:
        if self.job_seconds < self.cluster_seconds:
            raise ValueError("job_seconds must not be less than cluster_seconds: the cluster goes with its job")
        return self


class Monitoring(Strict):
    """A PodMonitor for the Prometheus operator. `labels` are what its Prometheus selects by."""

    labels: Labels = Field(default_factory=dict)
    interval: str = Field("15s", pattern=r"^[1-9][0-9]*(s|m)$")


class Values(Strict):
    """One deployment: a `job` (with a `schedule`: again and again), or a `service`, which is a Serve config. A job with
    placement `serve` names in `pool` the service that it runs on. Paths are relative to the file of values.

    `again`, `fresh` and `slot` are those of `gristmill run`; `slot` stands in place of the job's own.

    `ray_token` is the Secret whose key `auth_token` opens the Ray cluster; null lets KubeRay make one for each cluster.
    `retries` are new clusters for a job that failed, or new pods that submit it to a pool; each resumes it. A job is
    given up when it has not begun after `start_seconds`, or is not done after `deadline_seconds`; one on a pool goes on
    there, and is followed again by the next pod.
    """

    name: Name
    namespace: Name = "gristmill"
    image: str
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    pull_secrets: tuple[ObjectName, ...] = ()
    job: str | None = None
    service: str | None = None
    pool: Name | None = None
    schedule: Schedule | None = None
    again: tuple[str, ...] = ()
    fresh: bool = False
    slot: str | None = None
    identity: Identity = Identity()
    models: Models = Models()
    volumes: tuple[Volume, ...] = ()
    env: dict[Variable, str] = Field(default_factory=dict)
    secret_env: dict[Variable, SecretKey] = Field(default_factory=dict)
    ray_token: ObjectName | None = None
    head: Pods = Pods(cpu=2, memory="8Gi")
    engines: Pods = Pods(cpu=8, memory="32Gi")
    workers: Workers = Workers(cpu=4, memory="16Gi")
    retries: int = Field(1, ge=0, le=10)
    start_seconds: int = Field(3600, ge=1, lt=2**31)
    deadline_seconds: int | None = Field(None, ge=1, lt=2**31)
    keep: Keep = Keep()
    monitoring: Monitoring | None = Monitoring()

    @field_validator("image")
    @classmethod
    def _is_pinned(cls, image: str) -> str:
        found = _IMAGE.fullmatch(image)
        if found is None or found["tag"] == "latest":
            raise ValueError("write NAME:TAG or NAME@sha256:DIGEST; `latest` is another image tomorrow")
        return image

    @field_validator("env")
    @classmethod
    def _is_no_secret(cls, env: dict[str, str]) -> dict[str, str]:
        if secret := sorted(name for name in env if SECRET.search(name) and not CREDENTIALS.fullmatch(name)):
            raise ValueError(f"{secret[0]} sounds like a secret; put it into a Secret and name that in `secret_env`")
        return env

    @field_validator("env", "secret_env")
    @classmethod
    def _is_no_credential(cls, env: dict[str, object]) -> dict[str, object]:
        if found := sorted(name for name in env if CREDENTIALS.fullmatch(name)):
            raise ValueError(f"{found[0]}: rights to the object store come from `identity`, not from keys")
        return env

    @field_validator("again")
    @classmethod
    def _is_known(cls, again: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(again) - set(AGAIN)):
            raise ValueError(f"{unknown[0]} is not one of {', '.join(AGAIN)}")
        return again

    @model_validator(mode="after")
    def _agrees(self) -> Values:
        if (self.job is None) == (self.service is None):
            raise ValueError("give exactly one of `job` and `service`")
        of_a_job = (self.schedule, self.pool, self.slot, self.again or None, self.fresh or None)
        if self.service is not None and any(one is not None for one in of_a_job):
            raise ValueError("`schedule`, `pool`, `slot`, `again` and `fresh` are for a job")
        if self.schedule is not None and self.schedule.slots and self.slot is not None:
            raise ValueError("`slot` is one slot for all times, and `schedule.slots` one for each; give one of them")
        longest = MAX_SCHEDULED_NAME if self.schedule is not None else MAX_NAME
        if len(self.name) > longest:
            raise ValueError(f"name: at most {longest} characters, so that names made from it stay legal")
        if twice := sorted(set(self.env) & set(self.secret_env)):
            raise ValueError(f"{twice[0]} stands in `env` and in `secret_env`")
        if len({one.path for one in self.volumes}) < len(self.volumes):
            raise ValueError("volumes: two of them have the same path")
        return self

    @property
    def account(self) -> str:
        """The name of the service account."""
        return self.identity.service_account or self.name
