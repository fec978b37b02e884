"""CPU seconds and memory of this process and of all that it started, Ray's daemons and workers included."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.documents import ROOT

LOOK_SECONDS = 1.0
GRACE_SECONDS = 30
SAMPLE_SECONDS = 0.25
"""What a process does between its last sample and its end is missed. Ray does not reap workers in a way that would
leave their times with a parent, so that sums over living processes would miss all of it."""

MIB = 1 << 20


def kind_of(command: list[str]) -> str:
    """What a process of Ray is, from its title (which Ray sets to what the worker does)."""
    title = command[0] if command else ""
    if "ExtractActor" in title:
        return "extract actor"
    if title.startswith("ray::"):
        tasks = ("ray::IDLE", "ray::MapBatches", "ray::Map", "ray::Read")
        return "tasks (read, write)" if title.startswith(tasks) else "other actors of Ray"
    name = Path(title).name
    return name if name in ("raylet", "gcs_server") else "daemons"


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


@dataclass
class Peak:
    """Of one kind of process: the largest seen. `resident` is the kernel's own high-water mark (VmHWM) with shared
    pages of Ray's object store; `private` (RssAnon) is what the process itself holds, sampled."""

    resident_mib: float = 0.0
    private_mib: float = 0.0


@dataclass
class Watch:
    """Samples the tree in a thread until `stop`. Its own CPU seconds are in `own_seconds`, to be taken off."""

    peaks: dict[str, Peak] = field(default_factory=lambda: defaultdict(Peak))
    seconds: dict[str, float] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    own_seconds: float = 0.0
    _by_process: dict[tuple[int, float], tuple[str, float]] = field(default_factory=dict)
    _before: dict[tuple[int, float], float] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Watch:
        self._sample()
        self._before = {key: seconds for key, (_, seconds) in self._by_process.items()}
        self._thread = threading.Thread(target=self._loop, name="watch", daemon=True)
        self._thread.start()
        return self

    def total(self) -> float:
        """CPU seconds since `start`, of all kinds together, as of the last sample; the watching itself is in them."""
        known = list(self._by_process.items())
        return sum(seconds - self._before.get(key, 0.0) for key, (_, seconds) in known)

    def stop(self) -> Watch:
        """Take the last sample and sum up the CPU seconds since `start` by kind of process."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        totals: dict[str, float] = defaultdict(float)
        for key, (kind, seconds) in self._by_process.items():
            totals[kind] += seconds - self._before.get(key, 0.0)
            self.started[kind] = self.started.get(kind, 0) + (key not in self._before)
        totals["driver"] -= self.own_seconds
        self.seconds = dict(sorted(totals.items(), key=lambda item: -item[1]))
        return self

    def _loop(self) -> None:
        begun = time.thread_time()
        while not self._done.wait(SAMPLE_SECONDS):
            self._sample()
        self._sample()
        self.own_seconds = time.thread_time() - begun

    def _sample(self) -> None:
        for number, process in enumerate(_tree()):
            try:
                with process.oneshot():
                    times, command = process.cpu_times(), process.cmdline()
                    key = (process.pid, process.create_time())
                memory = _memory(process.pid)
            except (psutil.Error, OSError):
                continue
            kind = kind_of(command) if number else "driver"
            known = self._by_process.get(key, (kind, 0.0))[0]
            # An actor's title changes with what it does; once it was the extract actor, it stays that.
            kind = known if known == "extract actor" else kind
            self._by_process[key] = (kind, times.user + times.system)
            peak = self.peaks[kind]
            peak.resident_mib = max(peak.resident_mib, memory["VmHWM"])
            peak.private_mib = max(peak.private_mib, memory["RssAnon"])


def run_and_clear(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Run a command from the root of the checkout; returns exit code, output and error output.

    Engines outlive the process that started them by some seconds. This returns when all that the command started is
    gone, so that nothing of it runs beside what is measured next.
    """
    output, errors = folder / "stdout", folder / "stderr"
    started: dict[int, psutil.Process] = {}
    with output.open("wb") as out, errors.open("wb") as err:
        child = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=err)
        while child.poll() is None:
            with contextlib.suppress(psutil.Error):
                started.update((one.pid, one) for one in psutil.Process(child.pid).children(recursive=True))
            time.sleep(LOOK_SECONDS)
    _, left = psutil.wait_procs(list(started.values()), timeout=GRACE_SECONDS)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return child.returncode, output.read_text(errors="replace"), errors.read_text(errors="replace")


def _memory(pid: int) -> dict[str, float]:
    """MiB by key of /proc/<pid>/status; 0 for a process that is ending."""
    found = {"VmHWM": 0.0, "RssAnon": 0.0}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in found:
            found[key] = int(value.split()[0]) * 1024 / MIB
    return found
