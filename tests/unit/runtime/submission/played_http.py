"""A job server over HTTP that answers what a test says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSION = {"version": "4", "ray_version": "2.60.0", "ray_commit": "x", "session_name": "s"}
INFO = {
    "type": "SUBMISSION",
    "submission_id": "nightly-1",
    "job_id": None,
    "status": "FAILED",
    "entrypoint": "gristmill run x",
    "message": "it failed",
    "driver_exit_code": 5,
    "start_time": 1000,
    "end_time": 2000,
    "metadata": {"gristmill_job": "nightly"},
    "runtime_env": {"env_vars": {"KEY": "hunter2"}},
}
DRIVER = {"type": "DRIVER", "job_id": "01000000", "status": "RUNNING", "entrypoint": ""}


class Played(ThreadingHTTPServer):
    """Answers with (status, body) by path; a float is how long it says nothing first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, Any]] = {"/api/version": (200, VERSION)}
        self.silent = 0.0
        self.headers: list[dict[str, str]] = []
        self.bodies: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Played

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.headers.append(dict(self.headers))
        if self.command == "POST" and body:
            self.server.bodies.append(json.loads(body))
        status, answer = self.server.answers.get(self.path, (200 if self.command == "PUT" else 404, "no such thing"))
        if self.path != "/api/version":
            time.sleep(self.server.silent)
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        with contextlib.suppress(BrokenPipeError):  # a client that did not wait
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, format: str, *args: Any) -> None: ...


@contextlib.contextmanager
def playing() -> Iterator[Played]:
    """A server that answers while the block runs."""
    server = Played()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
