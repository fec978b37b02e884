"""POST /v1/extract:batch and GET /v1/schemas; what OpenAPI says against what is answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from serving import JSON, ONE, Given, Held, client_of, service_of, until
from support import completion

from pipeline.errors import EngineError
from pipeline.serve_app.admission import Admission, FullError


def batch(engine: Any, documents: Any, **online: Any) -> Any:
    async def ask() -> Any:
        async with client_of(service_of(engine, **online)) as client:
            body = json.dumps({"documents": documents})
            return await client.post("/v1/extract:batch", content=body, headers=JSON)

    return asyncio.run(ask())


def test_documents_come_back_in_order_each_with_its_own_code() -> None:
    def answer(prompt: Any) -> Any:
        if "gone" in prompt.user:
            return EngineError("gone")
        return completion("no" if "bad" in prompt.user else {"vendor": "Ann", "total": 1})

    documents = [
        {**ONE, "id": "first"},
        {**ONE, "schema": "nobody@1"},
        {**ONE, "text": "bad", "id": "third"},
        {**ONE, "text": "gone"},
        {**ONE, "schema": {"type": "object"}},
        {**ONE, "id": "first"},
    ]
    got = batch(Given(answer), documents, in_flight=2)
    rows = got.json()["results"]
    assert got.status_code == 200
    assert [row["http"] for row in rows] == [200, 404, 422, 503, 422, 200]
    assert [row["outcome"] and row["outcome"]["document_id"] for row in rows] == [
        "first",
        None,
        "third",
        None,
        None,
        "first",
    ]
    assert [(row["error"] or {}).get("code") for row in rows] == [
        None,
        "unknown_schema",
        None,
        "engine_gone",
        "inline_off",
        None,
    ]
    assert rows[3]["retry_after"] >= 1


@pytest.mark.parametrize("documents", [[], [ONE] * 5, ONE, [[ONE]], [ONE, {"text": "a"}]])
def test_a_batch_of_none_of_too_many_or_of_something_else_is_422(documents: Any) -> None:
    got = batch(Given(), documents, batch_documents=4)
    assert (got.status_code, got.json()["error"]["code"]) == (422, "bad_request")


def test_a_batch_shares_the_places_and_leaves_some_to_single_documents() -> None:
    async def story() -> None:
        engine = Held()
        service = service_of(engine, in_flight=4)
        async with client_of(service) as client:
            running = asyncio.create_task(client.post("/v1/extract:batch", json={"documents": [ONE] * 10}))
            await until(lambda: engine.inside == 3)
            single = asyncio.create_task(client.post("/v1/extract", json=ONE))
            await until(lambda: engine.inside == 4)
            assert (await client.post("/v1/extract", json=ONE)).status_code == 429
            other = await client.post("/v1/extract:batch", json={"documents": [ONE]})
            assert (other.status_code, int(other.headers["retry-after"]) >= 1) == (429, True)
            engine.go.set()
            assert (await single).status_code == 200
            assert [row["http"] for row in (await running).json()["results"]] == [200] * 10
            assert (engine.most, service.admission.used, service.admission.waiting) == (4, 0, 0)

    asyncio.run(story())


def test_documents_of_a_batch_that_find_no_place_in_time_are_429_each() -> None:
    async def story() -> None:
        engine = Held()
        service = service_of(engine, in_flight=1, deadline_seconds=0.2)
        async with client_of(service) as client:
            got = await client.post("/v1/extract:batch", json={"documents": [ONE] * 3})
            assert sorted(row["http"] for row in got.json()["results"]) in ([429, 429, 504], [429, 504, 504])
            assert service.admission.used == 0

    asyncio.run(story())


def test_a_waiter_that_leaves_gives_its_turn_to_the_next() -> None:
    async def story() -> None:
        admission = Admission(1)
        admission.begin_batch()
        first, second = (asyncio.create_task(admission.next_of_batch(60)) for _ in range(2))
        await asyncio.sleep(0)
        with admission.held_for_batch():
            assert admission.waiting == 2
        first.cancel()  # although it has just been given the place
        await second
        with admission.held_for_batch(), pytest.raises(FullError), admission.place():
            pass
        assert (admission.used, admission.waiting) == (0, 0)

    asyncio.run(story())


def test_the_wait_that_callers_are_told_follows_the_pace() -> None:
    now = [0.0]
    admission = Admission(2, clock=lambda: now[0])
    for _ in range(60):
        with admission.place():
            now[0] += 30
    with admission.place(), admission.place(), pytest.raises(FullError) as slow, admission.place():
        pass
    assert 25 <= slow.value.retry_after <= 30


def test_the_schemas_are_listed_with_what_is_left_and_why_one_is_refused() -> None:
    async def ask() -> Any:
        async with client_of(service_of(Given())) as client:
            return (await client.get("/v1/schemas")).json()["schemas"]

    odd, receipt = asyncio.run(ask())
    assert (odd["name"], odd["refused"], odd["schema"]) == ("odd@1", "no back end takes it", None)
    assert (receipt["name"], receipt["backend"], receipt["refused"]) == ("receipt@1", "xgrammar", "")
    assert receipt["schema"]["properties"]["vendor"] == {"type": "string"}
    assert {"pointer", "keyword", "why"} == set().union(*receipt["left"]) if receipt["left"] else True
    assert "transport" not in receipt and "prefix" not in receipt


ASKED = [
    ("/v1/extract", ONE, {}),
    ("/v1/extract", {**ONE, "text": ""}, {}),
    ("/v1/extract", {**ONE, "schema": "nobody@1"}, {}),
    ("/v1/extract", {"text": 1}, {}),
    ("/v1/extract", ONE, {"authorization": "Bearer wrong"}),
    ("/v1/extract", ONE, {"content-type": "text/plain"}),
    ("/v1/extract", ONE, {"content-length": "99999999"}),
    ("/v1/extract", {**ONE, "text": "down"}, {}),
    ("/v1/extract", {**ONE, "text": "abort"}, {}),
    ("/v1/extract:batch", {"documents": [ONE, {**ONE, "text": ""}, {**ONE, "schema": "nobody@1"}]}, {}),
    ("/v1/extract:batch", {"documents": []}, {}),
]


@pytest.mark.parametrize(("path", "body", "headers"), ASKED)
def test_what_is_answered_is_what_openapi_says(path: str, body: Any, headers: Any) -> None:
    def answer(prompt: Any) -> Any:
        if "down" in prompt.user:
            return EngineError("gone")
        return completion("", "abort") if "abort" in prompt.user else completion({"vendor": "Ann", "total": 1})

    async def story() -> None:
        async with client_of(service_of(Given(answer))) as client:
            document = (await client.get("/openapi.json")).json()
            got = await client.post(path, content=json.dumps(body), headers={**JSON, **headers})
            responses = document["paths"][path]["post"]["responses"]
            assert str(got.status_code) in responses
            schema = responses[str(got.status_code)]["content"]["application/json"]["schema"]
            Draft202012Validator({**schema, "components": document["components"]}).validate(got.json())

    asyncio.run(story())


def test_every_route_but_the_open_ones_asks_for_the_token_in_openapi() -> None:
    async def ask() -> Any:
        async with client_of(service_of(Given())) as client:
            return (await client.get("/openapi.json")).json()

    document = asyncio.run(ask())
    secured = {path for path, item in document["paths"].items() for one in item.values() if "security" in one}
    assert secured == {"/v1/extract", "/v1/extract:batch", "/v1/schemas", "/metrics"}
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
