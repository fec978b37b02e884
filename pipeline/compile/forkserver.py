"""The loop of the zygote: one forked process per job, watched and killed at its limit.

From the sandbox: lines of JSON, `{id, job, payload, seconds, memory_mib, cpu_seconds}` or `{cancel: [id, …]}`.
To the sandbox: a line `{id, kind, words, seconds, peak_mib, size}` followed by `size` bytes, the JSON of the job's
value; before all others `{ready: true, threads}` or `{failed: words}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import selectors
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.compile.forked import MAX_WORDS, Job, become_job, parts

MAX_ANSWER = 64 << 20
"""Bytes that one job may answer."""

_CHUNK = 1 << 20
_TICK = 1.0
"""Seconds between two looks at whether the parent is still there, when nothing else happens."""
_NEAR = 16
"""MiB from the memory limit that count as having reached it: two thread stacks."""
_CLOCK_AND_PLACE = re.compile(r"(?m)^\[[\d:]+\] \S+:\d+: ")
"""What xgrammar's log puts before its words; they would differ from run to run."""
_NO_MEMORY = ("memory allocation of", "bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")


@dataclass(slots=True)
class _Child:
    """A job that runs, seen from the zygote."""

    pid: int
    request: Mapping[str, Any]
    answer_fd: int
    printed_fd: int
    started: float
    answer: bytearray = field(default_factory=bytearray)
    printed: bytes = b""
    ended: tuple[str, str] | None = None
    """(kind, words) if the zygote killed it."""

    @property
    def deadline(self) -> float:
        return self.started + float(self.request["seconds"])

    def kill(self, kind: str, words: str) -> None:
        self.ended = self.ended or (kind, words)
        # It may have ended by itself a moment ago; its answer may still stand in the pipe.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class ForkServer:
    """Serves until the other end of `inbox` closes or the parent process is gone."""

    def __init__(self, inbox: int, outbox: int) -> None:
        self._inbox, self._outbox = inbox, outbox
        self._parent = os.getppid()
        self._lines = bytearray()
        self._frames = bytearray()
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._open = True

    def failed(self, words: str) -> None:
        """Tell the sandbox that nothing can be served."""
        os.write(self._outbox, json.dumps({"failed": words[:MAX_WORDS]}).encode() + b"\n")

    def run(self, jobs: Mapping[str, Job]) -> None:
        """Fork a process for each request; returns when there can be no more requests, with no process left."""
        for descriptor in (self._inbox, self._outbox):
            os.set_blocking(descriptor, False)
        self._selector.register(self._inbox, selectors.EVENT_READ)
        self._say({"ready": True, "threads": _threads()}, b"")
        try:
            while self._open and os.getppid() == self._parent:
                self._step(jobs)
        except BrokenPipeError:
            self._open = False  # the sandbox is gone
        finally:
            for child in self._children.values():
                child.kill("error", "the sandbox was closed")
                os.waitpid(child.pid, 0)

    def _step(self, jobs: Mapping[str, Job]) -> None:
        now = time.monotonic()
        wait = min([_TICK, *(child.deadline - now for child in self._children.values() if not child.ended)])
        for key, _ in self._selector.select(max(0.0, wait)):
            if key.fd == self._inbox:
                self._read_requests(jobs)
            elif key.fd == self._outbox:
                self._write()
            elif key.data.pid in self._children:  # else it was reaped in this round, and its descriptors are others'
                self._read_child(key.data, key.fd)
        now = time.monotonic()
        for child in self._children.values():
            if now >= child.deadline and not child.ended:
                words = f"killed after {child.request['seconds']} s"
                if _growth(child.pid) > child.request["memory_mib"] - _NEAR:
                    # Libraries hang where they cannot start a thread; more time would not have helped.
                    child.kill("memory", f"{words}, at the limit of {child.request['memory_mib']} MiB")
                child.kill("timeout", words)

    def _read_requests(self, jobs: Mapping[str, Job]) -> None:
        chunk = os.read(self._inbox, _CHUNK)
        self._open = bool(chunk)
        self._lines += chunk
        if b"\n" not in chunk:
            return
        *lines, self._lines = self._lines.split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "cancel" in request:
                for child in self._children.values():
                    if child.request["id"] in request["cancel"]:
                        child.kill("error", "cancelled")
            else:
                self._fork(request, jobs.get(request["job"]))

    def _fork(self, request: Mapping[str, Any], job: Job | None) -> None:
        answer, printed = os.pipe(), os.pipe()
        unwanted = [self._inbox, self._outbox, answer[0], printed[0]]
        unwanted += [fd for child in self._children.values() for fd in (child.answer_fd, child.printed_fd)]
        zygote, started = os.getpid(), time.monotonic()
        pid = os.fork()
        if pid == 0:
            become_job(request, job, zygote, (answer[1], printed[1]), unwanted)
        # Here too: whoever comes first, so that a kill never misses the group.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        child = _Child(pid, request, answer[0], printed[0], started)
        self._children[pid] = child
        for ours, theirs in (answer, printed):
            os.close(theirs)
            os.set_blocking(ours, False)
            self._selector.register(ours, selectors.EVENT_READ, child)

    def _read_child(self, child: _Child, descriptor: int) -> None:
        chunk = os.read(descriptor, _CHUNK)
        if descriptor == child.printed_fd:
            child.printed = (child.printed + chunk)[-4 * MAX_WORDS :]
            if not chunk:
                self._selector.unregister(descriptor)
            return
        child.answer += chunk
        if len(child.answer) > MAX_ANSWER:
            child.kill("error", f"the answer is larger than {MAX_ANSWER >> 20} MiB")
            child.answer.clear()
        if not chunk:
            self._reap(child)

    def _reap(self, child: _Child) -> None:
        """The child closed its answer, which only its end does: tell the sandbox how it went."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # what it may have started; its own status stands already
        _, status, usage = os.wait4(child.pid, 0)
        with contextlib.suppress(BlockingIOError):  # a process outside its group may still hold the pipe
            while chunk := os.read(child.printed_fd, _CHUNK):
                child.printed = (child.printed + chunk)[-4 * MAX_WORDS :]
        for descriptor in (child.answer_fd, child.printed_fd):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
            os.close(descriptor)
        del self._children[child.pid]
        base, head, value = parts(bytes(child.answer))
        peak = max(0.0, usage.ru_maxrss / 1024 - base) if base else 0.0
        kind, words = _judged(child, status, head, peak)
        if kind == "timeout":  # little of it points to a machine that was busy with other things
            words = f"{words}; {usage.ru_utime + usage.ru_stime:.1f} s of processor time were used"
        seconds = time.monotonic() - child.started
        self._say(
            {"id": child.request["id"], "kind": kind, "words": words, "seconds": seconds, "peak_mib": peak}, value
        )

    def _say(self, head: Mapping[str, Any], value: bytes) -> None:
        if not self._frames:
            self._selector.register(self._outbox, selectors.EVENT_WRITE)
        self._frames += json.dumps({**head, "size": len(value)}).encode() + b"\n" + value

    def _write(self) -> None:
        del self._frames[: os.write(self._outbox, self._frames[:_CHUNK])]
        if not self._frames:
            self._selector.unregister(self._outbox)


def _threads() -> int:
    """How many threads this process has, those of libraries included; 0 where the system does not tell."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


