"""Real vLLM with the embedded model, started once per back end for all tests here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pipeline.engines import build
from pipeline.engines.vllm import VllmEngine
from pipeline.job import VllmConfig
from pipeline.jobfile import load_engine

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ["xgrammar", "guidance"]


@pytest.fixture(scope="session")
def backend(engine: VllmEngine) -> str:
    """The grammar back end of the engine under test."""
    return "guidance" if "guidance" in engine.fingerprint else "xgrammar"


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=BACKENDS)
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[VllmEngine]:
    config: VllmConfig = load_engine(ROOT / "serve_configs" / "cpu_embedded.yaml")
    engine = build(config.model_copy(update={"backend": request.param}))
    assert isinstance(engine, VllmEngine)
    await engine.start([])
    yield engine
    await engine.close()
