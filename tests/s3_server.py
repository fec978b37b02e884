"""An S3 server over loopback (moto's, with the real protocol), and a proxy before it that loses answers."""

from __future__ import annotations

import http.client
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from pipeline.runtime.store import Store, open_store

SECRET = "not-to-be-seen"
# What happens to a request: its method and path give "" (it passes), "lose" (it takes effect, and the connection closes
# without an answer), "cut" (the answer breaks off in its body), or a status and the code of an error.
Fault = Callable[[str, str], str]


@lru_cache(maxsize=1)
def endpoint() -> str:
    """The URL of the server, which is started once and ends with the process."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app, one = DomainDispatcherApplication(create_backend_app), Lock()

    def in_turn(environ: Any, start_response: Any) -> Any:
        with one:  # moto looks whether a key exists, and then writes it: two at once would both succeed
            return list(app(environ, start_response))

    server = make_server("127.0.0.1", 0, in_turn, threaded=True, request_handler=MotoRequestHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def environment(url: str = "") -> dict[str, str]:
    """The variables with which boto3 and pyarrow reach it."""
    return {
        "AWS_ENDPOINT_URL": url or endpoint(),
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def new_bucket() -> str:
    """The name of an empty bucket."""
    name = f"bucket-{uuid.uuid4().hex}"
    connection = http.client.HTTPConnection(urlsplit(endpoint()).netloc)
    connection.request("PUT", f"/{name}", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=a/b/us-east-1/s3/c"})
    assert connection.getresponse().status == 200
    return name


@contextmanager
def stores(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Store]]:
    """A function that makes a store in an empty bucket, reached through a proxy if a fault is given."""
    stack = ExitStack()

    def make(fault: Fault | None = None) -> Store:
        url = stack.enter_context(faulty(fault)) if fault else ""
        for name, value in environment(url).items():
            monkeypatch.setenv(name, value)
        return open_store(f"s3://{new_bucket()}/some%20where/run=1")

    with stack:
        yield make


@contextmanager
def faulty(fault: Fault) -> Iterator[str]:
    """The URL of a proxy to the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Proxy,), {"fault": staticmethod(fault)}))
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Proxy(BaseHTTPRequestHandler):
    fault: Fault
    protocol_version = "HTTP/1.1"  # answers "Expect: 100-continue", which botocore would wait a second for

    def do_GET(self) -> None:
        self.close_connection = True
        fault = self.fault(self.command, self.path)
        if fault[:1].isdigit():
            status, code = fault.split()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(int(status), f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode(), {})
            return
        status, headers, body = self._forward()
        if fault == "lose":
            return
        headers = {"Content-Length": str(len(body)), **headers} if self.command != "HEAD" else headers
        self._answer(int(status), body[: len(body) // 2] if fault == "cut" else body, headers)

    do_PUT = do_HEAD = do_DELETE = do_POST = do_GET

    def _forward(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(endpoint()).netloc)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "expect")}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        connection.request(self.command, self.path, body, {**headers, "Host": self.headers["Host"]})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers or {"Content-Length": str(len(body))}).items():
            if name.lower() not in ("connection", "server", "date"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...
