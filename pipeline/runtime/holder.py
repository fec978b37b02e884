"""Holder: which process holds a lease, and whether it is surely no more."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

from pipeline.runtime.output.run_record import now

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Holder:
    """A driver. `attempt` is unique; `machine` is equal only where process numbers mean the same, "" if unknown."""

    attempt: str
    host: str
    machine: str
    pid: int
    pid_started: str
    started: str

    @classmethod
    def here(cls) -> Holder:
        """This process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex, socket.gethostname(), _machine(), pid, _process_started(pid), now())

    def gone(self) -> bool:
        """Whether this is surely a process of this machine that is no more. Its number may be another's by now."""
        if not self.machine or not self.pid_started or self.machine != _machine():
            return False
        return _process_started(self.pid) != self.pid_started and not _hidden(self.pid)


def _machine() -> str:
    """This boot of this kernel and the process namespace: host names repeat, and containers share a kernel."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _hidden(pid: int) -> bool:
    """Whether there is such a process, and its kernel hides it from this user (mount option `hidepid`)."""
    if (PROC / str(pid)).exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _process_started(pid: int) -> str:
    """When a process of this machine began, in the kernel's own ticks, which setting the clock does not move; "" if
    there is none, or it has died and only waits to be collected."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
