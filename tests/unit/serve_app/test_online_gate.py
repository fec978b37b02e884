"""The gate without a network: tokens, headers, sizes, what is JSON and what is a request."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from serving import HEADERS, JSON, ONE, SECRET, Given, client_of, service_of

from pipeline.errors import JobFileError
from pipeline.serve_app.online import OnlineConfig, Token, token_of
from pipeline.serve_app.web import build_web


def sent(method: str = "POST", path: str = "/v1/extract", **values: Any) -> Any:
    token, online = values.pop("token", SECRET), values.pop("online", {})

    async def ask() -> Any:
        async with client_of(service_of(Given(), **online), token=token) as client:
            client.headers.update(values.pop("more", {}))
            return await client.request(method, path, **values)

    return asyncio.run(ask())


def posted(content: Any, **values: Any) -> Any:
    return sent(content=content, headers={**JSON, **values.pop("headers", {})}, **values)


def error(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"error"} and answer.json()["error"]["message"]
    return answer.status_code, answer.json()["error"]["code"]


GIVEN = [
    "",
    "Bearer",
    "Bearer ",
    f"Basic {SECRET}",
    SECRET,
    f"Bearer {SECRET}x",
    f"Bearer {SECRET[:-1]}",
    "Bearer \xff",
]
PATHS = ["/v1/extract", "/v1/extract:batch", "/v1/schemas", "/metrics", "/nothing", "/healthz/", "//healthz", "/docs/x"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_served(method: str) -> None:
    async def story() -> None:
        async with client_of(service_of(Given())) as client:
            for path in PATHS:
                for given in GIVEN:
                    got = await client.request(method, path, headers={"authorization": given.encode("latin-1")})
                    assert error(got) == (401, "unauthorized"), (path, given)
                    assert got.headers["www-authenticate"].startswith("Bearer")

    asyncio.run(story())


def test_two_tokens_are_none() -> None:
    headers = [("authorization", HEADERS["authorization"]), ("authorization", "Bearer x")]
    assert sent("GET", "/v1/schemas", headers=headers, more={}).status_code == 401


def test_the_scheme_may_be_written_in_any_case() -> None:
    assert sent("GET", "/v1/schemas", headers={"authorization": f"bearer {SECRET}"}).status_code == 200


def test_an_open_endpoint_asks_for_no_token() -> None:
    assert sent("GET", "/v1/schemas", headers={"authorization": ""}, token=None).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/docs"])
def test_health_and_documentation_need_no_token(path: str) -> None:
    assert sent("GET", path, headers={"authorization": ""}).status_code == 200


def test_the_token_comes_from_the_environment_and_is_never_shown(caplog: Any) -> None:
    with pytest.raises(JobFileError, match="GRISTMILL_TOKEN"):
        token_of(OnlineConfig(), {})
    with pytest.raises(JobFileError, match="at least"):
        token_of(OnlineConfig(), {"GRISTMILL_TOKEN": "short"})
    with pytest.raises(JobFileError, match="open"):
        token_of(OnlineConfig(open=True), {"GRISTMILL_TOKEN": SECRET})
    with pytest.raises(JobFileError, match="at least") as refused:
        token_of(OnlineConfig(token_env="MINE"), {"MINE": "a token with blanks in it"})
    token = token_of(OnlineConfig(token_env="MINE"), {"MINE": SECRET})
    with caplog.at_level(logging.DEBUG):
        assert sent("GET", "/v1/schemas").status_code == 200
    assert SECRET not in f"{token!r} {token} {refused.value} {caplog.text}"
    assert not token_of(OnlineConfig(open=True), {}).asked


def test_a_request_keeps_its_id_or_is_given_one() -> None:
    assert sent("GET", "/healthz", headers={"x-request-id": "a.b-c_9"}).headers["x-request-id"] == "a.b-c_9"
    for bad in ("", "a b", "x" * 65, "a\tb"):
        made = sent("GET", "/healthz", headers={"x-request-id": bad}).headers["x-request-id"]
        assert made != bad and made.isalnum()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff{}", "UTF-8"),
        (json.dumps(ONE).encode("utf-16"), "UTF-8"),
        (b'{"text": "a", "text": "b", "schema": "receipt@1"}', "more than once"),
        (b'{"text": "a", "schema": {"minimum": NaN}}', "NaN"),
        (b'{"text": "a", "schema": {"minimum": -Infinity}}', "Infinity"),
        (b'{"text": "a", "schema": {"minimum": 1e999}}', "double"),
        (b'{"text": "a", "schema": {"minimum": ' + b"9" * 5000 + b"}}", "JSON"),
        (b'{"text": "a", "schema": ' + b'{"a":' * 100_000, "deep"),
        (b"[" * 500_000, "deep"),
    ],
)
def test_what_is_not_quite_json_is_400(body: bytes, why: str) -> None:
    got = posted(body)
    assert error(got) == (400, "bad_json")
    assert why in got.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {},
        {"text": "a"},
        {"schema": "receipt@1"},
        {**ONE, "text": 5},
        {**ONE, "text": None},
        {**ONE, "schema": ["receipt@1"]},
        {**ONE, "schema": True},
        {**ONE, "schema": "x" * 1000},
        {**ONE, "id": ""},
        {**ONE, "id": 7},
        {**ONE, "id": "x" * 1000},
        {**ONE, "txet\ud800": "a"},
    ],
)
def test_a_body_of_another_shape_is_422(body: Any) -> None:
    assert error(posted(json.dumps(body))) == (422, "bad_request")


def test_a_body_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    body = json.dumps(ONE).encode().ljust(2048)
    assert posted(body, online={"max_body_bytes": 2048}).status_code == 200
    assert error(posted(body + b" ", online={"max_body_bytes": 2048})) == (413, "too_large")


def test_a_body_that_declares_nothing_is_cut_at_the_limit() -> None:
    taken = 0

    async def chunks() -> Any:
        nonlocal taken
        for _ in range(10_000):
            taken += 1000
            yield b" " * 1000

    assert error(posted(chunks(), online={"max_body_bytes": 5000})) == (413, "too_large")
    assert taken <= 30_000  # what is thrown away after the refusal included


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content-type": "text/plain"}, (415, "unsupported_media_type")),
        ({"content-type": "application/x-www-form-urlencoded"}, (415, "unsupported_media_type")),
        ({"content-encoding": "gzip"}, (415, "unsupported_media_type")),
        ({"content-length": "-1"}, (400, "bad_header")),
        ({"content-length": "9" * 5000}, (400, "bad_header")),
        ({"content-length": "99999999"}, (413, "too_large")),
        ({"content-length": "3"}, (400, "bad_body")),
    ],
)
def test_headers_that_speak_against_the_body(headers: Any, expected: Any) -> None:
    assert error(posted(json.dumps(ONE), headers=headers)) == expected


def test_json_with_a_charset_is_json() -> None:
    assert posted(json.dumps(ONE), headers={"content-type": "Application/JSON; charset=utf-8"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/v1/extract", (405, "method_not_allowed")),
        ("POST", "/v1/schemas", (405, "method_not_allowed")),
        ("POST", "/v1/extract/", (404, "not_found")),
        ("GET", "/docs/oauth2-redirect", (404, "not_found")),
    ],
)
def test_other_paths_and_methods_have_the_same_shape_of_error(method: str, path: str, expected: Any) -> None:
    got = sent(method, path)
    assert error(got) == expected
    assert ("allow" in got.headers) == (expected[0] == 405)


def test_the_page_loads_nothing_and_names_every_route() -> None:
    got = sent("GET", "/docs")
    assert "<script" not in got.text and "http" not in got.text.split("</head>")[1].replace("http code", "")
    assert "default-src 'none'" in got.headers["content-security-policy"]
    assert all(path in got.text for path in ("/v1/extract", "/v1/extract:batch", "/v1/schemas", "/healthz"))


def test_mounted_under_a_prefix_it_asks_for_the_token_all_the_same() -> None:
    app = build_web(service_of(Given()), Token(SECRET))
    codes = []

    async def ask(path: str, root: str) -> None:
        scope = {"type": "http", "method": "GET", "path": path, "root_path": root, "query_string": b"", "headers": []}

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            codes.extend([message["status"]] if "status" in message else [])

        await app({**scope, "http_version": "1.1", "scheme": "http", "client": None, "server": None}, receive, send)

    for path, root in (("/api/healthz", "/api"), ("/api/v1/schemas", "/api"), ("/healthz/v1/schemas", "/healthz")):
        asyncio.run(ask(path, root))
    assert codes == [200, 401, 401]
