"""POST /v1/extract: one document, its outcome, and the HTTP code that says the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from serving import GOOD, JSON, ONE, SECRET, TEXT, Given, Held, client_of, service_of, until
from support import completion

from pipeline.engines.busy import EngineBusyError
from pipeline.errors import EngineError, JobFileError
from pipeline.records import Completion


def asked(engine: Any, body: Any = ONE, **online: Any) -> Any:
    async def ask() -> Any:
        async with client_of(service_of(engine, **online)) as client:
            return await client.post("/v1/extract", content=json.dumps(body), headers=JSON)

    return asyncio.run(ask())


def test_a_document_comes_back_as_its_record() -> None:
    answer = asked(Given(), {**ONE, "id": "a-1"})
    body = answer.json()
    assert answer.status_code == 200
    assert (body["document_id"], body["schema"], body["status"], body["record"]) == ("a-1", "receipt@1", "valid", GOOD)
    assert body["layer"] == 1 and body["attempts"][0]["constrained"] is True
    assert "document_text" not in body and TEXT not in answer.text


def test_without_an_id_the_same_text_has_the_same_one() -> None:
    first, again, other = (asked(Given(), {**ONE, "text": text}).json()["document_id"] for text in ("a", "a", "b"))
    assert first == again != other


@pytest.mark.parametrize(
    ("answer", "retry", "code", "status"),
    [
        (completion("I cannot do that."), {}, 422, "rejected"),
        (completion('{"vendor": "Ann", "total": 5, "lines": ["t', "length"), {}, 200, "degraded"),
        (completion("", "abort"), {}, 503, "rejected"),
        (Completion("", "error", False, error="engine_failed"), {}, 503, "rejected"),
        (Completion("", "error", False, error="prompt_too_long"), {}, 422, "rejected"),
        (ValueError("a fault of ours"), {}, 500, "rejected"),
    ],
)
def test_the_code_says_who_is_to_blame(answer: Any, retry: Any, code: int, status: str) -> None:
    got = asked(Given(answer), retry={"max_attempts": 1, "max_engine_failures": 0, **retry})
    assert (got.status_code, got.json()["status"]) == (code, status)
    assert ("retry-after" in got.headers) == (code == 503)


def test_time_that_ran_out_is_504_and_the_engine_is_told() -> None:
    engine = Held()
    got = asked(engine, deadline_seconds=0.1)
    assert (got.status_code, got.json()["problems"][-1]["code"]) == (504, "deadline_exceeded")
    assert engine.cancelled == 1


def test_an_engine_that_is_gone_is_503_and_shows_in_the_health() -> None:
    async def story() -> None:
        engine = Given(EngineError("secret words of the engine"))
        async with client_of(service_of(engine)) as client:
            assert (await client.get("/healthz")).status_code == 200
            gone = await client.post("/v1/extract", json=ONE)
            assert (gone.status_code, gone.json()["error"]["code"]) == (503, "engine_gone")
            assert int(gone.headers["retry-after"]) >= 1 and "secret" not in gone.text
            assert (await client.get("/healthz")).status_code == 503
            engine.answer = completion(GOOD)
            assert (await client.post("/v1/extract", json=ONE)).status_code == 200
            assert (await client.get("/healthz")).json() == {"status": "ok"}

    asyncio.run(story())


def test_a_busy_engine_is_429_with_whole_seconds_to_wait_and_no_sickness() -> None:
    async def story() -> None:
        async with client_of(service_of(Given(EngineBusyError("full", 2.3)))) as client:
            busy = await client.post("/v1/extract", json=ONE)
            assert (busy.status_code, busy.headers["retry-after"]) == (429, "3")
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(story())


def test_beyond_the_places_callers_are_told_to_come_again_and_nothing_waits() -> None:
    async def story() -> None:
        engine = Held()
        service = service_of(engine, in_flight=3)
        async with client_of(service) as client:
            admitted = [asyncio.create_task(client.post("/v1/extract", json=ONE)) for _ in range(3)]
            await until(lambda: engine.inside == 3)
            refused = await asyncio.gather(*(client.post("/v1/extract", json=ONE) for _ in range(30)))
            assert {one.status_code for one in refused} == {429}
            assert all(one.headers["retry-after"].isdigit() and int(one.headers["retry-after"]) > 0 for one in refused)
            engine.go.set()
            assert [one.status_code for one in await asyncio.gather(*admitted)] == [200] * 3
            assert (engine.most, service.admission.used) == (3, 0)
            assert (await client.post("/v1/extract", json=ONE)).status_code == 200

    asyncio.run(story())


def test_an_unknown_schema_is_404_and_a_refused_one_an_outcome() -> None:
    unknown = asked(Given(), {**ONE, "schema": "nobody@1\ud800"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_schema")
    engine = Given()
    refused = asked(engine, {**ONE, "schema": "odd@1"})
    assert (refused.status_code, refused.json()["problems"][0]["code"]) == (422, "schema_refused")
    assert engine.prompts == []


def test_a_schema_of_ones_own_is_refused_where_they_are_off() -> None:
    got = asked(Given(), {**ONE, "schema": {"type": "object"}})
    assert (got.status_code, got.json()["error"]["code"]) == (422, "inline_off")


def test_nul_and_half_surrogates_are_replaced_as_in_a_job_and_cost_the_status() -> None:
    engine = Given()
    got = asked(engine, {**ONE, "text": "Ann & Co \x00 19.90 \ud83d"})
    assert (got.status_code, got.json()["status"]) == (200, "degraded")
    assert got.json()["problems"][0]["code"] == "document_characters_replaced"
    assert "\x00" not in engine.prompts[0].user and "\ud83d" not in engine.prompts[0].user


def test_a_text_that_shows_nothing_asks_no_engine() -> None:
    engine = Given()
    got = asked(engine, {**ONE, "text": " \u200b "})
    assert (got.status_code, got.json()["problems"][0]["code"], engine.prompts) == (422, "document_empty", [])


def test_an_answer_with_half_a_surrogate_pair_is_still_json() -> None:
    got = asked(Given(completion('{"vendor": "\\ud800", "total": 1}')), retry={"max_attempts": 1})
    assert got.status_code in (200, 422)
    assert json.loads(got.content)["attempts"][0]["raw_text"]


def test_a_deadline_beyond_the_retry_budget_is_refused() -> None:
    with pytest.raises(JobFileError, match=r"retry\.deadline_seconds"):
        service_of(Given(), retry={"deadline_seconds": 5}, deadline_seconds=6)


def test_what_goes_wrong_in_the_program_is_500_without_its_words(caplog: Any) -> None:
    service = service_of(Given())
    service.schema_rows = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]

    async def ask() -> Any:
        async with client_of(service) as client:
            return await client.get("/v1/schemas", headers={"x-request-id": "r-7"})

    got = asyncio.run(ask())
    assert (got.status_code, got.json()["error"]["code"], got.headers["x-request-id"]) == (500, "internal", "r-7")
    assert "division" not in got.text and "r-7" in caplog.text and SECRET not in caplog.text


def test_a_text_beyond_the_limit_is_413_and_costs_no_engine() -> None:
    engine = Given()
    got = asked(engine, {**ONE, "text": "é" * 101}, max_text=100)
    assert (got.status_code, got.json()["error"]["code"], engine.prompts) == (413, "text_too_long", [])
    assert asked(engine, {**ONE, "text": "é" * 100}, max_text=100).status_code == 200
