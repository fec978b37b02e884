"""The `http` engine against a real `vllm serve` on the CPU, with a token, started once for all tests here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from support import plan_of

from pipeline.engines import models
from pipeline.engines.http import HttpEngine
from pipeline.engines.http_probe import probe_keywords
from pipeline.errors import EngineError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, SamplingConfig
from pipeline.jobhttp import HttpConfig
from pipeline.records import Completion, Document, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

pytestmark = [pytest.mark.slow, pytest.mark.asyncio, pytest.mark.timeout(900)]

START_SECONDS = 600
TOKEN_VARIABLE, TOKEN = "GRISTMILL_TEST_SERVER_KEY", "a-token-for-tests-4917"
CONTEXT = 2048
ORDER = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "kind": {"enum": ["new", "used"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
    },
    "required": ["code", "count", "kind", "tags"],
}


@dataclass
class Served:
    """A server's process and its base URL."""

    process: subprocess.Popen[bytes]
    url: str

    def engine(self, **values: Any) -> HttpEngine:
        wanted = {"base_url": self.url, "model": "small", "api_key_env": TOKEN_VARIABLE, "max_model_len": CONTEXT}
        return HttpEngine(HttpConfig(**{"engine": "http", "dialect": "vllm", **wanted, **values}))

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(60)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("vllm") / "log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        # The command `vllm` looks for a package of that name, and the CPU's has another.
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", models.resolve("embedded")),
        *("--served-model-name", "small", "--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", str(CONTEXT), "--max-num-seqs", "8", "--max-num-batched-tokens", "4096"),
        *("--dtype", "bfloat16", "--enforce-eager", "--block-size", "32", "--enable-prompt-tokens-details"),
        *("--structured-outputs-config", json.dumps({"backend": "guidance", "disable_any_whitespace": True})),
    ]
    # The token is in the environment: a command line can be read by everybody on the machine.
    quiet = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_API_KEY": TOKEN}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | quiet, start_new_session=True
        )
    os.environ[TOKEN_VARIABLE] = TOKEN
    found = Served(process, f"http://127.0.0.1:{port}/v1")
    try:
        _wait(found, f"http://127.0.0.1:{port}/health", log)
        yield found
    finally:
        found.stop()
        del os.environ[TOKEN_VARIABLE]


def _wait(served: Served, health: str, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if served.process.poll() is not None:
            break
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(health, timeout=5, trust_env=False).status_code == 200:
                return
        time.sleep(1)
    raise RuntimeError(f"vllm serve did not come up:\n{log.read_text(errors='replace')[-4000:]}")


async def ask(engine: HttpEngine, plan: DecodingPlan, user: str, **sampling: Any) -> Completion:
    return await engine.generate(Prompt(plan.prefix, user), plan, Sampling(**{"max_tokens": 200, **sampling}))


def order(**changes: Any) -> DecodingPlan:
    return replace(plan_of(ORDER, "order@1", backend="guidance"), **changes)


@pytest.mark.parametrize("dialect", ["vllm", "openai"])
async def test_a_schema_is_proven_and_held(served: Served, dialect: str) -> None:
    engine, plan = served.engine(dialect=dialect), order()
    await engine.start([plan])
    found = await asyncio.gather(*(ask(engine, plan, f"{n} used parts, code zz", temperature=0.8) for n in range(6)))
    await engine.close()
    for completion in found:
        assert completion.error == "" and completion.constrained, completion
        assert completion.prompt_tokens > 50 and completion.output_tokens > 5 and completion.seconds > 0
        if completion.finish_reason == "stop":
            jsonschema.validate(json.loads(completion.text), plan.acceptance)
    assert any(completion.finish_reason == "stop" for completion in found)
    assert max(completion.cached_tokens for completion in found) > 0  # of the prefix that all of them share


async def test_tokens_and_scores_are_aligned_with_the_text(served: Served) -> None:
    engine, plan = served.engine(), order()
    completion = await ask(engine, plan, "Three used tables, code AB-123, tags naïve 😀", logprobs=0, token_ids=True)
    await engine.close()
    assert len(completion.token_ids) == len(completion.logprobs) == completion.output_tokens > 0
    assert all(token in row for token, row in zip(completion.token_ids, completion.logprobs, strict=True))
    assert len(completion.token_ends) == len(completion.token_ids)
    assert completion.token_ends[-1] == len(completion.text)


async def test_an_extraction_ends_in_an_outcome(served: Served) -> None:
    engine, plan = served.engine(), order()
    await engine.start([plan])
    config = ExtractConfig(sampling=SamplingConfig(max_tokens=200))
    outcome = await extract(Document("d1", "Two new lamps, code LA-007", "in#1", plan.name), plan, engine, config)
    await engine.close()
    assert outcome.status in ("valid", "degraded"), outcome
    assert outcome.attempts[0].constrained and outcome.attempts[0].engine == engine.fingerprint


async def test_free_answers_are_free(served: Served) -> None:
    engine = served.engine(constraint="none")
    await engine.start([order()])
    completion = await ask(engine, order(), "Say hello.", max_tokens=8)
    await engine.close()
    assert not completion.constrained and completion.error == ""


async def test_what_the_server_refuses_is_coded(served: Served) -> None:
    engine = served.engine()
    long = await ask(engine, order(), "word " * 3000)
    bad = await ask(engine, order(transport='{"type": "nonsense"}'), "hello")
    await engine.close()
    assert (long.error, long.finish_reason) == ("prompt_too_long", "error"), long
    assert (bad.error, bad.finish_reason) == ("schema_refused", "error"), bad


async def test_wrong_keys_and_models_stop_the_start(served: Served, monkeypatch: Any) -> None:
    engine = served.engine(model="large")
    with pytest.raises(EngineError, match="no such address or model"):
        await engine.start([])
    await engine.close()
    monkeypatch.setenv("OTHER_KEY", "a-wrong-key-1234")
    engine = served.engine(api_key_env="OTHER_KEY")
    with pytest.raises(EngineError, match="does not accept the key") as caught:
        await engine.start([])
    await engine.close()
    assert "a-wrong-key" not in str(caught.value)


async def test_keywords_hold_under_prompts_that_beg_to_break_them(served: Served) -> None:
    engine = served.engine()
    rows = await probe_keywords(engine, order(), 2, max_tokens=120)
    await engine.close()
    assert sum(row.trials for row in rows) >= 6
    assert not [row.told() for row in rows if row.violations and not row.left]


async def test_a_server_that_ended_is_gone(served: Served) -> None:
    """The last one here: it ends the server."""
    engine = served.engine(max_tries=2)
    assert (await ask(engine, order(), "One lamp")).error == ""
    await asyncio.to_thread(served.stop)
    with pytest.raises(EngineError, match="cannot reach"):
        await ask(engine, order(), "One lamp")
    await engine.close()
