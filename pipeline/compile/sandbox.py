"""Run job functions in processes that can be killed: limits on time and memory, crashes that stay where they are.

One zygote process (`zygote.py`) loads the libraries once; every job is a fork of it. No thread is used and nothing is
inherited but the environment and `sys.path`, so it works under Ray, pytest and in threads.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Literal

from pipeline.compile.connection import LostError, Zygote
from pipeline.engines import models
from pipeline.errors import EngineError

_GRACE = 15.0
"""Seconds beyond a job's limit after which it is the zygote that hangs."""
_TRIES = 2
_AHEAD = 16
"""Jobs per worker that are taken while the result of the first one is still out."""
_LOOK = 0.1
"""Seconds that one caller waits for answers before it lets another thread have a turn."""

Kind = Literal["ok", "error", "timeout", "crash", "memory"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may use."""

    seconds: float = 10.0
    """Wall clock."""
    memory_mib: int = 2048
    """Address space beyond what the loaded libraries take, at least 256: a compiler's threads reserve some 100."""
    cpu_seconds: int | None = None
    """Processor time of all its threads together."""

    def __post_init__(self) -> None:
        if (
            not 0 < self.seconds < 86400
            or self.memory_mib < 256
            or (self.cpu_seconds is not None and self.cpu_seconds < 1)
        ):
            raise ValueError(f"{self}: give positive times below a day, and 256 MiB or more")


@dataclass(frozen=True, slots=True)
class Job:
    """A job function by its name in the zygote's table, and what it is given (JSON)."""

    job: str
    payload: Any
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Result:
    """How a job ended."""

    kind: Kind
    """`error`: the function raised; `crash`: a signal, an exit, a panic; `timeout`, `memory`: a limit was hit."""
    value: Any
    """What the function returned; None unless `ok`."""
    words: str
    """The message of the error, or what killed it; for the others what it printed (last 2,000 characters)."""
    seconds: float
    peak_mib: float
    """How far its resident memory grew at most."""


class Sandbox:
    """A zygote and its jobs. A context manager; the zygote starts with the first job, or with `start`.

    May be used from several threads. An interrupt (Ctrl-C) ends the zygote and all jobs; so does the end of this
    process, however it ends.
    """

    def __init__(self, model: str | None, workers: int = 1, job_modules: Sequence[str] = ()) -> None:
        """`model` as in an engine config, or None for jobs that need no tokenizer; `workers` jobs run at once.

        `job_modules` are importable modules with a table `JOBS` (see `zygote.py`).
        """
        self._model = model
        self._workers = workers
        self._modules = tuple(job_modules)
        self._zygote: Zygote | None = None
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._flights: dict[int, _Flight] = {}
        self._done: dict[int, Result] = {}

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def start(self) -> Zygote:
        """Start the zygote, unless it runs, and wait until it has loaded everything.

        Raises:
            EngineError: the model is missing, or the zygote did not come up.
        """
        with self._lock:
            if self._zygote is None:
                model = None if self._model is None else models.resolve(self._model)
                self._zygote = Zygote(model, self._modules)
            return self._zygote

    def close(self) -> None:
        """End the zygote and whatever runs. The sandbox can be used again: a job starts a new zygote."""
        with self._lock:
            zygote, self._zygote = self._zygote, None
            self._flights.clear()
            if zygote is not None:
                zygote.close()

    def call(self, job: Job) -> Result:
        """Run one job.

        Raises:
            EngineError: the zygote cannot be started, or died twice under this job.
        """
        return next(self.map([job]))

    def map(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Run jobs, `workers` at once, and give their results in the order of the jobs.

        Raises:
            EngineError: the zygote cannot be started, or died twice under one of the jobs.
        """
        waiting, order = iter(jobs), deque[int]()
        try:
            while True:
                while len(order) < _AHEAD * self._workers and self._running(order) < self._workers:
                    job = next(waiting, None)
                    if job is None:
                        break
                    order.append(self._submit(job))
                if not order:
                    return
                if order[0] in self._done:
                    yield self._done.pop(order.popleft())
                else:
                    self._pump(order[0])
        finally:
            self._forget(order)

    def _running(self, order: Iterable[int]) -> int:
        return sum(key in self._flights for key in order)

    @contextmanager
    def _exchange(self) -> Iterator[None]:
        """Whatever breaks off an exchange (Ctrl-C above all) leaves half a message: only a new zygote helps then."""
        with self._lock:
            try:
                yield
            except BaseException:
                self.close()
                raise

    def _submit(self, job: Job) -> int:
        key = next(self._ids)
        request = {"id": key, "job": job.job, "payload": job.payload, **asdict(job.limits)}
        line = json.dumps(request).encode() + b"\n"
        with self._exchange():
            zygote = self.start()
            self._flights[key] = flight = _Flight(line, job.limits.seconds)  # its time begins when the zygote is up
            try:
                zygote.send(flight.request)
            except LostError as lost:
                self._revive(lost)
        return key

    def _pump(self, key: int) -> None:
        """Wait a moment for answers; those of other callers are kept for them."""
        with self._exchange():
            if key in self._done:
                return
            if key not in self._flights or self._zygote is None:
                raise EngineError("the compile sandbox was closed while a job ran in it.")
            try:
                for head, body in self._zygote.receive(_LOOK):
                    if self._flights.pop(head["id"], None):
                        self._done[head["id"]] = _result(head, body)
                if any(time.monotonic() > flight.deadline for flight in self._flights.values()):
                    raise LostError("it does not answer")
            except LostError as lost:
                self._revive(lost)

    def _forget(self, order: Iterable[int]) -> None:
        """Nobody waits for these any more."""
        with self._lock:
            running = [key for key in order if self._flights.pop(key, None)]
            for key in order:
                self._done.pop(key, None)
            if running and self._zygote is not None:
                with self._exchange(), suppress(LostError):  # the next job finds out that it is gone
                    self._zygote.send(json.dumps({"cancel": running}).encode() + b"\n")

    def _revive(self, lost: LostError) -> None:
        """A new zygote for what was under way; nothing is tried a third time."""
        flights = dict(self._flights)
        self.close()
        try:
            if any(flight.tries >= _TRIES for flight in flights.values()):
                raise lost
            zygote = self.start()
            self._flights |= flights
            for flight in flights.values():
                flight.tries += 1
                flight.deadline = time.monotonic() + flight.seconds + _GRACE
                zygote.send(flight.request)
        except LostError as again:
            raise EngineError(
                f"the process that forks the compile sandbox's jobs is lost, also after a restart: {again}. "
                "Look for what kills it (memory?); fewer workers or lower limits may help."
            ) from again


@dataclass(slots=True)
class _Flight:
    """A job that was sent and has not been answered."""

    request: bytes
    seconds: float
    tries: int = 1
    deadline: float = 0.0

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.seconds + _GRACE


def _result(head: Mapping[str, Any], body: bytes) -> Result:
    kind, value, words = head["kind"], None, head["words"]
    if kind == "ok":
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:  # a process that broke its own memory, or nests without end
            kind, words = "crash", f"its answer cannot be read: {type(error).__name__}: {error}"
    return Result(kind, value, words, head["seconds"], head["peak_mib"])
