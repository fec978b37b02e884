"""What the endpoint's tests build: services with small engines, clients in this process, a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from support import RECEIPT, completion, plan_of

from pipeline.job import ExtractConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, refused_plan
from pipeline.serve_app.online import OnlineConfig, Token
from pipeline.serve_app.service import Service
from pipeline.serve_app.web import build_web

SECRET = "correct-horse-battery"
HEADERS = {"authorization": f"Bearer {SECRET}"}
JSON = {"content-type": "application/json"}
GOOD = {"vendor": "Ann & Co", "total": 19.9}
TEXT = "Ann & Co, total 19.90"
ONE = {"text": TEXT, "schema": "receipt@1"}
PLANS = {"receipt@1": plan_of(RECEIPT), "odd@1": refused_plan("odd@1", "d", "no back end takes it")}


class Given:
    """Answers each prompt by a function of the document's text, or with the same always; keeps what it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = completion(GOOD, constrained=True) if answer is None else answer
        self.prompts: list[Prompt] = []

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.prompts.append(prompt)
        answer = self.answer(prompt) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, Completion)
        return answer


class Held(Given):
    """Answers when it is let go; counts who is inside and who was cancelled there."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.inside = self.most = self.cancelled = 0

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        return await super().generate(prompt, plan, sampling)


def service_of(engine: Any, inline: Any = None, retry: Any = None, **online: Any) -> Service:
    config = ExtractConfig.model_validate({"retry": {"backoff_seconds": 0, **(retry or {})}})
    return Service(engine, PLANS, config, OnlineConfig(**online), inline)


def client_of(service: Service, *, token: str | None = SECRET, **headers: str) -> httpx.AsyncClient:
    """A client of the real application, without a network. It sends the right token."""
    transport = httpx.ASGITransport(build_web(service, Token(token)), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test", headers={**HEADERS, **headers}, timeout=60)


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[int]:
    """The application behind a real server, and its port."""
    config = uvicorn.Config(build_web(service, Token(SECRET)), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve([listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await running


def head_of(path: str = "/v1/extract", *, token: str = SECRET, **headers: str) -> bytes:
    """The first lines of a POST as they go over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Authorization: Bearer {token}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


async def answer_to(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    """Code, headers and JSON body of one answer from the wire."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, json.loads(body)


async def until(said: Any) -> None:
    """Wait until something holds; a test's own time-out ends it otherwise."""
    while not said():
        await asyncio.sleep(0.005)


def object_of(**properties: Any) -> dict[str, Any]:
    """The schema of a closed object."""
    return {"type": "object", "properties": properties, "additionalProperties": False}
