"""Memory and CPU seconds of every process of a run over time, by what the process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

POINTS = 60
"""Of a series in the results file: a longer one is thinned, each point the largest of its share."""
MIB = 1 << 20
_KEYS = {"VmRSS": "resident", "RssAnon": "private", "RssShmem": "shared"}


@dataclass(frozen=True, slots=True)
class Point:
    """Of one process; MiB, and CPU seconds since its start. `shared` are pages of Ray's object store that it has
    touched."""

    at: float
    resident: float
    private: float
    shared: float
    cpu: float


def role_of(title: str) -> str:
    """What a process does, from its title; "" for those that are only summed up."""
    if "ExtractActor" in title:
        return "worker"
    if title.startswith("ray::Control"):
        return "control"
    name = Path(title).name
    return {"raylet": "raylet", "gcs_server": "gcs"}.get(name, "ray, other" if title.startswith("ray::") else "")


@dataclass
class Series:
    """Samples the processes that `processes` gives, every `seconds`, in a thread; one has the pid `driver`."""

    processes: Callable[[], list[psutil.Process]]
    driver: int
    seconds: float
    points: dict[tuple[str, int], list[Point]] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Series:
        self._thread = threading.Thread(target=self._loop, name="series", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._done.wait(self.seconds):
            for process in self.processes():
                self._look(process)

    def _look(self, process: psutil.Process) -> None:
        try:
            title = "" if process.pid == self.driver else " ".join(process.cmdline()[:1])
            role = "driver" if process.pid == self.driver else role_of(title) or "other"
            times, memory = process.cpu_times(), _memory(process.pid)
        except (psutil.Error, OSError):
            return
        point = Point(time.time(), cpu=times.user + times.system, **memory)
        # A worker's title is another one until Ray gives it its work.
        for known in [key for key in self.points if key[1] == process.pid and key[0] != role]:
            self.points.setdefault((role, process.pid), []).extend(self.points.pop(known))
        self.points.setdefault((role, process.pid), []).append(point)

    def of(self, role: str) -> list[list[Point]]:
        """The series of each process of a role."""
        return [points for (known, _), points in sorted(self.points.items()) if known == role]

    def cpu_between(self, role: str, first: float, last: float) -> float:
        """CPU seconds of all processes of a role between two moments of `time.time`."""
        return sum(_cpu_at(points, last) - _cpu_at(points, first) for points in self.of(role))

    def to_json(self, begun: float) -> list[dict[str, Any]]:
        """A thinned series of each process that was seen more than twice."""
        kept = sorted(((role, points) for (role, _), points in self.points.items() if len(points) > 2), key=_first)
        return [{"role": role, **_thinned(points, begun)} for role, points in kept if role != "other"]


def _first(item: tuple[str, list[Point]]) -> tuple[str, float]:
    return item[0], item[1][0].at


def _cpu_at(points: list[Point], at: float) -> float:
    before = [point.cpu for point in points if point.at <= at]
    return before[-1] if before else points[0].cpu


def _thinned(points: list[Point], begun: float) -> dict[str, Any]:
    step = -(-len(points) // POINTS)
    shares = [points[first : first + step] for first in range(0, len(points), step)]
    found: dict[str, Any] = {"seconds": [round(share[-1].at - begun, 1) for share in shares]}
    for key in ("resident", "private", "shared"):
        found[f"{key}_mib"] = [round(max(getattr(point, key) for point in share), 1) for share in shares]
    return found


def _memory(pid: int) -> dict[str, float]:
    """MiB by key of /proc/<pid>/status."""
    found = dict.fromkeys(_KEYS.values(), 0.0)
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in _KEYS:
            found[_KEYS[key]] = int(value.split()[0]) * 1024 / MIB
    return found
