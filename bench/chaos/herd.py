"""All processes that this one started, however far away, and those of them that can be killed by name of their role."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator

import psutil

_SET_CHILD_SUBREAPER = 36
END_SECONDS = 10.0

TITLES = {"worker": "ExtractActor", "engine": "EngineReplica", "core": "EngineCore", "control": "ray::Control"}
"""What Ray and vLLM write into the title of a process, by role."""


class Herd:
    """Descendants of this process from now on, orphans included: Ray's daemons leave the process that started them,
    and the kernel hands them to the nearest ancestor that asks for it (prctl(2), PR_SET_CHILD_SUBREAPER)."""

    def __init__(self) -> None:
        """Takes SIGTERM for a plain end of this program, so that `end` is not left out."""
        _adopt_orphans(True)
        self._before = signal.signal(signal.SIGTERM, _leave)
        self._me = psutil.Process()
        self._others = set(self._me.children())

    def all(self) -> list[psutil.Process]:
        """Those that are alive."""
        return [one for one in self._everyone() if _is_running(one)]

    def of_role(self, role: str) -> list[psutil.Process]:
        """Those that do this now, by the title of the process (see TITLES), the youngest first."""
        return sorted((one for one in self.all() if TITLES[role] in _title(one)), key=_age)

    def named(self, name: str) -> list[psutil.Process]:
        """Those whose program has this name."""
        return [one for one in self.all() if _name(one) == name]

    def end(self) -> list[str]:
        """Kill what is left, wait for it, and stop adopting. Returns the titles of what would not go."""
        until = time.monotonic() + END_SECONDS
        # More than once: one that dies may have started another in the meantime.
        while (left := self.all()) and time.monotonic() < until:
            for one in left:
                with contextlib.suppress(psutil.Error):
                    one.kill()
            psutil.wait_procs(left, timeout=1.0)
        self._bury()
        _adopt_orphans(False)
        signal.signal(signal.SIGTERM, self._before)
        return [_title(one) or str(one.pid) for one in self.all()]

    def _everyone(self) -> Iterator[psutil.Process]:
        for child in self._me.children():
            if child not in self._others:
                yield child
                with contextlib.suppress(psutil.Error):
                    yield from child.children(recursive=True)

    def _bury(self) -> None:
        """Adopted ones that ended are zombies until somebody asks how they ended."""
        for one in self._me.children():
            if one not in self._others and not _is_running(one):
                with contextlib.suppress(OSError):
                    os.waitpid(one.pid, os.WNOHANG)


def kill(process: psutil.Process) -> bool:
    """SIGKILL; False if it was gone."""
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return True


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _adopt_orphans(adopt: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphaned processes: this needs Linux")


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()[:1])
    except psutil.Error:
        return ""


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""


def _age(process: psutil.Process) -> float:
    try:
        return -float(process.create_time())
    except psutil.Error:
        return 0.0
