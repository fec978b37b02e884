"""The closed set of problem codes: what each means, whether another attempt can help, how good the document can get.

The table is data, `codes.toml` beside this file. Steps find problems by these codes; `retry` and `route` read what to
do from here, and docs/troubleshooting.md is written from it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from pipeline.records import STATUSES, Layer, Problem, Status

Again = Literal["never", "feedback", "room", "infrastructure"]
"""`feedback`: ask again and say what was wrong. `room`: ask again with more tokens. `infrastructure`: ask again, the
model is not to blame."""

_CAP_OF_SEVERITY: dict[str, Status] = {"block": "rejected", "degrade": "degraded", "observe": "valid"}


@dataclass(frozen=True, slots=True)
class Code:
    """`cap` is the best status a document with this problem can have; layer 3 can lift a `salvageable` one. `alarm`: no
    business finding but a fault of the engine, its configuration or this program.

    `meaning` is the symptom in the trouble-shooting page, `cause` the likely cause, and `look` the arguments of
    `gristmill` that show it (JOB, RUN, ID and DIR stand for the reader's own).
    """

    layer: Layer
    again: Again
    cap: Status
    meaning: str
    cause: str
    look: str
    salvageable: bool = False
    alarm: bool = False


CODES: dict[str, Code] = {
    name: Code(**row)
    for name, row in tomllib.loads(files(__package__).joinpath("codes.toml").read_text("utf-8")).items()
}


def cap_of(problem: Problem, *, salvaged: bool = False) -> Status:
    """The best status that a document with this problem can have; `salvaged`: as a record that layer 3 made."""
    if problem.severity:
        return _CAP_OF_SEVERITY[problem.severity]
    code = CODES[problem.code]
    return "degraded" if salvaged and code.salvageable else code.cap


def again_of(problem: Problem) -> Again:
    """Whether another attempt can help. A declared check that only degrades or observes asks for none."""
    return "never" if problem.severity in ("degrade", "observe") else CODES[problem.code].again


def worst(statuses: Iterable[Status]) -> Status:
    """The lowest of some statuses; `valid` of none."""
    return max(statuses, key=STATUSES.index, default="valid")
