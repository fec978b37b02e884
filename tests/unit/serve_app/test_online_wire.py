"""The endpoint behind a real server: slow bodies, half bodies, clients that leave, many at a time."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import httpx
import pytest
from serving import HEADERS, JSON, ONE, Given, Held, answer_to, head_of, served, service_of, until

BODY = json.dumps(ONE).encode()


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


def over_the_wire(story: Any, engine: Any = None, **online: Any) -> Any:
    service = service_of(engine or Given(), **online)

    async def run() -> Any:
        async with served(service) as port, asyncio.timeout(60):
            return await story(port, service)

    return asyncio.run(run())


def test_the_whole_way_with_an_ordinary_client() -> None:
    async def story(port: int, _: Any) -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS) as client:
            assert (await client.post("/v1/extract", json=ONE)).json()["status"] == "valid"
            assert len((await client.get("/v1/schemas")).json()["schemas"]) == 2
            chunks = (part for part in (BODY[:9], BODY[9:]))
            got = await client.post("/v1/extract", content=_stream(chunks), headers=JSON)
            assert got.status_code == 200

    over_the_wire(story)


async def _stream(parts: Any) -> Any:
    for part in parts:
        yield part


def test_a_wrong_token_is_refused_before_any_of_the_body_is_sent() -> None:
    async def story(port: int, _: Any) -> None:
        reader, writer = await connected(port)
        writer.write(head_of(token="x" * 20, Content_Length="1000000"))
        code, headers, _ = await answer_to(reader)
        assert (code, headers["connection"]) == (401, "close")
        writer.close()

    over_the_wire(story)


def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent() -> None:
    async def story(port: int, _: Any) -> None:
        reader, writer = await connected(port)
        writer.write(head_of(Content_Length="5000000", Expect="100-continue"))
        assert (await answer_to(reader))[0] == 413  # and no "100 Continue" before it
        writer.close()

    over_the_wire(story)


def test_a_client_that_sends_its_large_body_anyway_reads_the_refusal() -> None:
    def naive(port: int) -> bytes:
        """Sends all before it reads anything, as simple clients do."""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
            wire.sendall(head_of(Content_Length="300000"))
            for _ in range(30):
                time.sleep(0.01)
                wire.sendall(b" " * 10_000)
            return wire.recv(1000)

    async def story(port: int, _: Any) -> None:
        assert b" 413 " in (await asyncio.to_thread(naive, port)).split(b"\r\n")[0]

    over_the_wire(story, max_body_bytes=100_000)


@pytest.mark.parametrize("head", [{"Content_Length": str(len(BODY))}, {"Transfer_Encoding": "chunked"}])
def test_a_slow_body_is_408_and_the_connection_ends(head: Any) -> None:
    async def story(port: int, service: Any) -> None:
        reader, writer = await connected(port)
        writer.write(head_of(**head) + (BODY[:10] if "Content_Length" in head else b"5\r\n" + BODY[:5] + b"\r\n"))
        code, _, body = await answer_to(reader)
        assert (code, body["error"]["code"]) == (408, "slow_body")
        assert await reader.read() == b""
        assert service.admission.used == 0
        writer.close()

    over_the_wire(story, body_seconds=0.3)


def test_a_body_that_drips_is_slow_however_often_a_byte_comes() -> None:
    async def story(port: int, _: Any) -> None:
        reader, writer = await connected(port)
        writer.write(head_of(Content_Length="1000"))
        dripping = asyncio.create_task(_drip(writer))
        assert (await answer_to(reader))[0] == 408
        dripping.cancel()

    over_the_wire(story, body_seconds=0.3)


async def _drip(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b" ")
        await asyncio.sleep(0.02)


def test_half_a_body_and_then_nobody_leaves_nothing_behind() -> None:
    async def story(port: int, service: Any) -> None:
        for _ in range(5):
            _, writer = await connected(port)
            writer.write(head_of(Content_Length=str(len(BODY))) + BODY[:10])
            await writer.drain()
            writer.close()
        async with httpx.AsyncClient(headers=HEADERS) as client:
            assert (await client.post(f"http://127.0.0.1:{port}/v1/extract", json=ONE)).status_code == 200
        assert service.admission.used == 0

    over_the_wire(story, in_flight=1)


@pytest.mark.parametrize(("path", "body", "documents"), [("/v1/extract", ONE, 1), ("/v1/extract:batch", None, 3)])
def test_a_client_that_leaves_cancels_the_generation_and_frees_its_place(path: str, body: Any, documents: int) -> None:
    engine = Held()
    sent = json.dumps(body or {"documents": [ONE] * documents}).encode()

    async def story(port: int, service: Any) -> None:
        _, writer = await connected(port)
        writer.write(head_of(path, Content_Length=str(len(sent))) + sent)
        await until(lambda: engine.inside == documents)
        writer.close()
        await until(lambda: engine.cancelled == documents)
        await until(lambda: service.admission.used == 0)

    over_the_wire(story, engine, in_flight=8)


def test_ten_times_as_many_as_have_room_are_answered_and_hold_no_bodies() -> None:
    engine = Held()

    async def story(port: int, service: Any) -> None:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(headers=HEADERS, timeout=60, limits=limits) as client:
            url, large = f"http://127.0.0.1:{port}/v1/extract", {**ONE, "text": "x" * 200_000}
            tasks = [asyncio.create_task(client.post(url, json=large)) for _ in range(40)]
            await until(lambda: sum(task.done() for task in tasks) == 36)
            assert (engine.inside, service.admission.used) == (4, 4)
            refused = [task.result() for task in tasks if task.done()]
            assert {one.status_code for one in refused} == {429} and all(
                "retry-after" in one.headers for one in refused
            )
            engine.go.set()
            assert sorted({one.status_code for one in await asyncio.gather(*tasks)}) == [200, 429]

    over_the_wire(story, engine, in_flight=4)


def test_a_crowd_of_unfinished_bodies_is_bounded_too() -> None:
    async def story(port: int, service: Any) -> None:
        ends = [await connected(port) for _ in range(12)]
        for _, writer in ends:
            writer.write(head_of(Content_Length="1000") + b" ")
        codes = [asyncio.create_task(answer_to(reader)) for reader, _ in ends]
        await until(lambda: sum(code.done() for code in codes) >= 8)  # long before the bodies' time is over
        assert {code.result()[0] for code in codes if code.done()} == {429}
        assert sum(code.done() for code in codes) == 8
        for code in codes:
            code.cancel()
        for _, writer in ends:
            writer.close()

    over_the_wire(story, in_flight=2, body_seconds=120)
