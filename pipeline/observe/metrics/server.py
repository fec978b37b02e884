"""The metrics of a run under way, over HTTP, from the process that drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.errors import JobFileError
from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.numbers import Numbers
from pipeline.observe.metrics.text import registry_of

LOCALHOST = "127.0.0.1"
MAX_PORT = 65535


@contextmanager
def serving(address: str | None, say: Callable[[str], None]) -> Iterator[MetricsServer | NoServer]:
    """Serve, if there is an address, for as long as the context is open, and say where.

    Raises:
        JobFileError: as `MetricsServer`.
    """
    if address is None:
        yield NoServer()
        return
    server = MetricsServer(address)
    say(f"metrics: {server.url}")
    try:
        yield server
    finally:
        server.close()


class NoServer:
    """Stands in where nobody asks for metrics."""

    def show(self, numbers: Numbers) -> None:
        """Nothing happens."""


class MetricsServer:
    """Serves the latest numbers at `/metrics`; an empty page before the first."""

    def __init__(self, address: str) -> None:
        """`address` is `PORT` of this machine alone, or `HOST:PORT`; port 0 takes a free one.

        Raises:
            JobFileError: it is no address, or cannot be listened on.
        """
        from prometheus_client import start_http_server

        host, _, port = address.rpartition(":")
        host = host.strip("[]") or LOCALHOST
        if not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
            raise JobFileError(f"--metrics-port: {address!r} is no port, nor HOST:PORT, such as 9400 or 0.0.0.0:9400.")
        self._numbers: Numbers | None = None
        try:
            started: Any = start_http_server(int(port), host, registry_of(self._families))
        except OSError as error:
            raise JobFileError(
                f"--metrics-port: {host}:{port} cannot be listened on ({error}). Is another run there? Give another "
                "port, or an address of this machine."
            ) from error
        self._server, self._thread = started
        self.port: int = self._server.server_port
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"

    def show(self, numbers: Numbers) -> None:
        """What is served from now on."""
        self._numbers = numbers

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _families(self) -> Any:
        return families_of(self._numbers) if self._numbers is not None else {}
