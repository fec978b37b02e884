"""What stands in Serve's own proxy, which without it holds a body of any size in memory before anybody can refuse it.

    RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=pipeline.serve_app.proxy:middlewares

where Ray is started. It acts on all applications of the cluster, so it knows no token; the endpoint asks for that.
Headers by which a client could switch off Serve's time limit, or that its leaving ends its request, are taken away.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = "GRISTMILL_PROXY_MAX_BODY"
"""The environment variable that holds the most bytes of a body."""

DEFAULT_MAX_BODY = 64 << 20
_SWITCHES = frozenset({b"x-request-disconnect-disabled", b"x-request-timeout-seconds"})


def middlewares() -> list[Any]:
    """As Serve asks for them.

    Raises:
        ValueError: the environment variable holds no number.
    """
    from starlette.middleware import Middleware

    return [Middleware(BodyBound, max_body=int(os.environ.get(MAX_BODY) or DEFAULT_MAX_BODY))]


class BodyBound:
    """Refuses a request whose body has more bytes than may be, by its header or when they come."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _SWITCHES]
        sizes = [value for name, value in headers if name.lower() == b"content-length"]
        if any(size.isdigit() and int(size[:20]) > self._max for size in sizes):
            await _refuse(send)
            return
        taken, answered = 0, False

        async def bounded() -> Message:
            nonlocal taken, answered
            message = await receive()
            taken += len(message.get("body", b""))
            if taken <= self._max:
                return message
            if not answered:
                answered = True
                await _refuse(send)
            return {"type": "http.disconnect"}

        async def sent(message: Message) -> None:
            nonlocal answered
            if taken <= self._max:
                answered = True
                await send(message)

        await self._app({**scope, "headers": headers}, bounded, sent)


async def _refuse(send: Send) -> None:
    body = json.dumps({"error": {"code": "too_large", "message": "the body is too large for this server"}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
