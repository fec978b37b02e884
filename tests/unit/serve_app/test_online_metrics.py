"""GET /metrics: what the endpoint answered, by registered schema; strangers' schemas share a label."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from serving import JSON, ONE, Given, Held, client_of, object_of, service_of, until
from support import completion
from test_online_inline import InThread, inline_of

from pipeline.serve_app.service import Service

Found = dict[tuple[str, str], float]


async def post(client: Any, body: Any, path: str = "/v1/extract") -> int:
    return int((await client.post(path, content=json.dumps(body), headers=JSON)).status_code)


async def metrics(client: Any) -> str:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return str(answer.text)


def values(text: str, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The values of a metric that are not 0, by these labels."""
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.value
    }


def test_answers_are_counted_by_schema_status_and_code() -> None:
    async def go() -> None:
        answers = iter([completion("no"), completion("no"), completion({"vendor": "Ann & Co", "total": 19.9})])
        engine = Given(lambda _prompt: next(answers))
        async with client_of(service_of(engine)) as client:
            assert values(await metrics(client), "gristmill_documents_total", "schema", "status") == {}
            assert await post(client, ONE) == 422
            assert await post(client, {**ONE, "schema": "nothing@1"}) == 404
            assert await post(client, {"documents": [ONE, {**ONE, "schema": "odd@1"}]}, "/v1/extract:batch") == 200
            text = await metrics(client)
            found = values(text, "gristmill_documents_total", "schema", "status")
            assert found == {("receipt@1", "rejected"): 1, ("receipt@1", "valid"): 1, ("odd@1", "rejected"): 1}
            codes = values(text, "gristmill_endpoint_answers_total", "http")
            assert codes == {("200",): 1, ("404",): 1, ("422",): 2}
            assert "nothing@1" not in text
            assert values(text, "gristmill_required_values_total", "state") == {("filled",): 2}

    asyncio.run(go())


def test_schemas_of_strangers_share_one_label_and_nothing_of_them_is_shown() -> None:
    async def go() -> None:
        engine = Given(completion({"a stranger's key": 5}, constrained=True))
        async with client_of(service_of(engine, inline_of(InThread()))) as client:
            for number in range(5):
                schema = object_of(**{"a stranger's key": {"type": "string", "title": f"title {number}"}})
                assert await post(client, {**ONE, "schema": schema}) == 422
            text = await metrics(client)
            assert values(text, "gristmill_documents_total", "schema", "status") == {("inline", "rejected"): 5}
            assert "stranger" not in text and "title" not in text and "inline@" not in text

    asyncio.run(go())


def test_who_is_turned_away_is_counted() -> None:
    async def go() -> None:
        engine = Held()
        async with client_of(service_of(engine, in_flight=1)) as client:
            first = asyncio.create_task(post(client, ONE))
            await until(lambda: engine.inside == 1)
            assert await post(client, ONE) == 429
            engine.go.set()
            assert await first == 200
            wrong = await client.post("/v1/extract", content=b"{}", headers={**JSON, "authorization": "Bearer no"})
            assert wrong.status_code == 401
            codes = values(await metrics(client), "gristmill_endpoint_answers_total", "http")
            assert codes == {("200",): 1, ("401",): 1, ("429",): 1}

    asyncio.run(go())


def test_counting_that_fails_costs_no_answer(caplog: Any) -> None:
    class Broken(Exception):
        pass

    def fail(*_: Any, **__: Any) -> None:
        raise Broken

    async def go() -> None:
        service: Service = service_of(Given())
        service.counts._labels.of = fail  # type: ignore[method-assign]
        async with client_of(service) as client:
            assert [await post(client, ONE), await post(client, ONE)] == [200, 200]

    asyncio.run(go())
    assert caplog.text.count("not up to date") == 1
