"""The cases of `bench.placement`, their jobs, and the pool that they share under placement `serve`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.documents import ROOT, SCHEMA, SCHEMAS, receipts, write_jsonl
from pipeline.job import JobConfig
from pipeline.jobfile import load_engine, read_work

APPLICATION = "bench-placement"
SAMPLER = {"engine": "sampler", "backend": "guidance", "max_num_seqs": 32, "seed": 7}
UNIT = 64
"""Documents of a unit: small, so that engines finish together."""


@dataclass(frozen=True, slots=True)
class Case:
    """An engine config and how many of it; `documents` of a job."""

    name: str
    engine: dict[str, Any]
    engines: int
    documents: int


CASES = (
    Case("sampler-1", {**SAMPLER, "token_seconds": 0.05}, 1, 480),
    Case("sampler-2", {**SAMPLER, "token_seconds": 0.05}, 2, 960),
    Case("sampler-cpu", {**SAMPLER, "token_seconds": 0.0}, 1, 3000),
    Case("vllm-1", load_engine(ROOT / "serve_configs/cpu_embedded_guidance.yaml").model_dump(), 1, 48),
)


def job_of(case: Case, placement: str, documents: int, folder: Path) -> JobConfig:
    """A job over receipts, one attempt each."""
    write_jsonl(folder / "input.jsonl", [(one.id, one.text) for one in receipts(documents)])
    return JobConfig.model_validate(
        {
            **_work(case),
            "input": {"path": str(folder / "input.jsonl"), "schema": SCHEMA},
            "output": str(folder / "out"),
            "placement": _placement(case, placement),
            "pilot": {"documents": 0},
            "stop_if": {"truncation": None, "first_pass": None, "rejection": None},
        }
    )


@contextmanager
def serving(case: Case, placement: str) -> Iterator[None]:
    """The pool, if the placement needs one."""
    if placement != "serve":
        yield
        return
    from ray import serve

    from pipeline.compile.plans import plans_of
    from pipeline.serve_app.app import engine_deployment
    from pipeline.serve_app.settings import AppConfig

    pool = {"min_replicas": case.engines, "max_replicas": case.engines, "job_share": 1.0, "waiting": 64}
    config = read_work({**_work(case), "pool": pool, "online": {"open": True}}, ROOT, AppConfig, "bench.placement")
    plans = list(plans_of(config, [SCHEMA]).by_name.values())
    serve.run(engine_deployment(config).bind(config, plans), name=APPLICATION, route_prefix=None)
    try:
        yield
    finally:
        serve.delete(APPLICATION)


def _work(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "schemas": str(SCHEMAS),
        "engine": case.engine,
        "sampling": {"max_tokens": 256},
        "retry": {"max_attempts": 1},
    }


def _placement(case: Case, placement: str) -> dict[str, Any]:
    if placement == "local":
        return {"kind": "local", "actors": case.engines, "unit_documents": UNIT}
    if placement == "actors":
        return {"kind": "actors", "min_engines": case.engines, "max_engines": case.engines, "unit_documents": UNIT}
    return {"kind": "serve", "application": APPLICATION, "max_engines": case.engines, "unit_documents": UNIT}
