"""The `http` engine: an OpenAI-compatible server that somebody else runs, one chat completion per prompt.

What the server does with a schema is its own affair, so `start` proves what can be proven from outside (`http_start`)
and `http_probe` tries keywords live. A server that cannot be reached, does not know the key, the model or the address
is gone (EngineError); whatever else goes wrong is one request's trouble and is told in its Completion.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline.engines.http_answer import completion_of, cut_prompt, failed
from pipeline.engines.http_reply import Reply, cleaned, meaning_of, read_reply, told
from pipeline.engines.http_request import is_constrained, request_of
from pipeline.engines.http_retry import Pace, backoff, is_transient, retry_after
from pipeline.engines.http_start import check_server
from pipeline.engines.patience import uncounted
from pipeline.errors import EngineError
from pipeline.jobhttp import HttpConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan

if TYPE_CHECKING:
    import httpx


class Unanswered(Exception):
    """A try that brought no reply. `again`: another may; `unreached`: no connection was made."""

    def __init__(self, words: str, *, again: bool, unreached: bool = False) -> None:
        super().__init__(words)
        self.again = again
        self.unreached = unreached


class HttpEngine:
    """See the module. `proven`: the start-up check passed; completions carry it as `constrained`."""

    def __init__(self, config: HttpConfig) -> None:
        """Nothing is sent yet.

        Raises:
            EngineError: the environment variable that the config names holds no key, or none that a header can carry.
        """
        self._config = config
        self._key = _key_of(config)
        self._client: httpx.AsyncClient | None = None
        self._slots = asyncio.Semaphore(config.max_num_seqs)
        self._pace = Pace(config.requests_per_minute)
        self._moved = float("-inf")
        self._counts = True
        self.proven = False
        self.fingerprint = f"http:{urlsplit(config.base_url).netloc}/{config.model}:{config.dialect}"

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Prove that the server bounds its answers and obeys schemas, and let it see each plan.

        Raises:
            EngineError: it does not, or cannot be used.
            SchemaError: it refuses one of the plans.
        """
        await check_server(self, plans, constrained=self._config.constraint == "schema")
        self.proven = True

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def progress(self) -> float:
        """When the server last gave a sign of life (`time.monotonic`). A wait that it asked for is one."""
        return time.monotonic() if self._pace.waiting else self._moved

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt. `queue_seconds` is the time until the last try was sent, `seconds` what that one took.

        Raises:
            EngineError: the server is gone, or asks for a longer wait than there may be.
        """
        asked = time.perf_counter()
        constrained = is_constrained(self._config, sampling)
        base = Completion("", "error", constrained and self.proven, self.fingerprint, plan.digest)
        body = request_of(self._config, prompt, plan, sampling)
        async with self._place():
            try:
                reply, sent = await self._reply(body)
            except Unanswered as trouble:
                if trouble.unreached:
                    raise EngineError(f"cannot reach {self._config.base_url}: {self._hidden(str(trouble))}") from None
                return failed(base, self._hidden(str(trouble)))
        base = replace(base, queue_seconds=sent - asked, seconds=time.perf_counter() - sent)
        if reply.status != 200:
            return self._no_answer(reply, base, constrained=constrained)
        completion = completion_of(reply, base, sampling)
        if not completion.error and (words := cut_prompt(completion, prompt)):
            # Nobody cuts the few words of the start-up check: a server that reads less of them the second time leaves
            # out of its counts what it had cached.
            self._counts = self._counts and self.proven
            if self._counts:
                completion = failed(replace(completion, text="", refusal=""), words, "prompt_truncated")
        return completion

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """One of `max_num_seqs` places; waiting for it is not the document's time."""
        with uncounted():
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()

    def _no_answer(self, reply: Reply, base: Completion, *, constrained: bool) -> Completion:
        words = told(reply)
        meaning = meaning_of(reply, constrained=constrained)
        if meaning == "gone":
            raise EngineError(f"{self._config.base_url} answers nothing: {words}")
        if meaning == "refusal":
            return replace(base, finish_reason="stop", constrained=False, refusal=words)
        if meaning == "cut":
            return replace(base, finish_reason="length", detail=words)
        return failed(base, words, meaning)

    async def _reply(self, body: bytes) -> tuple[Reply, float]:
        """The first reply that is not for the moment only, or the last one that is; and when it was asked for.

        Raises:
            Unanswered: not one of the tries that are allowed brought a reply.
        """
        number = 0
        while True:
            number += 1
            with uncounted():
                await self._pace.turn()
            sent = time.perf_counter()
            try:
                reply = await self._once(body)
            except Unanswered as trouble:
                if not trouble.again or number >= self._config.max_tries:
                    raise
            else:
                # A quota that is used up is a 429 as well, and no wait helps.
                if not is_transient(reply.status) or meaning_of(reply, constrained=False) == "gone":
                    return reply, sent
                wanted = retry_after(reply.headers, time.time()) or 0.0
                most = self._config.max_wait_seconds
                self._pace.pause(min(wanted, most))
                if wanted > most:
                    raise EngineError(
                        f"{self._config.base_url} asks to wait {wanted:.0f} s, and `max_wait_seconds` is {most:g}. Run "
                        "the same command later: it continues."
                    )
                if number >= self._config.max_tries:
                    return reply, sent
            with uncounted():
                await self._pace.sleep(backoff(number))

    async def _once(self, body: bytes) -> Reply:
        import httpx

        limit = self._config.request_seconds
        try:
            async with asyncio.timeout(limit):
                return await self._exchange(body)
        except TimeoutError:
            raise Unanswered(f"no answer in {limit:g} s (`request_seconds`)", again=False) from None
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            words = cleaned(f"{type(error).__name__}: {error}")
            raise Unanswered(words, again=True, unreached=True) from None
        except httpx.TransportError as error:
            words = cleaned(f"the connection broke ({type(error).__name__}: {error})")
            raise Unanswered(words, again=True) from None

    async def _exchange(self, body: bytes) -> Reply:
        """One request and its reply, of which no more is read than the config allows."""
        url, most = f"{self._config.base_url}/chat/completions", self._config.max_answer_bytes
        async with self._connected().stream("POST", url, content=body) as response:
            self._moved = time.monotonic()
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Unanswered("the server compressed its answer, though it was asked not to", again=False)
            read = bytearray()
            async for piece in response.aiter_raw():
                self._moved = time.monotonic()
                read += piece
                if len(read) > most:
                    raise Unanswered(f"the answer is larger than {most} bytes (`max_answer_bytes`)", again=False)
            # Servers repeat a key when they refuse it. Before anything is cut: a part of it would not be found.
            headers = {name.lower(): self._hidden(value) for name, value in response.headers.items()}
            content = bytes(read).replace(self._key.encode(), b"[key]") if self._key else bytes(read)
            return read_reply(response.status_code, headers, content)

    def _connected(self) -> httpx.AsyncClient:
        """The client, made with the first request, inside the loop that it belongs to."""
        if self._client is None:
            import httpx

            config = self._config
            headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._client = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(None, connect=config.connect_seconds),
                limits=httpx.Limits(max_connections=config.max_num_seqs, max_keepalive_connections=config.max_num_seqs),
                follow_redirects=False,
                trust_env=config.trust_env,
            )
        return self._client

    def _hidden(self, words: str) -> str:
        """Words without the key: servers repeat it when they refuse it."""
        return words.replace(self._key, "[key]") if self._key else words


def _key_of(config: HttpConfig) -> str:
    if config.api_key_env is None:
        return ""
    key = os.environ.get(config.api_key_env, "").strip()
    if not key:
        raise EngineError(
            f"the environment variable {config.api_key_env} (`api_key_env`) is not set. Put the key there."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise EngineError(
            f"what {config.api_key_env} (`api_key_env`) holds is no key: blanks or characters beyond ASCII."
        )
    return key
