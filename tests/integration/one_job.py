"""A job in a temporary directory, run as a user runs it: by the command line, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
# A shell that runs the tests in the background has them ignore Ctrl-C, and whatever they start.
LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
GRISTMILL = [sys.executable, "-c", f"{LISTENS}; from pipeline.cli import main; main()"]
RECEIPT = {"id": "r1", "text": "Corner Shop\nTOTAL EUR 5.00"}


class Bench:
    """A job file in a temporary directory that tests spoil in one place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "in.jsonl"
        self.write([RECEIPT])
        self.job: dict[str, Any] = {
            "name": "t",
            "input": {"path": "in.jsonl", "schema": "receipt@1"},
            "output": "out",
            "schemas": str(ROOT / "schemas"),
            "engine": {"engine": "sampler"},
        }

    def write(self, rows: list[dict[str, Any]]) -> None:
        self.input.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    @property
    def path(self) -> Path:
        path = self.folder / "job.yaml"
        path.write_text(yaml.safe_dump(self.job), encoding="utf-8")
        return path

    def run(self, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        command = [*GRISTMILL, "run", str(self.path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
