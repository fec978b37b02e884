"""Outcomes that are worth events, and the lines that a log writes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import GOOD, Answers, completion, document, extracted

from pipeline.jobplacement import EventsConfig
from pipeline.observe.events.line import Hook
from pipeline.observe.events.log import Log
from pipeline.records import Outcome

ORIGIN = {"job": "j", "run": "r1", "process": "p"}
SECRET = "sk-4711-secret"
CUT = completion('{"vendor": "Ann", "total": 1, "lines": ["a', "length", output_tokens=50)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="ascii").splitlines()]


def logged(folder: Path, *outcomes: Outcome, hook: Hook | None = None, **keys: Any) -> list[dict[str, Any]]:
    log = Log(EventsConfig(path=str(folder), **keys), ORIGIN, hook)
    for outcome in outcomes:
        log.outcome(outcome)
    log.close()
    return lines_of(folder)


RETRIED = extracted(Answers({"vendor": 5, "total": 1}, GOOD))
REJECTED = extracted(Answers(f"no {SECRET}", f"no, again {SECRET}"), doc=document(f"A text with {SECRET}"))
SALVAGED = extracted(Answers(CUT), max_attempts=1)
ABORTED = extracted(Answers(completion("", "abort"), GOOD))
