"""What stands in Serve's proxy: bodies are bounded there, and no client switches limits off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pipeline.serve_app import proxy
from pipeline.serve_app.proxy import BodyBound

MOST = 1000


class Echo:
    """An application that tells how many bytes it got, and which headers."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.disconnected = 0
        self.headers: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = [name for name, _ in scope["headers"]]
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected += 1
                return
            size += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        self.sizes.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(size).encode()})


async def post(app: Any, content: Any, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(BodyBound(app, MOST)), base_url="http://x") as client:
        return await client.post("/", content=content, headers=headers)


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 100


@pytest.mark.asyncio
async def test_a_body_within_the_bound_passes_as_it_is() -> None:
    echo = Echo()
    assert (await post(echo, b"x" * MOST)).text == str(MOST)
    assert (await post(echo, chunks(10))).text == str(MOST)
    assert echo.sizes == [MOST, MOST]


@pytest.mark.asyncio
async def test_a_larger_one_is_refused_by_its_header_and_the_application_never_called() -> None:
    echo = Echo()
    answer = await post(echo, b"x" * (MOST + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"
    assert not echo.headers


@pytest.mark.asyncio
async def test_one_that_does_not_tell_its_size_is_cut_off_when_it_is_too_large() -> None:
    echo = Echo()
    answer = await post(echo, chunks(11))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert (echo.sizes, echo.disconnected) == ([], 1)


@pytest.mark.asyncio
async def test_a_client_cannot_switch_off_limits_of_serve() -> None:
    echo = Echo()
    await post(
        echo, b"x", **{"X-Request-Disconnect-Disabled": "?1", "x-request-timeout-seconds": "1e9", "x-other": "1"}
    )
    assert b"x-other" in echo.headers
    assert not {b"x-request-disconnect-disabled", b"x-request-timeout-seconds"} & set(echo.headers)


def test_the_bound_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy.middlewares()[0].kwargs == {"max_body": proxy.DEFAULT_MAX_BODY}
    monkeypatch.setenv(proxy.MAX_BODY, "5")
    assert proxy.middlewares()[0].kwargs == {"max_body": 5}
    monkeypatch.setenv(proxy.MAX_BODY, "many")
    with pytest.raises(ValueError, match="many"):
        proxy.middlewares()
