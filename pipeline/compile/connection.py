"""The zygote process seen from the sandbox: starting it, bytes to it, frames from it, ending it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pipeline
from pipeline.errors import EngineError

START_SECONDS = 180.0
"""How long loading the libraries may take."""

_ENVIRONMENT = {
    # A fork keeps one thread: none may be started while libraries load.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Each arena reserves 64 MiB of the address space that the memory limit counts.
    "MALLOC_ARENA_MAX": "2",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
_WRITE = select.PIPE_BUF
"""Bytes that a pipe takes without blocking once it says that it is writable."""
_READ = 1 << 20
_STUCK = 15.0


class LostError(Exception):
    """The zygote is gone or does not react. The message says which and holds its last words."""


class Zygote:
    """A running zygote. It ends with `close`, and by itself when this process is gone."""

    def __init__(self, model: str | None, modules: Iterable[str]) -> None:
        """Start it and wait until it is ready. `model` is a directory or a hub name.

        Raises:
            EngineError: it did not come up.
        """
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._unread = bytearray()
        options = [] if model is None else ["--model", model]
        for module in modules:
            options += ["--jobs", module]
        # -P: a file of the working directory must not stand in for a library.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.compile.zygote", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | _ENVIRONMENT | {"PYTHONPATH": _search_path()},
            start_new_session=True,  # Ctrl-C is this process's business: it closes the pipe
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._inbox, self._outbox = self._process.stdin, self._process.stdout
        try:
            self.threads = self._greeted()
            """Threads it had after loading (0: unknown); more than 1 would be lost in its forks."""
        except BaseException:
            self._process.kill()  # while it loads it does not look at its input
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Raises LostError if it is gone or takes nothing."""
        poll, rest = select.poll(), memoryview(line)
        poll.register(self._inbox, select.POLLOUT)
        while rest:
            if not poll.poll(_STUCK * 1000):
                raise LostError(f"it takes no requests{self._last_words()}")
            try:
                rest = rest[os.write(self._inbox.fileno(), rest[:_WRITE]) :]
            except BrokenPipeError as error:
                raise LostError(f"it ended{self._last_words()}") from error

    def receive(self, seconds: float) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The (head, body) of each frame that is whole within one reading, for which it waits `seconds` at most.

        Raises:
            LostError: it is gone.
        """
        poll = select.poll()
        poll.register(self._outbox, select.POLLIN)
        if poll.poll(seconds * 1000):
            chunk = os.read(self._outbox.fileno(), _READ)
            if not chunk:
                raise LostError(f"it ended{self._last_words()}")
            self._unread += chunk
        while (end := self._unread.find(b"\n") + 1) > 0:
            head = json.loads(self._unread[:end])
            last = end + head.get("size", 0)
            if len(self._unread) < last:
                return
            body = bytes(self._unread[end:last])
            del self._unread[:last]
            yield head, body

    def close(self) -> None:
        """End it and all its jobs."""
        self._inbox.close()  # upon which it kills its jobs and ends
        self._outbox.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its jobs die with it
            self._process.wait()
        self._log.close()

    def _greeted(self) -> int:
        deadline = time.monotonic() + START_SECONDS
        try:
            while time.monotonic() < deadline:
                for head, _ in self.receive(1.0):
                    if "failed" in head:
                        raise EngineError(f"the compile sandbox did not start: {head['failed']}")
                    return int(head["threads"])
        except LostError as error:
            raise EngineError(f"the compile sandbox did not start: {error}") from error
        raise EngineError(f"the compile sandbox did not start within {START_SECONDS:g} s{self._last_words()}")

    def _last_words(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), 2000, max(0, size - 2000)).decode("utf-8", "replace").strip()
        return f"; it printed: {tail}" if tail else ""


def _search_path() -> str:
    """What this process imports from, and where this package lies."""
    return os.pathsep.join([*filter(None, sys.path), str(Path(pipeline.__file__).resolve().parents[1])])
