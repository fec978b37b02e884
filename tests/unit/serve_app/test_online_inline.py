"""Schemas that come with a request: bounded, kept apart, refused with a code. The compiler is not part of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from typing import Any

import pytest
from serving import JSON, ONE, Given, client_of, object_of, service_of, until
from support import completion

from pipeline.compile.sandbox import Job, Result
from pipeline.compile.zygote import Tools
from pipeline.errors import EngineError, SchemaError
from pipeline.job import ExtractConfig, SamplerConfig
from pipeline.serve_app.inline import CompilerBusyError, InlineSchemas, target_of
from pipeline.serve_app.inline_job import inline
from pipeline.serve_app.online import InlineConfig

NO_MODEL = Tools(None, 0, None, None, None)
TARGET = dataclasses.replace(target_of(SamplerConfig(engine="sampler"), ExtractConfig()), backends=("guidance",))


class InThread:
    """Runs the job where it is called: nothing is tried without a tokenizer. Can be held, and can break."""

    def __init__(self, kind: Any = "ok") -> None:
        self.kind, self.jobs, self.go = kind, 0, threading.Event()
        self.go.set()

    def start(self) -> None:
        if self.kind == "gone":
            raise EngineError("the sandbox does not start")

    def close(self) -> None: ...

    def call(self, job: Job) -> Result:
        self.jobs += 1
        assert self.go.wait(60)
        if self.kind != "ok":
            return Result(self.kind, None, "killed", 1.0, 1.0)
        return Result("ok", json.loads(json.dumps(inline(NO_MODEL, job.payload))), "", 0.0, 0.0)


def inline_of(sandbox: Any, **config: Any) -> InlineSchemas:
    return InlineSchemas(InlineConfig(**config), TARGET, sandbox)


def schema(name: str = "vendor", **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name], **more}


def test_a_schema_of_ones_own_is_extracted_under_and_tried_once() -> None:
    async def story() -> None:
        sandbox = InThread()
        async with client_of(service_of(Given(completion({"vendor": "Ann & Co"})), inline_of(sandbox))) as client:
            body = {**ONE, "schema": schema()}
            got = [await client.post("/v1/extract", json=body) for _ in range(3)]
            assert [one.json()["record"] for one in got] == [{"vendor": "Ann & Co"}] * 3
            assert got[0].json()["schema"].startswith("inline@") and sandbox.jobs == 1
            names = [row["name"] for row in (await client.get("/v1/schemas")).json()["schemas"]]
            assert names == ["odd@1", "receipt@1"]

    asyncio.run(story())


def test_its_business_rules_are_judged() -> None:
    async def story() -> None:
        rules = [{"rule": "self.vendor != 'Ann'", "message": "not Ann"}]
        engine = Given(completion({"vendor": "Ann"}))
        async with client_of(service_of(engine, inline_of(InThread()))) as client:
            got = await client.post("/v1/extract", json={**ONE, "schema": schema() | {"x-validations": rules}})
            assert (got.status_code, got.json()["problems"][-1]["code"]) == (422, "rule_broken")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (object_of(a={"$ref": "http://127.0.0.1:9/schema.json"}), "bad_ref"),
        (object_of(a={"$ref": "file:///etc/passwd"}), "bad_ref"),
        ({"$schema": "http://127.0.0.1:9/draft", "type": "object"}, "unknown_draft"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "endless_ref"),
        (object_of(a={"type": "string", "pattern": "^(a+)+$"}), "slow_pattern"),
        (object_of(a={"type": "strng"}), "malformed"),
        (object_of(**{"\ud800": {"type": "string"}}), "not_json"),
        (object_of(a={"description": "x" * 70_000}), "too_large"),
        (object_of(a=False) | {"required": ["a"]}, "unsatisfiable"),
        (object_of(a={"type": "integer"}) | {"x-validations": [{"rule": "((", "message": ""}]}, "bad_annotation"),
        (object_of(a={"allOf": [{"$ref": "#"}, {"$ref": "#"}]}), "tangled"),
    ],
)
def test_a_hostile_schema_is_refused_with_a_code_and_tried_once(body: Any, code: str) -> None:
    async def story() -> None:
        sandbox, engine = InThread(), Given()
        async with client_of(service_of(engine, inline_of(sandbox))) as client:
            sent = json.dumps({**ONE, "schema": body})
            got = [await client.post("/v1/extract", content=sent, headers=JSON) for _ in range(2)]
            assert [(one.status_code, one.json()["error"]["code"]) for one in got] == [(422, f"schema_{code}")] * 2
            assert engine.prompts == [] and sandbox.jobs <= 1

    asyncio.run(story())


def test_a_schema_that_nests_without_end_is_refused() -> None:
    deep: Any = {"type": "string"}
    for _ in range(300):
        deep = {"type": "array", "items": deep}

    async def story() -> None:
        async with client_of(service_of(Given(), inline_of(InThread()))) as client:
            got = await client.post("/v1/extract", json={**ONE, "schema": object_of(a=deep)})
            assert (got.status_code, got.json()["error"]["code"]) == (422, "schema_too_deep")

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["timeout", "crash", "memory", "error"])
def test_a_trial_that_was_broken_off_refuses_the_schema_for_a_while(kind: str) -> None:
    async def story() -> None:
        sandbox = InThread(kind)
        schemas = inline_of(sandbox)
        for _ in range(3):
            with pytest.raises(SchemaError) as refused:
                await schemas.plan(schema())
            assert refused.value.code == kind
        assert sandbox.jobs == 1  # the same bomb does not hold the sandbox up again

    asyncio.run(story())


def test_a_sandbox_that_is_gone_is_503_and_not_the_schemas_fault() -> None:
    async def story() -> None:
        sandbox = InThread("gone")
        async with client_of(service_of(Given(), inline_of(sandbox))) as client:
            got = await client.post("/v1/extract", json={**ONE, "schema": schema()})
            assert (got.status_code, got.json()["error"]["code"]) == (503, "compiler_gone")
            assert (await client.post("/v1/extract", json=ONE)).status_code == 200
            sandbox.kind = "ok"
            assert (await client.post("/v1/extract", json={**ONE, "schema": schema()})).status_code != 503

    asyncio.run(story())


def test_while_one_is_tried_others_wait_or_come_again_and_registered_ones_are_served() -> None:
    async def story() -> None:
        sandbox = InThread()
        sandbox.go.clear()
        engine = Given(completion({"vendor": "Ann & Co", "total": 1}))
        async with client_of(service_of(engine, inline_of(sandbox, waiting=2))) as client:

            async def ask(name: str) -> Any:
                return await client.post("/v1/extract", json={**ONE, "schema": schema(name)})

            waiting = [asyncio.create_task(ask(name)) for name in ("a", "b", "c", "a", "a")]
            await until(lambda: sandbox.jobs == 1)
            await asyncio.sleep(0.05)
            refused = await ask("d")
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "compiler_busy")
            assert int(refused.headers["retry-after"]) >= 1
            assert (await client.post("/v1/extract", json=ONE)).status_code == 200
            sandbox.go.set()
            assert 429 not in [one.status_code for one in await asyncio.gather(*waiting)]
            assert sandbox.jobs == 3

    asyncio.run(story())


def test_a_caller_that_leaves_takes_nothing_from_those_who_wait_for_the_same() -> None:
    async def story() -> None:
        sandbox = InThread()
        sandbox.go.clear()
        schemas = inline_of(sandbox)
        leaving, staying = (asyncio.create_task(schemas.plan(schema())) for _ in range(2))
        await until(lambda: sandbox.jobs == 1)
        leaving.cancel()
        await asyncio.sleep(0)
        sandbox.go.set()
        assert (await staying).name.startswith("inline@")
        assert (await schemas.plan(schema())) is await staying and sandbox.jobs == 1

    asyncio.run(story())


def test_the_oldest_plans_are_forgotten_and_refusals_push_no_plan_out() -> None:
    async def story() -> None:
        sandbox = InThread()
        schemas = inline_of(sandbox, kept=2)
        first, second = await schemas.plan(schema("a")), await schemas.plan(schema("b"))
        for number in range(5):
            with pytest.raises(SchemaError):
                await schemas.plan({"type": f"nothing {number}"})
        jobs = sandbox.jobs
        assert await schemas.plan(schema("a")) is first and await schemas.plan(schema("b")) is second
        assert await schemas.plan(schema("a")) is first and sandbox.jobs == jobs
        await schemas.plan(schema("c"))
        assert await schemas.plan(schema("a")) is first and sandbox.jobs == jobs + 1
        assert (await schemas.plan(schema("b"))).digest == second.digest and sandbox.jobs == jobs + 2

    asyncio.run(story())


def test_the_order_of_keys_makes_another_schema() -> None:
    async def story() -> None:
        schemas = inline_of(InThread())
        one, other = object_of(a={"type": "string"}, b={}), object_of(b={}, a={"type": "string"})
        assert (await schemas.plan(one)).transport != (await schemas.plan(other)).transport

    asyncio.run(story())


def test_more_than_may_wait_is_said_with_seconds() -> None:
    async def story() -> None:
        sandbox = InThread()
        sandbox.go.clear()
        schemas = inline_of(sandbox, waiting=0)
        running = asyncio.create_task(schemas.plan(schema("a")))
        await until(lambda: sandbox.jobs == 1)
        with pytest.raises(CompilerBusyError) as busy:
            await schemas.plan(schema("b"))
        assert busy.value.retry_after >= 1
        sandbox.go.set()
        await running

    asyncio.run(story())
