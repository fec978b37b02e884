"""Gate: the ASGI middleware that every request passes before anything of it is believed.

In this order, and each before the body is read: a request id, the token, media type and declared size, how many
requests are open. Then the body is read, within its size and time, and handed on whole. Whoever is refused gets the one
shape of errors, and what is left of the body is thrown away for a moment, so that the refusal is not lost to a reset.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.serve_app.answers import Fault, FaultError
from pipeline.serve_app.online import OnlineConfig, Token
from pipeline.serve_app.web_answer import json_bytes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = "x-request-id"
_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_LINGER_SECONDS = 1.0
_LINGER_BODIES = 4
"""How long, and how many times the largest body, is thrown away after a refusal."""
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_LOG = logging.getLogger(__name__)


class _Gone(Exception):
    """The client left before its body was whole, or does not read its answer."""


@dataclass
class RequestGate:
    """`public` are paths that need no token; `with_body` those whose POST has a JSON body. `full` says, with seconds to
    wait, that a document would be turned away; `refused` is called with the code of each refusal."""

    app: ASGIApp
    config: OnlineConfig
    token: Token
    public: frozenset[str]
    with_body: frozenset[str]
    full: Callable[[], Fault | None]
    refused: Callable[[int], None]
    _open: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        receiver = _Receiver(receive)
        sender = _Sender(send, _request_id(scope), self.config.body_seconds)
        try:
            await self._let_in(scope, receiver, sender)
        except FaultError as error:
            await self._refuse(error.fault, receiver, sender)
        except _Gone:
            _LOG.info("request %s: the client is gone", sender.request_id)
        except Exception:
            _LOG.exception("request %s failed", sender.request_id)
            if sender.started:
                raise
            words = f"a fault of this program; its log knows more about request {sender.request_id}"
            await self._refuse(Fault(500, "internal", words), receiver, sender)

    async def _let_in(self, scope: Scope, receive: _Receiver, sender: _Sender) -> None:
        path = _path(scope)
        scope.setdefault("state", {})["request_id"] = sender.request_id
        if path in self.public:
            await self.app(scope, receive, sender)
            return
        headers = _headers(scope)
        self._check_token(headers)
        if scope["method"] != "POST" or path not in self.with_body:
            await self.app(scope, receive, sender)
            return
        size = self._check_headers(headers)
        if (fault := self.full()) is not None:
            raise FaultError(fault)
        if self._open >= 2 * self.config.in_flight:
            raise FaultError(Fault(429, "too_many", "as many requests are open as may; try again in 1 s", 1))
        self._open += 1
        try:
            body = await self._body(receive, size)
            await self.app(scope, _replay(body, receive), sender)
        finally:
            self._open -= 1

    def _check_token(self, headers: Mapping[bytes, list[bytes]]) -> None:
        given = headers.get(b"authorization", [])
        if not self.token.allows(given[0] if len(given) == 1 else None):
            words = "send the endpoint's token as `Authorization: Bearer …`"
            raise FaultError(Fault(401, "unauthorized", words))

    def _check_headers(self, headers: Mapping[bytes, list[bytes]]) -> int | None:
        """The declared size of the body, if there is one.

        Raises:
            FaultError: 400, 413, 415.
        """
        media = headers.get(b"content-type", [b""])[-1].partition(b";")[0].strip().lower()
        if media != b"application/json":
            raise FaultError(Fault(415, "unsupported_media_type", "send `Content-Type: application/json`"))
        coding = b",".join(headers.get(b"content-encoding", [])).strip().lower()
        if coding not in (b"", b"identity"):
            raise FaultError(Fault(415, "unsupported_media_type", "compressed bodies are not taken"))
        sizes = headers.get(b"content-length", [])
        if not sizes:
            return None
        if len(sizes) > 1 or not sizes[0].isdigit() or len(sizes[0]) > 20:
            raise FaultError(Fault(400, "bad_header", "Content-Length must be one number"))
        if int(sizes[0]) > self.config.max_body_bytes:
            raise self._too_large()
        return int(sizes[0])

    async def _body(self, receive: Receive, size: int | None) -> bytes:
        """Raises FaultError: 408, 413; _Gone."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.config.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    body += message.get("body", b"")
                    if len(body) > self.config.max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            words = f"the body did not arrive within {self.config.body_seconds:g} s"
            raise FaultError(Fault(408, "slow_body", words)) from error
        if size is not None and len(body) != size:
            raise FaultError(Fault(400, "bad_body", f"the body has {len(body)} bytes; Content-Length said {size}"))
        return bytes(body)

    def _too_large(self) -> FaultError:
        words = f"the body has more than {self.config.max_body_bytes} bytes"
        return FaultError(Fault(413, "too_large", words))

    async def _refuse(self, fault: Fault, receive: _Receiver, sender: _Sender) -> None:
        """Answer at once; then throw away what comes for a moment, and close."""
        self.refused(fault.http)
        body = json_bytes(fault.to_json())
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if fault.retry_after is not None:
            headers.append((b"retry-after", str(fault.retry_after).encode()))
        if fault.http == 401:
            headers.append((b"www-authenticate", b'Bearer realm="gristmill"'))
        await sender({"type": "http.response.start", "status": fault.http, "headers": headers})
        await sender({"type": "http.response.body", "body": body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await receive.throw_away(_LINGER_BODIES * self.config.max_body_bytes)
        await sender({"type": "http.response.body", "body": b"", "more_body": False})


class _Sender:
    """`send` that adds the headers of every answer, and gives up on a client that does not read."""

    def __init__(self, send: Send, request_id: str, seconds: float) -> None:
        self._send, self._seconds, self.request_id, self.started = send, seconds, request_id, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            own = ((REQUEST_ID.encode(), self.request_id.encode()), *_ALWAYS)
            message = {**message, "headers": [*message.get("headers", ()), *own]}
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(message)
        except TimeoutError as error:
            raise _Gone from error


class _Receiver:
    """`receive` that knows whether the body came to its end."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._ended = receive, False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._ended = self._ended or message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def throw_away(self, most: int) -> None:
        """The rest of the body, or `most` bytes of it."""
        while not self._ended and most > 0:
            most -= len((await self()).get("body", b""))


def _replay(body: bytes, receive: Receive) -> Receive:
    """The whole body at once, then whatever comes: the disconnect."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _request_id(scope: Scope) -> str:
    given = _headers(scope).get(REQUEST_ID.encode(), [b""])[0]
    return given.decode() if _ID.fullmatch(given) else uuid.uuid4().hex


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def _path(scope: Any) -> str:
    """The path as the router has it: without the prefix that the application is mounted under."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path
