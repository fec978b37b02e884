"""A small OpenAI-compatible server on the loopback, for tests: scripted faults first, then answers from a `brain`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pipeline.engines.http import HttpEngine
from pipeline.engines.sampler import SamplerEngine
from pipeline.jobhttp import HttpConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, literal_plan


@dataclass
class Answer:
    """One HTTP answer. `seconds` pass before it; `cut` bytes of it are sent before the connection is broken off."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Brain = Callable[[dict[str, Any]], Awaitable[Answer]]


@dataclass
class OpenAiServer:
    """`script` is used up before the brain is asked; `requests` and `headers` are what came, `most` how many at once,
    `left` how many connections the client closed."""

    brain: Brain
    script: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    left: int = 0
    most: int = 0
    url: str = ""
    _open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                continue
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left += 1
        except asyncio.CancelledError:  # the test is over, and a client kept its connection
            return
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) if ": " in line else (line, "") for line in head[1:] if line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.paths.append(head[0].split()[1])
        self.headers.append(headers | {"authorization": _case_kept(head, "authorization")})
        self.requests.append(body)
        self.times.append(asyncio.get_running_loop().time())
        self._open += 1
        self.most = max(self.most, self._open)
        try:
            answer = self.script.pop(0) if self.script else await self.brain(body)
            if answer.seconds and await _client_left(reader, answer.seconds):
                self.left += 1
                return False
        finally:
            self._open -= 1
        return await self._write(answer, writer)

    async def _write(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        content = answer.content()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        sent = f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode("latin-1") + content
        if answer.cut is not None:
            sent = sent[: answer.cut]
        writer.write(sent)
        await writer.drain()
        return answer.cut is None


@asynccontextmanager
async def serving(brain: Brain, *script: Answer) -> AsyncIterator[OpenAiServer]:
    """A server on a free port, while the block runs."""
    server = OpenAiServer(brain, list(script))
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()


def chat(text: str | None, finish_reason: Any = "stop", usage: Any = None, **message: Any) -> Answer:
    """A chat completion that says `text`."""
    usage = {"prompt_tokens": 500, "completion_tokens": 7} if usage is None else usage
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish_reason}
    return Answer(body={"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage})


def error(status: int, message: str, headers: dict[str, str] | None = None, **marks: Any) -> Answer:
    return Answer(status, {"error": {"message": message, "type": "BadRequestError", **marks}}, headers or {})


def always(answer: Answer) -> Brain:
    """A brain that says the same thing to everybody."""

    async def brain(_body: dict[str, Any]) -> Answer:
        return answer

    return brain


def engine_at(server: OpenAiServer | str, **values: Any) -> HttpEngine:
    url = server if isinstance(server, str) else server.url
    return HttpEngine(HttpConfig(**{"engine": "http", "base_url": url, "model": "m", **values}))


async def answers(plan: DecodingPlan, ask: Any, *script: Answer, **values: Any) -> tuple[Completion, OpenAiServer]:
    """What becomes of one request when the server first says `script`, then something good."""
    good = '{"name":"Ann","age":30,"tags":[]}'
    async with serving(always(chat(good)), *script) as server:
        engine = engine_at(server, **values)
        try:
            return await ask(engine, plan), server
        finally:
            await engine.close()


def schema_of(body: dict[str, Any]) -> Any:
    """The schema that a request carries in either dialect, None without one."""
    if "structured_outputs" in body:
        return json.loads(body["structured_outputs"]["json"])
    return body["response_format"]["json_schema"]["schema"] if "response_format" in body else None


def obedient(text: Callable[[str], str], *, proof: bool = True) -> Brain:
    """Says `text` of the user's message, whatever the schema; passes the start-up check if `proof`."""

    async def brain(body: dict[str, Any]) -> Answer:
        schema = schema_of(body)
        if body["max_completion_tokens"] == 1:
            return chat("The", "length")
        if proof and schema and "const" in str(schema.get("properties", {}).get("answer", "")):
            return chat(json.dumps({"answer": schema["properties"]["answer"]["const"]}))
        return chat(text(body["messages"][1]["content"]))

    return brain


def sampled(engine: SamplerEngine, *plans: DecodingPlan) -> Brain:
    """Answers as a vLLM server would whose model is the sampler."""

    async def brain(body: dict[str, Any]) -> Answer:
        schema = schema_of(body)
        system, user = (message["content"] for message in body["messages"])
        plan = next((plan for plan in plans if schema == json.loads(plan.transport)), None)
        if plan is None:
            plan = literal_plan("startup", schema["properties"]["answer"]["const"] if schema else "")
        sampling = Sampling(
            max_tokens=body["max_completion_tokens"],
            temperature=body["temperature"],
            seed=body.get("seed"),
            logprobs=body.get("top_logprobs"),
            token_ids=bool(body.get("return_token_ids")),
            constrained=schema is not None,
        )
        return _told(await engine.generate(Prompt(system, user), plan, sampling))

    return brain


def _told(completion: Completion) -> Answer:
    if completion.error == "prompt_too_long":
        return error(
            400, f"This model's maximum context length is 8192 tokens. {completion.detail}", param="input_tokens"
        )
    details = {"cached_tokens": completion.cached_tokens}
    usage = {"prompt_tokens": completion.prompt_tokens, "completion_tokens": completion.output_tokens}
    answer = chat(completion.text, completion.finish_reason, usage | {"prompt_tokens_details": details})
    choice = answer.body["choices"][0]
    choice["token_ids"] = list(completion.token_ids) or None
    starts = (0, *completion.token_ends)
    spans = zip(starts, completion.token_ends, strict=False)
    pieces = [completion.text[start:end].encode() for start, end in spans]
    rows = zip(completion.logprobs, pieces, strict=False)
    content = [
        {"token": f"token_id:{token}", "logprob": score, "bytes": list(piece), "top_logprobs": []}
        for row, piece in rows
        for token, score in row.items()
    ]
    choice["logprobs"] = {"content": content} if content else None
    return answer


def _case_kept(head: list[str], name: str) -> str:
    return next((line.split(": ", 1)[1] for line in head if line.lower().startswith(f"{name}:")), "")


async def _client_left(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait; whether the client closed its connection meanwhile."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await reader.read(1) == b""
    return False
