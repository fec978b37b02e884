"""Deployments for tests: files of values, jobs and Serve configs in a folder."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from pipeline.deploy.manifests import manifests_of
from pipeline.deploy.work import Deployment, load_deployment

ROOT = Path(__file__).resolve().parents[3]
VLLM = {"engine": "vllm", "model": "/models/m", "backend": "guidance", "num_gpus": 1}
JOB = {
    "name": "receipts",
    "input": {"path": "s3://in/", "schema": "receipt@1"},
    "output": "s3://out",
    "schemas": str(ROOT / "schemas"),
    "engine": VLLM,
    "placement": {"kind": "actors", "min_engines": 1, "max_engines": 4},
}
VALUES = {"name": "receipts", "image": "example/gristmill:1", "job": "job.yaml", "models": {"claim": "models"}}
SERVICE = {
    **{key: value for key, value in VALUES.items() if key != "job"},
    "service": "serve.yaml",
    "secret_env": {"GRISTMILL_TOKEN": {"secret": "token", "key": "token"}},
}
ARGS = {"name": "online", "schemas": str(ROOT / "schemas"), "engine": VLLM}


def deployment(folder: Path, job: dict[str, Any] | None = None, values: dict[str, Any] | None = None) -> Deployment:
    """A job's deployment, with some of its keys, or of its values, others than above."""
    return _loaded(folder, "job.yaml", {**JOB, **(job or {})}, {**VALUES, **(values or {})})


def service(folder: Path, args: dict[str, Any] | None = None, values: dict[str, Any] | None = None) -> Deployment:
    """A service's deployment."""
    application = {
        "name": "gristmill",
        "import_path": "pipeline.serve_app.app:build",
        "args": {**ARGS, **(args or {})},
    }
    return _loaded(folder, "serve.yaml", {"applications": [application]}, {**SERVICE, **(values or {})})


def manifests(found: Deployment) -> list[dict[str, Any]]:
    """Its objects, which may be changed."""
    return [copy.deepcopy(one) for one in manifests_of(found)]


def _loaded(folder: Path, name: str, config: dict[str, Any], values: dict[str, Any]) -> Deployment:
    (folder / name).write_text(yaml.safe_dump(config), encoding="utf-8")
    (folder / "values.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return load_deployment(folder / "values.yaml")
