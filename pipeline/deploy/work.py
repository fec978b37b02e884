"""What a deployment is made of: its values, the job or application that they name, and the files that go with it.

All that decides what a record becomes (job, engine, schemas, instructions, examples) travels in one ConfigMap whose
name is made from its content. So applying an older rendering brings back all of it at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.deploy.values import CREDENTIALS, SECRET, Values
from pipeline.errors import JobFileError
from pipeline.job import JobConfig, WorkConfig
from pipeline.jobfile import load_job, load_yaml, read_work, read_yaml
from pipeline.schema.registry import available, load_schema
from pipeline.serve_app.settings import AppConfig

MOUNT = "/etc/gristmill"
"""Where pods see the ConfigMap."""

JOB_FILE = "job.yaml"
MAX_BYTES = 900 << 10
"""Kubernetes takes 1 MiB for an object, its metadata included."""

IMPORT_PATH = "pipeline.serve_app.app:build"
_SCHEMA_FILES = ("schema.json", "instructions.md", "examples.jsonl")


@dataclass(frozen=True, slots=True)
class Deployment:
    """`files` by path below `MOUNT`; `serve` is the Serve config of a service, with the application written out."""

    values: Values
    work: JobConfig | AppConfig
    files: Mapping[str, str]
    serve: Mapping[str, Any] | None = None

    @property
    def engines(self) -> list[Any]:
        """The configs of all its engines, of those too that no rung of a ladder names."""
        return [self.work.engine, *self.work.engines.values()]

    @property
    def config_map(self) -> str:
        """The name of the ConfigMap: another one as soon as a file differs."""
        content = json.dumps([*sorted(self.files.items())]).encode()
        return f"{self.values.name}-{hashlib.sha256(content).hexdigest()[:10]}"


def load_deployment(path: str | Path) -> Deployment:
    """Read a file of values and what it names.

    Raises:
        JobFileError: something in it cannot be used, or could not work in pods.
        SchemaError: a schema of the job or application cannot be used.
    """
    values = load_yaml(path, Values)
    base = Path(path).parent
    found = _job(values, base) if values.job is not None else _service(values, base)
    _check_secrets(found)
    _check_reach(found)
    if (size := sum(map(len, map(str.encode, found.files.values())))) > MAX_BYTES:
        raise JobFileError(
            f"{path}: the job and its schemas have {size} bytes, and a ConfigMap takes {MAX_BYTES}. Name fewer schemas "
            "(`input.schema`, or `serve` of an application), or shorten their examples."
        )
    return found


def _job(values: Values, base: Path) -> Deployment:
    job = load_job(base / str(values.job), values.slot)
    if values.again and job.input.since is None:
        raise JobFileError("again: it speaks of incremental runs: write `since: last` under `input` of the job.")
    if (job.placement.kind == "serve") != (values.pool is not None):
        raise JobFileError(
            "`pool` names the RayService of a job with `placement.kind: serve`, and of no other job. "
            f"This job's kind is {job.placement.kind}."
        )
    if values.pool is not None:
        _check_on_pool(values)
    names = [job.input.schema_name] if job.input.schema_name else available(job.schemas)
    written = {**_written(job), "schemas": "schemas"}
    files = _schemas(job.schemas, names)
    if job.canary is not None and job.canary.schemas is not None:
        written["canary"] = {**written["canary"], "schemas": "candidate"}
        files |= _schemas(job.canary.schemas, names, "candidate")
    return Deployment(values, job, {JOB_FILE: _dump(written), **files})


def _check_on_pool(values: Values) -> None:
    if values.ray_token is None:
        raise JobFileError(
            "ray_token: a job on a pool needs the Secret that opens the pool's cluster; name the same one in both."
        )
    if values.secret_env:
        raise JobFileError(
            "secret_env: a job on a pool runs in the pods of its service. Name its Secrets in the values of that one."
        )
    if values.schedule is not None and values.schedule.overlap == "queue":
        raise JobFileError(
            "schedule.overlap: `queue` is for a job with a cluster of its own. Of one on a pool, Kubernetes begins "
            "none before the last has ended; what is due meanwhile is left out, and made up for by `input.since: last`."
        )


def _service(values: Values, base: Path) -> Deployment:
    """Paths in a Serve config are relative to the working directory, here as for `serve deploy`."""
    path = base / str(values.service)
    config = read_yaml(path)
    applications = config.get("applications")
    if not isinstance(applications, list) or len(applications) != 1 or not isinstance(applications[0], dict):
        raise JobFileError(f"{path}: write one application below `applications`.")
    application = applications[0]
    if application.get("import_path") != IMPORT_PATH:
        raise JobFileError(f"{path}: the application's `import_path` must be {IMPORT_PATH}.")
    app = read_work(dict(application.get("args") or {}), Path.cwd(), AppConfig, f"{path}, args")
    written = {**_written(app), "schemas": f"{MOUNT}/schemas"}
    serve = {**config, "applications": [{**application, "args": written}]}
    return Deployment(values, app, _schemas(app.schemas, app.serve or available(app.schemas)), serve)


def _written(work: WorkConfig) -> dict[str, Any]:
    """A config with every key, so that another image with other defaults does not change a deployed job."""
    return work.model_dump(mode="json", by_alias=True)


def _dump(data: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(data), sort_keys=False, width=120, allow_unicode=True)


def _schemas(root: str, names: tuple[str, ...] | list[str], below: str = "schemas") -> dict[str, str]:
    files = {}
    for name in sorted(names):
        load_schema(root, name)  # told here, and not by a pod at night
        if ".." in name:
            raise JobFileError(f"schema {name}: two dots in a row cannot stand in a key of a ConfigMap. Rename it.")
        folder = Path(root, *name.split("@"))
        for file in _SCHEMA_FILES:
            if (folder / file).is_file():
                files["/".join((below, *name.split("@"), file))] = (folder / file).read_text(encoding="utf-8")
    return files


def _check_secrets(found: Deployment) -> None:
    """Engine configs stand in plain text in a ConfigMap."""
    given = found.values.secret_env
    for engine in found.engines:
        for name in getattr(engine, "environment", {}):
            if SECRET.search(name) or CREDENTIALS.fullmatch(name):
                raise JobFileError(f"engine.environment: put {name} into a Secret and name that in `secret_env`.")
        if (wanted := getattr(engine, "api_key_env", None)) and wanted not in given and not found.values.pool:
            raise JobFileError(f"secret_env: the engine's `api_key_env` asks for {wanted}; name its Secret.")
    if isinstance(found.work, AppConfig) and not found.work.online.open and found.work.online.token_env not in given:
        raise JobFileError(
            f"secret_env: the endpoint asks for {found.work.online.token_env}; name the Secret that holds its token."
        )


def _check_reach(found: Deployment) -> None:
    """Pods see the object store and what is mounted, and nothing of this machine."""
    mounts = [volume.path for volume in found.values.volumes]
    more = {"events.path": ["/scratch"], "engine.model": ["/models"] if found.values.models.claim else []}
    fixed = [volume.path for volume in found.values.volumes if volume.read_only]
    for key, path in _paths(found):
        below = [*mounts, *more.get(key, [])]
        if "://" not in path and not any(Path(path).is_relative_to(mount) for mount in below):
            raise JobFileError(
                f"{key}: {path} is a path of this machine, which pods do not see. Write a URI such as s3://bucket/…, "
                "or a path on a volume that the values name."
            )
        if key == "output" and any(Path(path).is_relative_to(mount) for mount in fixed):
            raise JobFileError(f"output: {path} is on a volume that is `read_only`.")
    for engine in () if found.values.pool else found.engines:
        downloads = getattr(engine, "environment", {}).get("HF_HUB_OFFLINE") == "0"
        if engine.engine == "vllm" and _is_hub_name(engine.model) and not (found.values.models.claim or downloads):
            raise JobFileError(
                f"engine.model: nothing in a pod holds {engine.model}, and engines do not download unless they are "
                'told to. Name a volume in `models.claim`, or set `environment: {HF_HUB_OFFLINE: "0"}` in the engine.'
            )


def _paths(found: Deployment) -> Iterator[tuple[str, str]]:
    work = found.work
    if isinstance(work, JobConfig):
        yield "input.path", work.input.path
        yield "output", work.output
    if work.events.path is not None:
        yield "events.path", work.events.path
    for lookup in work.lookups:
        yield "lookups", lookup.path
    for engine in found.engines:
        if engine.engine == "recorded":
            yield "engine.recording", engine.recording
        elif engine.tokenizer_model.startswith("/"):
            yield "engine.model", engine.tokenizer_model


def _is_hub_name(model: str) -> bool:
    return model != "embedded" and not model.startswith("/")
