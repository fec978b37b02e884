"""What came from outside is shown as text: it neither acts on the terminal nor is read as markup."""

from __future__ import annotations

import ast
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from support import GOOD, Answers, completion, extracted

from pipeline.observe.console import Reporter, summary
from pipeline.observe.inspect import panel_of
from pipeline.observe.tally import Tally, tally
from pipeline.observe.visible import MAX_ID, cell, console_on, visible, visible_id
from pipeline.records import Manifest

ROOT = Path(__file__).resolve().parents[3]
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = "a[/b]\x1b]52;c;aGk=\x07\x9b2J[red]:smile:\u202e\r\ud800"
SHOWN = "a[/b]\\x1b]52;c;aGk=\\x07\\x9b2J[red]:smile:\\u202e\\x0d\\ud800"


def printed(*items: RenderableType) -> str:
    console = console_on()
    console.file, console.width = io.StringIO(), 400
    for item in items:
        console.print(item)
    return console.file.getvalue()


def test_controls_and_bidi_are_shown_and_nothing_else_is_changed() -> None:
    acting = {
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in "\n\t"
    } | set(BIDI)
    for character in map(chr, range(0x3000)):
        assert (visible(character) != character) == (character in acting), repr(character)
    assert not [c for c in acting if c in visible(c) or not visible(c).isascii()]
    assert visible("\x1b\x9b\x7f\u202e\n\t 收据 ü 😀") == "\\x1b\\x9b\\x7f\\u202e\n\t 收据 ü 😀"


def test_ids_are_cut_and_stay_on_their_line() -> None:
    assert visible_id("d1") == "d1"
    assert len(visible_id("x" * 1000)) == MAX_ID
    assert visible_id("a\nb\tc") == "a\\x0ab\\x09c"
    assert len(visible_id("\x1b" * 1000)) <= 4 * MAX_ID


def test_every_console_is_made_in_one_place() -> None:
    for path in [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "jobs").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Console":
                assert path.name == "visible.py", path
    assert SHOWN in printed(cell(EVIL), visible(EVIL)).splitlines()[0]
    assert SHOWN in printed(visible(EVIL))


def manifest_of(total: Tally, **values: Any) -> Manifest:
    counts: Any = {status: total.statuses[status] for status in ("valid", "degraded", "rejected")}
    given = {"run_id": "r", "job": "j", "ids_digest": "", "schemas": {"receipt@1": "d"}, "files": ()}
    return Manifest(**{**given, "documents": total.documents, "counts": counts, "totals": total.to_json(), **values})


def test_the_summary_shows_hostile_names_as_they_are() -> None:
    total = Tally()
    total.pointers[f"receipt@1 /x{EVIL} schema_violation"] = total.codes[EVIL] = 1
    shown = printed(summary(manifest_of(total, job=EVIL, schemas={EVIL: "d"}), "/out[/b]\x1b"))
    assert shown.count(SHOWN) == 4
    assert "/out[/b]\\x1b" in shown


def test_the_summary_shows_engine_failures_apart() -> None:
    outcomes = [extracted(Answers(completion("", "abort"), GOOD)), extracted(Answers({"vendor": 5, "total": 1}, GOOD))]
    lines = printed(summary(manifest_of(tally(outcomes)), "out")).splitlines()
    assert [line for line in lines if "asked the model again" in line and "1 of 2 documents asked" in line]
    assert [line for line in lines if "engine failures, sent again" in line and "1 of 4 requests" in line]


def row_of(text: str) -> dict[str, Any]:
    attempt = {"number": 1, "constrained": True, "finish_reason": text, "error": text, "raw_text": text}
    tokens = {"prompt_tokens": 1, "cached_tokens": 1, "output_tokens": 1, "seconds": 1.0}
    return {
        "document_id": text,
        "schema": text,
        "status": "degraded",
        "layer": 2,
        "record": {text: text},
        "problems": [{"layer": "parse", "code": "x", "pointer": f"/x{text}", "message": text, "attempt": 1}],
        "repairs": [{"kind": "x", "pointer": text, "detail": text, "attempt": 1}],
        "attempts": [{**attempt, **tokens}],
    }


def test_inspect_shows_hostile_rows_as_they_are() -> None:
    shown = printed(panel_of(row_of(EVIL), f"document {EVIL}"))
    assert not set(shown) & set("\x1b\x07\x9b\r\u202e\ud800")
    assert shown.count("aGk=") == 12
    # The record is JSON and pointers are one line each: they have their own way to write some of these.
    assert shown.count(SHOWN) >= 8
    assert "repair   x" in shown
    assert "(attempt 1)" in shown


def test_inspect_cuts_ids_and_shows_the_rest_of_a_row() -> None:
    row = {**row_of("ü"), "document_id": "i" * 500, "record": None}
    shown = printed(panel_of(row, "x" * 2000))
    assert "i" * MAX_ID not in shown
    assert "500 more characters" in shown
    assert "(none)" in shown


def test_what_the_engine_took_to_start_is_in_no_speed_and_no_time_left() -> None:
    reporter = Reporter(Console(file=io.StringIO(), width=200))
    reporter.expect(24)
    reporter.asking(100.0)
    line = reporter._line(Tally(documents=6, output_tokens=400))
    assert "0.1 docs/s, 4 tokens/s, about 300 s left" in line, "by the time since the engine works, not since `expect`"


def test_progress_never_shows_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=200)
        reporter = Reporter(console)
        with reporter.live():
            reporter.expect(10)
            reporter.update(Tally(documents=14, output_tokens=5))
            assert reporter._bar is None or reporter._bar.tasks[0].completed == 10
        line = reporter._line(Tally(documents=14))
        assert line.startswith("10/10 documents")
        assert "about 0 s left" in line
    assert json.dumps(line)
