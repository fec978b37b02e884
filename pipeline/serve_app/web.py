"""The FastAPI application of a Service: routes, and what OpenAPI says of them. No script is loaded from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from pipeline.observe.metrics.text import CONTENT_TYPE
from pipeline.serve_app.answers import Fault, FaultError
from pipeline.serve_app.online import Token, token_of
from pipeline.serve_app.service import Service, too_many
from pipeline.serve_app.web_answer import json_bytes
from pipeline.serve_app.web_body import asked_of, batch_of, json_of
from pipeline.serve_app.web_gate import RequestGate
from pipeline.serve_app.web_models import BatchAnswer, Health, OutcomeShape, SchemaList
from pipeline.serve_app.web_page import page
from pipeline.serve_app.web_told import bodies, responses

T = TypeVar("T")

EXTRACT, BATCH, SCHEMAS, METRICS, HEALTH, OPENAPI, DOCS = (
    "/v1/extract",
    "/v1/extract:batch",
    "/v1/schemas",
    "/metrics",
    "/healthz",
    "/openapi.json",
    "/docs",
)


def build_web(service: Service, token: Token | None = None) -> FastAPI:
    """The application. Its token is read from the environment unless one is given.

    Raises:
        JobFileError: there is no token although one is asked for.
    """
    token = token or token_of(service.online)
    app = FastAPI(
        title="Gristmill",
        version="1",
        description="Documents in, records out: each as a schema has it, or with the reasons why not.",
        docs_url=None,
        redoc_url=None,
        openapi_url=OPENAPI,
        redirect_slashes=False,
    )
    _add_routes(app, service, [Depends(HTTPBearer(auto_error=False))] if token.asked else [])
    _add_public(app, service)
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_exception_handler(FaultError, _faulty)

    def full() -> Fault | None:
        return too_many(service.admission.retry_after()) if service.admission.full else None

    app.add_middleware(
        RequestGate,
        config=service.online,
        token=token,
        public=frozenset({HEALTH, OPENAPI, DOCS}),
        with_body=frozenset({EXTRACT, BATCH}),
        full=full,
        refused=service.counts.answer,
    )
    return app


def _add_routes(app: FastAPI, service: Service, secured: list[Any]) -> None:
    """The routes that ask for the token where there is one."""

    async def extract(request: Request) -> Response:
        """Extract one document."""
        asked = asked_of(json_of(await request.body()))
        answer = await _unless_gone(request, service.extract(asked))
        return _json(answer.to_json(), answer.http, answer.retry_after)

    async def extract_batch(request: Request) -> Response:
        """Extract several documents; the answer has one row for each, with the code that it would have had alone."""
        asked = batch_of(json_of(await request.body()), service.online.batch_documents)
        answers = await _unless_gone(request, service.batch(asked))
        return _json({"results": [answer.row() for answer in answers]})

    async def schemas() -> Response:
        """The registered schemas."""
        return _json({"schemas": service.schema_rows()})

    async def metrics() -> Response:
        """What this process answered so far, for Prometheus."""
        return Response(service.counts.text(), headers={"content-type": CONTENT_TYPE})

    always = (500, 401) if secured else (500,)
    with_body = (*always, 400, 408, 413, 415, 422, 429)
    one, many = bodies(service)
    told = responses(*with_body, 404, 503, 504, either=True)
    app.post(EXTRACT, responses=told, openapi_extra=one, response_model=OutcomeShape, dependencies=secured)(extract)
    told = responses(*with_body)
    app.post(BATCH, responses=told, openapi_extra=many, response_model=BatchAnswer, dependencies=secured)(extract_batch)
    app.get(SCHEMAS, responses=responses(*always), response_model=SchemaList, dependencies=secured)(schemas)
    app.get(METRICS, responses=responses(*always), response_class=PlainTextResponse, dependencies=secured)(metrics)


def _add_public(app: FastAPI, service: Service) -> None:
    """The routes that ask for no token."""

    async def healthz() -> Response:
        """Whether the endpoint and its engine answer."""
        return _json({"status": "ok"}) if service.healthy else _json({"status": "unavailable"}, 503)

    async def docs() -> Response:
        """This page."""
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(page(app.openapi()), media_type="text/html", headers=headers)

    told = responses(500)
    told[503] = {"model": Health, "description": "The engine was gone just now"}
    app.get(HEALTH, responses=told, response_model=Health)(healthz)
    app.get(DOCS, include_in_schema=False)(docs)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to. If the client leaves before, the work is cancelled, and its cancellation waited for.

    Raises:
        FaultError: the client left; nobody reads this.
    """
    task = asyncio.ensure_future(work)
    left = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise FaultError(Fault(499, "client_gone", "the client left"))
    finally:
        for one in (task, left):
            one.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _faulty(_request: Request, error: Exception) -> Response:
    fault = error.fault if isinstance(error, FaultError) else Fault(500, "internal", "a fault of this program")
    return _json(fault.to_json(), fault.http, fault.retry_after)


async def _unrouted(_request: Request, error: Exception) -> Response:
    """No such path, or not by this method."""
    status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
    code, words = {
        404: ("not_found", f"there is nothing here; {OPENAPI} lists what there is"),
        405: ("method_not_allowed", f"not by this method; {OPENAPI} lists what there is"),
    }.get(status, ("http", "the request cannot be served"))
    response = _json(Fault(status, code, words).to_json(), status)
    response.headers.update(headers or {})
    return response


def _json(value: Any, status: int = 200, retry_after: int | None = None) -> Response:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Response(json_bytes(value), status, headers, "application/json")
