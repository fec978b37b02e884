"""The shipped applications start by the command that the documentation gives, and answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-the-tests-only"
SECONDS = 400


@contextmanager
def started(config: str, folder: Path) -> Iterator[httpx.Client]:
    """`serve run` on the shipped file, with another port and a Ray of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    written = yaml.safe_load((ROOT / "serve_configs" / config).read_text(encoding="utf-8"))
    written["http_options"]["port"] = port
    path = folder / config
    path.write_text(yaml.safe_dump(written), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment |= {
        "GRISTMILL_TOKEN": TOKEN,
        "RAY_ADDRESS": "local",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "pipeline.serve_app.proxy:middlewares",
        "RAY_agent_register_timeout_ms": "120000",
        "GRISTMILL_PROXY_MAX_BODY": "2000000",
    }
    command = [str(Path(sys.executable).parent / "serve"), "run", str(path)]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
    headers = {"authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=180) as client:
            _wait(client, process, folder / "log")
            yield client
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def _wait(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if client.get("/healthz").status_code == 200:
                return
        except httpx.HTTPError:
            pass  # not there yet
        time.sleep(1)
    raise AssertionError(log.read_text(errors="replace")[-4000:])


def answers(client: httpx.Client) -> None:
    """What the README shows."""
    body = {"id": "r-17", "text": "Ann & Co, 29 February 2024, total 19.90", "schema": "receipt@1"}
    answer = client.post("/v1/extract", json=body)
    assert answer.status_code in (200, 422), answer.text
    outcome = answer.json()
    assert (outcome["document_id"], outcome["schema"]) == ("r-17", "receipt@1")
    assert outcome["attempts"] and all(one["constrained"] for one in outcome["attempts"])
    assert (outcome["status"] == "rejected") == (answer.status_code == 422)
    assert client.post("/v1/extract", content=b"{" * 3_000_000).json()["error"]["code"] == "too_large"
    assert {one["name"] for one in client.get("/v1/schemas").json()["schemas"]} >= {"receipt@1", "package@1"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_application_without_a_model_starts_and_answers(tmp_path: Path) -> None:
    with started("online_sampler.yaml", tmp_path) as client:
        answers(client)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_application_of_the_readme_starts_and_answers(tmp_path: Path) -> None:
    with started("online_cpu.yaml", tmp_path) as client:
        answers(client)
