"""One pool for jobs and online callers: the same outcomes, the right codes, and nothing hangs when an engine dies."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
import pytest

from pipeline.errors import EngineError, JobFileError
from pipeline.flow import run
from tests.integration.conftest import ROOT, TOKEN, MakeJob
from tests.integration.test_live_metrics import ray_series, series_of
from tests.integration.test_sampler_job import comparable, rows_of

pytestmark = pytest.mark.usefixtures("ray_cluster")

APPLICATION = "tests"
ENGINE = {"engine": "sampler", "seed": 3, "backend": "guidance", "max_num_seqs": 4, "token_seconds": 0.001}
IN_FLIGHT = 8
ANSWERS = "gristmill_endpoint_answers_total"


@dataclass(frozen=True)
class Endpoint:
    url: str

    def client(self, **more: Any) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=120, limits=limits, **more)

    async def many(self, count: int, at_once: int, first: int = 0) -> list[tuple[int, float, httpx.Response]]:
        """Code, seconds and answer of each of so many requests."""
        gate = asyncio.Semaphore(at_once)

        async def one(client: httpx.AsyncClient, number: int) -> tuple[int, float, httpx.Response]:
            async with gate:
                began = time.monotonic()
                body = {"text": f"Receipt no. {number}\nTotal {number}.00", "schema": "receipt@1"}
                answer = await client.post("/v1/extract", json=body)
                return answer.status_code, time.monotonic() - began, answer

        async with self.client() as client:
            return await asyncio.gather(*(one(client, first + number) for number in range(count)))


@pytest.fixture(scope="module")
def endpoint(ray_cluster: None) -> Iterator[Endpoint]:
    """The application on a port of this machine, with a pool of two engines."""
    from ray import serve

    from pipeline.serve_app.app import build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    args = {
        "name": "tests",
        "schemas": str(ROOT / "schemas"),
        "serve": ["receipt@1", "package@1"],
        "engine": ENGINE,
        "sampling": {"max_tokens": 400},
        "retry": {"deadline_seconds": 60},
        "pool": {"min_replicas": 2, "max_replicas": 2, "waiting": 4, "stall_seconds": 20},
        "online": {"in_flight": IN_FLIGHT, "body_seconds": 3},
    }
    serve.run(build(args), name=APPLICATION, route_prefix="/")
    yield Endpoint(f"http://127.0.0.1:{port}")
    serve.shutdown()


@pytest.mark.slow
def test_outcomes_are_those_of_a_job_with_its_own_engine(
    endpoint: Endpoint, documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    few, found = documents[:60], {}
    for kind, placement in {"local": {"kind": "local"}, "serve": {"kind": "serve", "application": APPLICATION}}.items():
        job = make_job(few, kind, engine=ENGINE, placement=placement, pilot={"documents": 0})
        found[kind] = comparable(rows_of(job.output, run(job, lambda event, value: None)))
    assert set(found["local"]) == {row["id"] for row in few}
    assert found["serve"] == found["local"]


def test_a_pool_that_is_not_there_or_another_one_is_told_before_the_first_document(
    endpoint: Endpoint, documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    absent = make_job(documents[:2], "absent", engine=ENGINE, placement={"kind": "serve", "application": "nobody"})
    with pytest.raises(EngineError, match="no Serve application 'nobody'"):
        run(absent, lambda event, value: None)
    other = {**ENGINE, "seed": 4}
    differs = make_job(documents[:2], "differs", engine=other, placement={"kind": "serve", "application": APPLICATION})
    with pytest.raises(JobFileError, match=r"engine\.seed is 4 here and 3 there"):
        run(differs, lambda event, value: None)


@pytest.mark.asyncio
async def test_callers_get_outcomes_and_codes(endpoint: Endpoint) -> None:
    inline = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    async with endpoint.client() as client:
        good = await client.post("/v1/extract", json={"id": "r1", "text": "Total 3.00", "schema": "receipt@1"})
        assert good.status_code in (200, 422)
        assert good.json()["document_id"] == "r1" and good.json()["status"] in ("valid", "degraded", "rejected")
        own = await client.post("/v1/extract", json={"text": "n is 2", "schema": inline})
        assert own.status_code == 200 and own.json()["record"]["n"] in (1, 2)
        batch = [{"text": f"Receipt {number}", "schema": "receipt@1"} for number in range(12)]
        many = await client.post("/v1/extract:batch", json={"documents": batch})
        assert many.status_code == 200 and len(many.json()["results"]) == 12
        assert (await client.post("/v1/extract", json={"text": "x", "schema": "no@1"})).status_code == 404
        assert (await client.post("/v1/extract", content=b"x" * (2 << 20))).status_code in (413, 415)
        assert {one["name"] for one in (await client.get("/v1/schemas")).json()["schemas"]} == {
            "receipt@1",
            "package@1",
        }
    async with endpoint.client(headers={"authorization": "Bearer wrong"}) as stranger:
        refused = await stranger.post("/v1/extract", json={"text": "x", "schema": "receipt@1"})
        assert (refused.status_code, refused.headers["connection"]) == (401, "close")
        assert (await stranger.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.asyncio
async def test_what_it_answered_is_counted_by_itself_and_through_ray(endpoint: Endpoint) -> None:
    def answers(found: dict[Any, float]) -> dict[str, float]:
        ours = {dict(labels)["http"]: value for (name, labels), value in found.items() if name == ANSWERS}
        return {http: value for http, value in ours.items() if value}

    async with endpoint.client() as client:
        before = answers(series_of((await client.get("/metrics")).text))
        assert (await client.post("/v1/extract", json={"text": "x", "schema": "no@1"})).status_code == 404
        page = (await client.get("/metrics")).text
        after = answers(series_of(page))
        assert after == {**before, "404": before.get("404", 0) + 1}
        assert (await client.get("/metrics", headers={"authorization": "Bearer wrong"})).status_code == 401
        after["401"] = after.get("401", 0) + 1
    deadline = time.monotonic() + 45
    while answers(await asyncio.to_thread(ray_series)) != after:
        assert time.monotonic() < deadline, "Ray does not show what the endpoint counted"
        await asyncio.sleep(1)


@pytest.mark.asyncio
async def test_what_is_too_much_is_refused_at_once_and_what_was_taken_is_answered(endpoint: Endpoint) -> None:
    found = await endpoint.many(200, at_once=10 * IN_FLIGHT)
    codes = Counter(code for code, _, _ in found)
    assert set(codes) <= {200, 422, 429} and codes[429] > 0
    assert codes[200] + codes[422] >= IN_FLIGHT
    assert all(int(answer.headers["retry-after"]) >= 1 for code, _, answer in found if code == 429)
    assert all(code in (200, 422) for code, _, _ in await endpoint.many(IN_FLIGHT, at_once=IN_FLIGHT))


@pytest.mark.asyncio
async def test_a_body_that_does_not_come_is_given_up(endpoint: Endpoint) -> None:
    host, port = endpoint.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ["POST /v1/extract HTTP/1.1", "Host: x", f"Authorization: Bearer {TOKEN}", "Content-Type: application/json"]
    writer.write("\r\n".join([*lines, "Content-Length: 100", "", '{"text": "']).encode())
    await writer.drain()
    async with asyncio.timeout(60):
        answer = await reader.read()  # until the connection is closed
    assert answer.startswith(b"HTTP/1.1 408") and b"slow_body" in answer
    writer.close()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_an_engine_that_is_killed_under_load_is_replaced_and_nobody_hangs(endpoint: Endpoint) -> None:
    load = asyncio.create_task(endpoint.many(200, at_once=IN_FLIGHT))
    await asyncio.sleep(2)
    for process in engines():
        process.send_signal(signal.SIGKILL)
    codes = Counter(code for code, _, _ in await load)
    assert set(codes) <= {200, 422, 429, 503}
    until = time.monotonic() + 120
    while any(code not in (200, 422) for code, _, _ in await endpoint.many(4, at_once=2)):
        assert time.monotonic() < until
        await asyncio.sleep(1)
    assert len(engines()) == 2


@pytest.mark.slow
def test_a_job_and_callers_share_the_pool_and_callers_do_not_wait_for_the_job(
    endpoint: Endpoint, documents: list[dict[str, Any]], make_job: MakeJob
) -> None:
    placement = {"kind": "serve", "application": APPLICATION, "max_engines": 2}
    job = make_job(documents, "beside", engine=ENGINE, placement=placement, pilot={"documents": 0})
    alone = asyncio.run(endpoint.many(40, at_once=2))
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(run(job, lambda event, value: None)))
    thread.start()
    beside: list[tuple[int, float, httpx.Response]] = []
    while thread.is_alive():
        beside += asyncio.run(endpoint.many(20, at_once=2, first=len(beside)))
    thread.join()
    assert done and done[0].documents == len(documents)
    assert {code for code, _, _ in beside} <= {200, 422}
    seconds = [sorted(one for _, one, _ in found)[len(found) * 95 // 100] for found in (alone, beside)]
    # Half the places are not for jobs: what remains is that both run on the same cores.
    assert seconds[1] < 20 * seconds[0] + 5


def engines() -> list[psutil.Process]:
    """The processes of the pool's replicas."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if words.startswith(f"ray::ServeReplica:{APPLICATION}:Engine"):
            found.append(process)
    return found
