"""The trouble-shooting page is what the program writes, and each command on it is one that exists."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import pytest
import typer

from pipeline.cli import app
from pipeline.observe.troubleshooting import AGAIN, LAYERS, PAGE, page
from pipeline.records import Problem
from pipeline.steps.codes import CODES, cap_of

PLACEHOLDERS = {"JOB": "job.yaml", "RUN": "out", "ID": "document-1", "DIR": "recording"}
COMMANDS = sorted({code.look for code in CODES.values()})
ROWS = [line for line in page().splitlines() if line.startswith("| `")]


def test_the_page_in_the_repository_is_what_the_program_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run `{sys.executable} -m pipeline.observe.troubleshooting`"


def test_every_code_has_one_row_that_says_what_the_table_says() -> None:
    assert [re.match(r"\| `(\w+)`", row)[1] for row in ROWS] == sorted(  # type: ignore[index]
        CODES, key=lambda name: (list(LAYERS).index(CODES[name].layer), list(CODES).index(name))
    )
    for row in ROWS:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 6
        code = CODES[cells[0].split("`")[1]]
        assert ("ALARM" in cells[0]) is code.alarm
        assert cells[4].startswith(cap_of(Problem(cells[0].split("`")[1])))
        assert cells[5] == AGAIN[code.again]


@pytest.mark.parametrize("look", COMMANDS)
def test_the_command_that_shows_it_is_a_command(look: str) -> None:
    """It parses with the reader's own names in place; nothing is run."""
    name, *words = shlex.split(look)
    assert not {word for word in words if word.isupper()} - PLACEHOLDERS.keys()
    group: Any = typer.main.get_command(app)
    command = group.commands[name]
    command.make_context(name, [PLACEHOLDERS.get(word, word) for word in words])


@pytest.mark.parametrize("name", sorted(CODES))
def test_meaning_and_cause_are_written_for_a_reader(name: str) -> None:
    code = CODES[name]
    for text in (code.meaning, code.cause):
        assert 8 <= len(text) <= 160
        assert not text.endswith(".")
        assert not re.search(r"\bTODO\b|[\r\n]", text)
    assert code.cap != "valid" or code.again == "never"
