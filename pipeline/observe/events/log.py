"""Log: takes events and has a thread write them. Whoever calls it waits for nothing, and nothing is raised to him."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

from pipeline.jobplacement import EventsConfig
from pipeline.observe.events.catalogue import KINDS
from pipeline.observe.events.line import Hook, as_line, redactor
from pipeline.observe.events.outcomes import events_of
from pipeline.observe.events.segments import Segments
from pipeline.records import Outcome

QUEUE = 10_000
"""Events that wait to be written. Beyond, they are lost, and counted: a disk that hangs must not hold a job up."""

FLUSH_SECONDS = 2.0
_MAX_WORDS = 300
_Waiting = tuple[dict[str, Any], dict[str, Any]] | threading.Event
"""An event with its text, or who waits until all before are written."""


class Log:
    """The events of one process. `origin` are the members of each line that tell job, run and process. `tell` is
    called, in any thread, with what `trouble` gives, for who does not ask."""

    def __init__(
        self,
        config: EventsConfig,
        origin: dict[str, str],
        hook: Hook | None = None,
        tell: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self.on = config.path is not None
        self._text = config.text
        self._origin = origin
        self._hook, self._tell = hook, tell
        self._redact: Callable[[str], str] = redactor(config.redact) if self.on else str
        stem = f"{origin['job']}-{origin['run'] or 'no-run'}-{origin['process']}"
        self._segments = Segments(Path(config.path or "."), stem, config.max_bytes, config.keep)
        self._queue: Queue[_Waiting] = Queue(QUEUE)
        self._seq = itertools.count(1)
        self._lost = 0
        self._why = ""
        self._lock = threading.Lock()
        self._told = ""
        self._late: threading.Event | None = None
        self._ended = threading.Event()
        if self.on:
            threading.Thread(target=self._run, name="events", daemon=True).start()

    def write(self, name: str, text: dict[str, Any] | None = None, **members: Any) -> None:
        """An event happened. `text` are members that are written only if the job asks for text."""
        if self.on:
            self._put(name, members, text or {})

    def outcome(self, outcome: Outcome) -> None:
        """A document came to its end."""
        if not self.on:
            return
        try:
            for event in events_of(outcome):
                self._put(event.name, event.members, event.text)
        except Exception as error:  # a fault of ours must not cost the document that it is about
            self._lose(error)

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all that happened before is written; whether that is so. Who waited in vain is not made to wait
        again before it is."""
        if not self.on:
            return True
        if self._late is not None and not self._late.is_set():
            return False
        done = threading.Event()
        try:
            self._queue.put_nowait(done)
        except Full:
            return False
        self._late = None if done.wait(seconds) else done
        if self._late is not None:
            words = f"events are late, lost if the process ends before (the work goes on): {self._origin['process']}"
            with self._lock:
                self._told = self._told or words
        return self._late is None

    def close(self) -> None:
        """Write what waits, and write nothing more."""
        if self.on:
            self.flush()
            self.on = False
            self._ended.set()

    def trouble(self) -> str:
        """Why events are lost or late, once for each time that this begins; "" if they are not, or it was told."""
        with self._lock:
            told, self._told = self._told, ""
        return told

    def _put(self, name: str, members: dict[str, Any], text: dict[str, Any]) -> None:
        event = {"time": _now(), "event": name, "level": KINDS[name].level, **self._origin, **members}
        event["seq"] = next(self._seq)
        try:
            self._queue.put_nowait((event, text))
        except Full as error:
            self._lose(error)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                waiting = self._queue.get(timeout=1.0)
            except Empty:
                continue
            if isinstance(waiting, threading.Event):
                self._confess()
                waiting.set()
            elif self._append(*waiting):
                self._confess()
        self._segments.close()

    def _append(self, event: dict[str, Any], text: dict[str, Any]) -> bool:
        """Write one event; whether it came so far that others may, too."""
        try:
            whole = {**event, **text} if self._text else event
            made = self._hook(whole) if self._hook else whole
            if made is not None:
                self._segments.append(as_line(made, self._redact))
        except Exception as error:  # a full disk, a hook that raises: the job goes on
            self._lose(error)
            return False
        return True

    def _lose(self, error: Exception) -> None:
        where = f"{self._origin['process']}: {type(error).__name__}: {error}"[:_MAX_WORDS]
        words = f"events are lost (the work goes on): {where}"
        with self._lock:
            first = not self._lost
            self._why = type(error).__name__
            self._told = words if first else self._told
            self._lost += 1
        if first:
            self._tell(words)

    def _confess(self) -> None:
        """Say in the log itself what it lacks."""
        with self._lock:
            lost, self._lost = self._lost, 0
        if not lost:
            return
        event = {"time": _now(), "event": "events_lost", "level": KINDS["events_lost"].level, **self._origin}
        members = {"count": lost, "error": self._why, "seq": next(self._seq)}
        try:
            self._segments.append(as_line({**event, **members}, self._redact))
        except OSError:
            with self._lock:
                self._lost += lost


OFF = Log(EventsConfig(), {"job": "", "run": "", "process": ""})
"""Writes nothing."""


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