def _growth(pid: int) -> float:
    """MiB of address space that a fork has beyond this process; 0 where the system does not tell."""
    with contextlib.suppress(OSError, IndexError):
        sizes = [int(Path(f"/proc/{who}/statm").read_text().split()[0]) for who in (pid, "self")]
        return (sizes[0] - sizes[1]) * resource.getpagesize() / (1 << 20)
    return 0.0


def _judged(child: _Child, status: int, head: Mapping[str, str], peak: float) -> tuple[str, str]:
    """(kind, words) of a process that has ended, from its own answer if that is whole."""
    printed = _CLOCK_AND_PLACE.sub("", child.printed.decode("utf-8", "replace"))[-MAX_WORDS:].strip()
    if head:
        return head["kind"], head["words"] or printed
    after = f"; it printed: {printed}" if printed else ""
    if child.ended:
        return child.ended[0], child.ended[1] + after
    if not os.WIFSIGNALED(status):
        return "crash", f"exited with status {os.waitstatus_to_exitcode(status)} and without an answer{after}"
    number = os.WTERMSIG(status)
    words = f"killed by {signal.Signals(number).name}"
    if number == signal.SIGXCPU:
        return "timeout", f"killed after {child.request['cpu_seconds']} s of processor time{after}"
    if number == signal.SIGKILL:
        return "memory", f"{words}, not by the sandbox: most likely the machine ran out of memory{after}"
    allowed = child.request["memory_mib"]
    starved = any(sign in printed for sign in _NO_MEMORY) or peak > allowed - _NEAR
    limit = f" at the limit of {allowed} MiB" if starved else ""
    return "memory" if starved else "crash", words + limit + after
