"""The trouble-shooting page: every problem code with its likely cause and the command that shows it.

`python -m pipeline.observe.troubleshooting` writes docs/troubleshooting.md from `pipeline.steps.codes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pipeline.records import Layer
from pipeline.steps.codes import CODES, Again, Code

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"

LAYERS: dict[Layer, str] = {
    "read": "Reading the input",
    "engine": "The engine and what it is asked",
    "parse": "Is the answer JSON?",
    "schema": "Does the record satisfy the schema?",
    "rules": "Business rules, lookups, language, order",
    "ground": "Does the document support it?",
    "route": "What layer 3 left out, and writing",
}
AGAIN: dict[Again, str] = {
    "never": "no",
    "feedback": "yes, told what was wrong",
    "room": "yes, with more tokens",
    "infrastructure": "yes, on the engine's own budget",
}
_HEAD = """\
# Trouble-shooting

<!-- Written by `python -m pipeline.observe.troubleshooting` from pipeline/steps/codes.toml. Do not edit. -->

`gristmill inspect RUN` shows the documents of a run with their problems; each problem has one of the codes below. Look
the code up, read the likely cause, run the command. `JOB`, `RUN`, `ID` and `DIR` stand for your job file, run or output
directory, document id and a directory of your choice.

- **leaves** is the best status that a document with this problem can have. *rejected, or salvaged*: layer 3 may keep
  what is certain, and the record is `degraded` then. A rule or lookup with a `severity` of its own leaves what that
  says (`block` rejected, `degrade` degraded, `observe` valid).
- **asked again** says whether another attempt is made, within the budgets of `retry`. A check of severity `degrade` or
  `observe` never asks again.
- **ALARM** marks what no document is to blame for: the engine, its configuration or this program. A run with such
  problems should be looked at before its output is used.
"""


def page() -> str:
    """The whole page as Markdown."""
    layers = [layer for layer in get_args(Layer) if any(code.layer == layer for code in CODES.values())]
    return "\n".join([_HEAD, *(line for layer in layers for line in _section(layer)), *_alarms()])


def _section(layer: Layer) -> Iterator[str]:
    yield f"## {LAYERS[layer]} (layer `{layer}`)"
    yield ""
    yield "| code | symptom | likely cause | command that shows it | leaves | asked again |"
    yield "|---|---|---|---|---|---|"
    for name, code in CODES.items():
        if code.layer == layer:
            yield _row(name, code)
    yield ""


def _row(name: str, code: Code) -> str:
    alarm = " **ALARM**" if code.alarm else ""
    leaves = f"{code.cap}, or salvaged" if code.salvageable else code.cap
    cells = (f"`{name}`{alarm}", code.meaning, code.cause, f"`gristmill {code.look}`", leaves, AGAIN[code.again])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _alarms() -> Iterator[str]:
    named = ", ".join(f"`{name}`" for name, code in CODES.items() if code.alarm)
    yield f"Codes that alarm: {named}."
    yield ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
