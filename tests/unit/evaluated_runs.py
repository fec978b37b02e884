"""A run with its gold, and `gristmill evaluate` over it, for `test_evaluate_command.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from replay_runs import commit
from support import GOOD, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app

NAME = "receipt@1"
RIGHT = {f"d{n}": {**GOOD, "vendor": f"Ann & Co {n}", "total": None if n % 5 == 0 else n + 0.5} for n in range(24)}


def answer(number: int, record: dict[str, Any]) -> Any:
    """What the model makes of a document: some right, some in another notation, some wrong, some nothing."""
    found = dict(record)
    if number % 4 == 1:
        found["vendor"] = found["vendor"].upper()
    if number % 4 == 2:
        found |= {"total": 99.5, "lines": ["salt", "pepper", "tea"]}
    if number % 6 == 3:
        found["lines"] = []
    return "I cannot" if number % 9 == 6 else found


def write_gold(path: Path, records: dict[str, Any], **more: Any) -> str:
    path.write_text("".join(json.dumps({"id": key, "record": one, **more}) + "\n" for key, one in records.items()))
    return str(path)


def made_run(place: Path) -> Path:
    """A run of 24 documents in units of 5. Its gold lies beside its output."""
    answers = {}
    for number, (key, record) in enumerate(RIGHT.items()):
        made = answer(number, record)
        answers[key] = Answers(completion(made, constrained=isinstance(made, dict)))
    path = commit(place, answers, retry={"max_attempts": 1}, placement={"unit_documents": 5})
    write_gold(place / "gold.jsonl", RIGHT)
    return path


def shown(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, ["evaluate", *arguments, "--resamples", "100"], env={"COLUMNS": "180"})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == code, found.output
    return found.output


def told(*arguments: str, code: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shown(*arguments, "--json", code=code))
    return document


def gold_of(run: Path) -> str:
    return str(run.parent.parent / "gold.jsonl")
