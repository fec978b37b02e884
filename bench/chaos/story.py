"""One round: a job, its killings, the same command again until the run is committed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.chaos.command import Command, committed_units, is_committed, prepare
from bench.chaos.herd import Herd, kill
from bench.chaos.nodes import Nodes

RETRIED = (8, 9)
"""Exit codes that no killing need explain: the machine was too busy for Ray to start, or for the death of the driver
before to be seen."""
POLL_SECONDS = 0.05
APPEAR_SECONDS = 30.0
"""How long a victim that is not there yet is waited for."""

KINDS = {
    "local": ("worker", "driver", "raylet", "control"),
    "actors": ("engine", "second raylet", "driver", "worker", "raylet", "control"),
}
WORKING = 0.75
"""Share of the killings that come when engines work."""
MODEL_KINDS = ("core", "worker", "driver")


@dataclass(frozen=True, slots=True)
class Killing:
    """SIGKILL of a role. `working`: when engines have given this share of the answers that are still needed; else so
    many seconds after the command's start. In any case counted from the killing before."""

    kind: str
    working: bool
    after: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A round as its seed has it. `local` jobs start a Ray of their own, `actors` jobs use two nodes that are there."""

    seed: int
    placement: str
    killings: tuple[Killing, ...]


@dataclass
class Told:
    """What happened in a round; plain values for the results file."""

    seed: int
    placement: str
    kills: list[dict[str, Any]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Victims that were waited for in vain, as a node that an earlier killing took."""
    late: int = 0
    """Killings whose moment never came."""
    exit_codes: list[int] = field(default_factory=list)
    tracebacks: int = 0
    seconds: float = 0.0
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"commands": len(self.exit_codes), "seconds": round(self.seconds, 1)}


def plan_round(seed: int, placement: str, start_seconds: float, kinds: tuple[str, ...]) -> Plan:
    """`start_seconds` is what the undisturbed command takes to start its engines: moments are spread over that and,
    most of them, over the work. The first kind goes by turns, so that a few rounds have had them all."""
    draw = random.Random(seed)
    chosen = [kinds[seed // 2 % len(kinds)], *draw.choices(kinds, k=draw.choice((0, 1, 2)))]
    killings = []
    for kind in chosen:
        working, share = draw.random() < WORKING, draw.uniform(0.02, 0.8)
        killings.append(Killing(kind, working, share if working else share * start_seconds))
    return Plan(seed, placement, tuple(killings))


class Round:
    """Plays one plan in a folder of its own."""

    def __init__(self, plan: Plan, folder: Path, herd: Herd, answer_bytes: int, limit: float) -> None:
        """`answer_bytes` is the size of the undisturbed job's recording, `limit` the seconds of a command."""
        self._plan = plan
        self._needed = answer_bytes
        self._folder = folder
        self._herd = herd
        self._limit = limit
        self._left = list(plan.killings)
        self._nodes = Nodes(herd)
        self._told = Told(plan.seed, plan.placement)

    def play(self, job: Mapping[str, Any], documents: list[dict[str, Any]]) -> Told:
        """Run to the commit, or to a failure, which is told and not raised. No process is left."""
        prepare(self._folder, job, documents)
        begun, told = time.monotonic(), self._told
        try:
            while not is_committed(self._folder) and not told.failure:
                self._nodes_up()
                self._command()
            told.seconds = time.monotonic() - begun
            if not told.failure:
                self._again()
        finally:
            told.late = len(self._left)
            left = self._herd.end()
            if left:
                told.failure = told.failure or f"processes that would not end: {left}"
            self._nodes.remove()
        return told

    def _nodes_up(self) -> None:
        """Two nodes, as a cluster manager replaces what died; only for rounds on a cluster."""
        if self._plan.placement != "actors":
            return
        if not self._nodes.is_up():
            self._nodes.drop()
        alive = [one for one in self._nodes.raylets if one in self._herd.all()]
        for _ in range(2 - len(alive)):
            self._nodes.start()

    def _command(self) -> None:
        """One command, with the killings whose time comes while it runs."""
        command = Command(self._folder, self._nodes.environment, record=True)
        before = len(self._told.kills)
        mark = _Mark(command, self._needed)
        while (code := command.process.poll()) is None:
            if command.seconds > self._limit:
                self._told.failure = f"a command did not end within {self._limit:.0f} s:\n{command.words()[-2000:]}"
                return
            if self._left and mark.is_due(self._left[0]):
                self._strike(self._left[0], command)
                mark = _Mark(command, self._needed)
            time.sleep(POLL_SECONDS)
        self._told.exit_codes.append(code)
        self._told.tracebacks += "Traceback" in command.words()
        disturbed = len(self._told.kills) > before
        if code == 0 and not is_committed(self._folder):
            self._told.failure = f"a command ended well without a manifest:\n{command.words()[-2000:]}"
        elif code not in (0, *RETRIED) and not disturbed:
            self._told.failure = f"a command ended by itself with {code}:\n{command.words()[-2000:]}"
        elif len(self._told.exit_codes) > 2 * len(self._plan.killings) + 2:
            self._told.failure = f"still not committed after {len(self._told.exit_codes)} commands"

    def _strike(self, killing: Killing, command: Command) -> None:
        """Kill as soon as the victim is there."""
        until = time.monotonic() + APPEAR_SECONDS
        while command.process.poll() is None and time.monotonic() < until:
            if self._kill(killing.kind, command):
                units = committed_units(self._folder)
                after = round(command.seconds, 2)
                when = "working" if command.engines_started() else "starting"
                self._told.kills.append(
                    {"kind": killing.kind, "seconds": after, "when": when, "committed_units": units}
                )
                self._left.pop(0)
                return
            time.sleep(POLL_SECONDS)
        if command.process.poll() is None:
            self._told.absent.append(self._left.pop(0).kind)

    def _kill(self, kind: str, command: Command) -> bool:
        if kind == "driver":
            os.kill(command.process.pid, 9)
            return True
        victims = self._victims(kind)
        return any(kill(victim) for victim in victims[:1])

    def _victims(self, kind: str) -> list[Any]:
        if kind == "raylet":
            return self._nodes.raylets[:1] or self._herd.named("raylet")[-1:]
        if kind == "second raylet":
            return [one for one in self._nodes.raylets[1:] if one in self._herd.all()]
        return self._herd.of_role(kind)

    def _again(self) -> None:
        """The same command after the commit: it does nothing, and says so."""
        before = _stamps(self._folder)
        command = Command(self._folder, self._nodes.environment)
        code = command.wait(self._limit)
        if code is None:
            command.process.kill()
        if code != 0 or "nothing to do" not in command.words():
            self._told.failure = f"the command after the commit ended with {code}:\n{command.words()[-2000:]}"
        elif _stamps(self._folder) != before:
            self._told.failure = "the command after the commit changed files of the run"


class _Mark:
    """A moment from which the next killing is counted."""

    def __init__(self, command: Command, needed: int) -> None:
        self._command = command
        self._since = time.monotonic()
        self._before = command.answer_bytes()
        self._more = max(needed - self._before, needed // 20)

    def is_due(self, killing: Killing) -> bool:
        if not killing.working:
            return time.monotonic() - self._since >= killing.after
        given = self._command.answer_bytes() - self._before
        return self._command.engines_started() and given >= killing.after * self._more


def _stamps(folder: Path) -> dict[str, int]:
    """Files of a run that readers trust, with their times of change."""
    files = [*folder.glob("out/run=*/status=*/*/*.parquet"), *folder.glob("out/run=*/manifest.json")]
    return {str(path): path.stat().st_mtime_ns for path in files}
