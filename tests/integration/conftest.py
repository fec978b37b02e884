"""One local Ray for all integration tests, and jobs on the samples that the repository carries."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from one_job import Bench

from pipeline.job import JobConfig

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "jobs" / "samples"
DOCUMENTS = 400
TOKEN = "a-token-for-the-tests-only"

PACKAGE_TEXT = "# pkg-{n}\n\nA small library, number {n}. Licence MIT. Needs Python 3.{minor}.\n"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


MakeJob = Callable[..., JobConfig]


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Ray on this machine, started once, with the token of the endpoint in the environment of its processes."""
    import ray

    from pipeline.runtime.cluster import start_ray

    os.environ["GRISTMILL_TOKEN"] = TOKEN
    start_ray()
    yield
    ray.shutdown()
    del os.environ["GRISTMILL_TOKEN"]


@pytest.fixture(scope="session")
def documents() -> list[dict[str, Any]]:
    """400 documents of three schemas: the samples with a running number in text and id, and made-up packages."""
    samples = [
        json.loads(line)
        for name in ("receipts.jsonl", "advisories.jsonl")
        for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    ]
    rows = [
        {"id": f"{row['id']}-{turn}", "schema": row["schema"], "text": f"{row['text'][:200]}\nNo. {turn}"}
        for turn in range(DOCUMENTS // 2 // len(samples) + 1)
        for row in samples
    ]
    packages = [
        {"id": f"pkg-{n}", "schema": "package@1", "text": PACKAGE_TEXT.format(n=n, minor=n % 9 + 5)}
        for n in range(DOCUMENTS)
    ]
    mixed = [*rows[: DOCUMENTS // 2], *packages[: DOCUMENTS // 2]]
    random.Random(1).shuffle(mixed)
    return mixed


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """Builds a sampler job over rows; keyword arguments replace parts of it."""

    def make(rows: list[dict[str, Any]], name: str = "job", **parts: Any) -> JobConfig:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        engine = {"engine": "sampler", "seed": 3, **parts.pop("engine", {})}
        base: dict[str, Any] = {
            "name": name,
            "input": {"path": str(path), "schema_column": "schema"},
            "output": str(tmp_path / "out"),
            "schemas": str(ROOT / "schemas"),
            "engine": engine,
            "sampling": {"max_tokens": 400},
            **parts,
        }
        return JobConfig.model_validate(base)

    return make
