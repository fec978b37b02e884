"""The applications that the repository ships: every key is one that Serve, vLLM or this project knows.

Serve's own schema passes over keys that it does not know, so they are compared here.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.errors import JobFileError
from pipeline.job import VllmConfig
from pipeline.jobfile import load_engine, read_work
from pipeline.serve_app.app import build, endpoint_deployment, engine_deployment
from pipeline.serve_app.settings import AppConfig

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = sorted((ROOT / "serve_configs").glob("online_*.yaml"))
SERVER = {"engine": "http", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
EVERY = pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def settings(path: Path) -> AppConfig:
    (application,) = document(path)["applications"]
    return read_work(application["args"], ROOT, AppConfig, path.name)


@EVERY
def test_serve_knows_every_key(path: Path) -> None:
    from ray.serve.schema import HTTPOptionsSchema, ServeApplicationSchema, ServeDeploySchema

    written = document(path)
    ServeDeploySchema.model_validate(written)
    assert set(written) <= set(ServeDeploySchema.model_fields)
    assert set(written["http_options"]) <= set(HTTPOptionsSchema.model_fields)
    assert {"host", "port"} <= set(written["http_options"]), "Serve's own default serves all the world"
    for application in written["applications"]:
        assert set(application) <= set(ServeApplicationSchema.model_fields)
        assert application["import_path"] == f"{build.__module__}:{build.__name__}"


@EVERY
def test_the_settings_make_deployments_that_fit_the_engine(path: Path) -> None:
    config = settings(path)
    engine, endpoint = engine_deployment(config), endpoint_deployment(config)
    scaling = engine._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (config.pool.min_replicas, config.pool.max_replicas)
    assert scaling.target_ongoing_requests == config.engine.max_num_seqs
    assert engine.max_ongoing_requests > config.engine.max_num_seqs
    assert endpoint.max_ongoing_requests > config.online.in_flight
    workers = getattr(config.engine, "tensor_parallel", 1) * getattr(config.engine, "pipeline_parallel", 1)
    bundles = engine._replica_config.placement_group_bundles or [engine.ray_actor_options]
    asked = sum(bundle.get("num_gpus", bundle.get("GPU", 0)) for bundle in bundles)
    assert asked == config.engine.num_gpus * workers


@EVERY
def test_vllm_knows_every_argument(path: Path) -> None:
    from vllm.engine.arg_utils import AsyncEngineArgs

    engine = settings(path).engine
    if isinstance(engine, VllmConfig):
        known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
        own = {"model", "dtype", "max_model_len", "max_num_seqs", "tensor_parallel_size", "pipeline_parallel_size"}
        assert own | set(engine.engine_args) <= known


def test_there_are_applications_for_a_cpu_for_gpus_and_without_a_model() -> None:
    engines = {path.name: settings(path).engine for path in CONFIGS}
    assert {engine.engine for engine in engines.values()} == {"vllm", "sampler"}
    assert {engine.num_gpus for engine in engines.values()} == {0, 1}
    assert any(getattr(engine, "tensor_parallel", 1) > 1 for engine in engines.values())
    assert any(settings(path).pool.max_replicas > 1 for path in CONFIGS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": {"engine": "sampler"}}, "name xgrammar or guidance"),
        ({"pool": {"min_replicas": 3, "max_replicas": 2}}, "min_replicas"),
        ({"online": {"in_flght": 3}}, "did you mean `in_flight`"),
        ({"pol": {}}, "did you mean `pool`"),
        ({"engine": {"engine": "recorded", "recording": "x", "backend": "guidance"}}, "a recording answers only"),
        ({"engine": {**SERVER, "request_seconds": 30}, "sampling": {"constrained": False}}, "send schemas to it"),
        ({"engine": {**SERVER, "request_seconds": 200}}, r"must be below pool\.stall_seconds \(120\)"),
        (
            {
                "engines": {"big": {"engine": "sampler", "backend": "guidance", "seed": 2}},
                "retry": {"max_attempts": 2, "ladder": [{"engine": "big"}]},
            },
            "an application has one engine",
        ),
    ],
)
def test_a_mistake_is_told_with_the_nearest_key(change: dict[str, Any], words: str) -> None:
    args = {"name": "a", "engine": {"engine": "sampler", "backend": "guidance"}, **change}
    with pytest.raises(JobFileError, match=words):
        read_work(args, ROOT, AppConfig, "args of the application")


def test_a_missing_token_is_told_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRISTMILL_TOKEN", raising=False)
    monkeypatch.chdir(ROOT)
    with pytest.raises(JobFileError, match="GRISTMILL_TOKEN"):
        build({"name": "a", "engine": {"engine": "sampler", "backend": "guidance"}})


@pytest.mark.parametrize("path", sorted((ROOT / "serve_configs").glob("gpu_*.yaml")), ids=lambda path: path.name)
def test_engine_configs_of_gpus_load(path: Path) -> None:
    assert load_engine(path).num_gpus > 0
