"""Told: follows a run from the driver for its log of events. What it does and does not write changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pipeline.errors import GristmillError, StalledError, StoppedError, Terminated
from pipeline.job import JobConfig
from pipeline.observe.events.line import Hook
from pipeline.observe.events.log import OFF, Log
from pipeline.records import STATUSES, Manifest
from pipeline.runtime.setup import log_of
from pipeline.runtime.supervise.control import Look

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of a command that a signal ended."""


class Told:
    """Stands before a run's observer, and passes on all but ("looked", Look) and ("committed", Manifest). It tells the
    observer ("warned", words) if events cannot be written, here or in another process of the run, and knows how
    much of the command's time was work."""

    def __init__(self, job: JobConfig, observe: Callable[[str, Any], None], hook: Hook | None = None) -> None:
        self.hook = hook
        self._job = job
        self._observe = observe
        self._log = OFF
        self._run: Any = None
        self._began = time.monotonic()
        self._done_before = False
        self._seen = Look({}, 0, 0, 0, 0, 0, 0.0, (), {})

    def __enter__(self) -> Told:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._safely(self._failed, error)
        self._log.close()
        self._warn(self._log.trouble())

    def __call__(self, event: str, value: Any) -> None:
        """Something happened: see `flow.Observer`."""
        if event == "looked":
            self._safely(self._looked, value)
        elif event == "committed":
            self._safely(self._committed, value)
        else:
            self._safely(self._heard, event, value)
            self._observe(event, value)
        self._warn(self._log.trouble())

    def clock(self) -> dict[str, float]:
        """`seconds` since the command began, and `asking_seconds` of them that were not its start (`Look`); empty if no
        document was put before an engine."""
        asking = self._seen.asking_seconds
        return {"seconds": self._seconds(), "asking_seconds": round(asking, 3)} if asking else {}

    def _safely(self, tell: Callable[..., None], *happened: Any) -> None:
        """What is told for the log alone must not end a run."""
        try:
            tell(*happened)
        except Exception as error:
            self._warn(f"events are lost (the work goes on): driver: {type(error).__name__}: {error}")

    def _heard(self, event: str, value: Any) -> None:
        if event == "opened":
            self._run, self._log = value, self._opened(value.identity.run_id)
        elif event == "done":
            self._done_before = True
            self._opened(value.rpartition("run=")[2]).write("run_done_before")
        elif event == "planned":
            for plan in value.by_name.values():
                if plan.refused:
                    self._log.write("schema_refused", {"message": str(plan.refused)}, schema=plan.name)
        elif event == "scanned" and self._log.on:
            done = self._run.committed_units()
            left = sum(unit.rows for unit in value.units if unit.id not in done)
            kind = self._job.engine.engine
            self._log.write("run_started", documents=value.documents, left=left, resumed=bool(done), engine=kind)

    def _opened(self, run_id: str) -> Log:
        if not self._log.on:
            self._log = log_of(self._job, run_id, "driver", self.hook)
        return self._log

    def _looked(self, look: Look) -> None:
        """What is new since the last look at the job's control."""
        before, self._seen = self._seen, look
        if look.asking_seconds and not before.asking_seconds:
            self._observe("asking", look.asking_seconds)
        for words in look.warnings[len(before.warnings) :]:
            self._warn(words)
        if (count := look.all_deaths - before.all_deaths) > 0:
            self._log.write("process_died", {"message": look.reasons[-1]} if look.reasons else None, count=count)
        if (count := look.poison - before.poison) > 0:
            self._log.write("poison_found", count=count)
        for schema in look.stopped.keys() - before.stopped.keys():
            self._log.write("schema_stopped", schema=schema, reason=look.stopped[schema])

    def _committed(self, manifest: Manifest) -> None:
        if not self._done_before:
            counts: dict[str, Any] = {status: manifest.counts.get(status, 0) for status in STATUSES}
            self._log.write("run_committed", None, documents=manifest.documents, seconds=self._seconds(), **counts)

    def _failed(self, error: BaseException) -> None:
        log = self._opened("")
        seconds = self._seconds()
        if isinstance(error, KeyboardInterrupt):
            code = TERMINATED if isinstance(error, Terminated) else INTERRUPTED
            log.write("run_interrupted", exit_code=code, seconds=seconds)
        elif isinstance(error, StoppedError | StalledError):
            name = "run_stopped" if isinstance(error, StoppedError) else "run_stalled"
            log.write(name, exit_code=error.exit_code, reason=str(error), seconds=seconds)
        else:
            code = error.exit_code if isinstance(error, GristmillError) else 1
            text = {"message": str(error)}
            log.write("run_failed", text, error=type(error).__name__, exit_code=code, seconds=seconds)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def _warn(self, words: str) -> None:
        if words:
            self._observe("warned", words)
