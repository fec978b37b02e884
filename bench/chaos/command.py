"""`gristmill run` as a process of its own, and what its run directory says while it works."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.documents import ROOT

# A shell that runs this in the background has its children ignore Ctrl-C.
LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
GRISTMILL = [sys.executable, "-c", f"{LISTENS}; from pipeline.cli import main; main()"]

RECORDING = "recording"


@dataclass
class Command:
    """A started command. `folder` holds `job.json`, logs of all commands, and what was recorded, if `record`."""

    folder: Path
    environment: Mapping[str, str]
    record: bool = False
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0

    def __post_init__(self) -> None:
        number = len(list(self.folder.glob("command-*.log")))
        self.log = self.folder / f"command-{number:02d}.log"
        self._recordings = len(self._recorded())
        command = [*GRISTMILL, "run", str(self.folder / "job.json")]
        if self.record:
            command += ["--record", str(self.folder / RECORDING)]
        with self.log.open("wb") as file:
            # A session of its own, as a terminal gives: a signal can be sent to all of it, and none comes from here.
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**self.environment, "COLUMNS": "200"},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        """Since its start."""
        return time.monotonic() - self.started

    def engines_started(self) -> bool:
        """Whether an engine of this command has started: it opens its recording then."""
        return len(self._recorded()) > self._recordings

    def answer_bytes(self) -> int:
        """Size of all that the job's engines have answered, in all commands."""
        return sum(path.stat().st_size for path in self._recorded())

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None if it still runs after so many seconds from its start."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds - self.seconds))
        self.ended = time.monotonic()
        return self.process.returncode

    def interrupt(self) -> None:
        """Ctrl-C in a terminal: the whole foreground group gets it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def _recorded(self) -> list[Path]:
        return list(self.folder.glob(f"{RECORDING}/*.jsonl"))

    def words(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def prepare(folder: Path, job: Mapping[str, Any], documents: list[dict[str, Any]]) -> None:
    """Write input and job file into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in documents)
    (folder / "input.jsonl").write_text(text, encoding="utf-8")
    (folder / "job.json").write_text(json.dumps(job, indent=1), encoding="utf-8")


def run_directory(folder: Path) -> Path | None:
    """The run of the job in a folder, as soon as there is one."""
    return next(iter((folder / "out").glob("run=*")), None)


def committed_units(folder: Path) -> int:
    """How many units are committed."""
    return sum(1 for _ in folder.glob("out/run=*/_commits/*.json"))


def is_committed(folder: Path) -> bool:
    """Whether the run has its manifest."""
    return any(folder.glob("out/run=*/manifest.json"))
