"""What a person reads of one outcome: every finding, what supports each value, and never too much."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from pipeline.observe.inspect import NO_DOCUMENT, SHOWN_LINES, panel_of

TEXT = "Ann & Co\nTotal due: 19,90 EUR"


def field(pointer: str, **values: Any) -> dict[str, Any]:
    names = {"match": "", "start": None, "end": None, "score": None, "raw": None, "touched": False, "confidence": None}
    return {"pointer": pointer, **names, **values}


def row(**values: Any) -> dict[str, Any]:
    attempt = {
        "number": 1, "engine": "e", "finish_reason": "stop", "error": "", "constrained": True, "prompt_tokens": 5,
        "cached_tokens": 0, "output_tokens": 7, "seconds": 0.1, "raw_text": "{}",
    }  # fmt: skip
    empty: dict[str, Any] = {"problems": [], "repairs": [], "attempts": [attempt], "record": {"total": 19.9}}
    return {"document_id": "d1", "schema": "receipt@1", "status": "valid", "layer": 1, **empty, **values}


def shown(of: dict[str, Any], text: str = TEXT) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(panel_of(of, text))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_each_value_is_shown_with_what_supports_it() -> None:
    fields = [
        field("/vendor", match="exact", start=0, end=8, score=1.0, confidence=0.875),
        field("/total", match="normalised", start=20, end=25, raw='"19,90"'),
        field("/city", match="fuzzy", start=0, end=3, score=0.91, touched=True),
        field("/date", match="none"),
        field("/silent"),
    ]
    text = shown(row(fields=fields, confidence=0.5))
    assert 'field    /vendor: support exact "Ann & Co" at 0-8, confidence 0.88' in text
    assert 'field    /total: support normalised "19,90" at 20-25, the model wrote "19,90"' in text
    assert 'field    /city: support fuzzy 0.91 "Ann" at 0-3, touched by a repair' in text
    assert "field    /date: support none" in text
    assert "/silent" not in text
    assert "confidence 0.50" in text.splitlines()[0]


def test_no_support_is_quoted_from_what_stands_in_the_documents_place() -> None:
    of = row(fields=[field("/a", match="exact", start=0, end=4)])
    assert "support exact at 0-4" in shown(of, NO_DOCUMENT + "the input is gone)")
    for start, end in ((-1, 3), (5, 3), (0, 999)):
        assert f"support exact at {start}-{end}" in shown(
            row(fields=[field("/a", match="exact", start=start, end=end)])
        )


def test_severity_is_shown_where_a_check_declares_it() -> None:
    problem = {"code": "rule_broken", "layer": "rules", "pointer": "/total", "message": "no sum", "attempt": 1}
    text = shown(row(problems=[{**problem, "severity": "observe"}, {**problem, "severity": ""}]))
    assert "rules: rule_broken at /total: no sum [observe] (attempt 1)" in text
    assert "rules: rule_broken at /total: no sum (attempt 1)" in text


def test_rows_of_an_earlier_version_are_shown() -> None:
    problem = {"code": "truncated", "layer": "parse", "pointer": "", "message": "m", "attempt": 1}
    text = shown(row(problems=[problem], repairs=[{"kind": "closed", "pointer": "/a", "detail": "x"}]))
    assert "parse: truncated: m (attempt 1)" in text
    assert "repair   closed /a x" in text


def test_a_retry_shows_how_it_differed() -> None:
    first = row()["attempts"][0]
    again = {**first, "number": 2, "engine": "big", "max_tokens": 900, "temperature": 0.5}
    text = shown(row(attempts=[{**first, "max_tokens": 300, "temperature": 0.0}, again]))
    assert "attempt  1: stop" in text
    assert "7 output tokens of 300," in text
    assert "attempt  2 on big: stop" in text
    assert "7 output tokens of 900, temperature 0.5" in text


def test_thousands_of_findings_stay_readable_and_safe() -> None:
    long = "x" * 10_000 + "\x1b[31m"
    problem = {"code": "c", "layer": "rules", "pointer": f"/{long}", "message": "m", "attempt": 1, "severity": ""}
    of = row(
        problems=[problem] * 5000,
        repairs=[{"kind": "k", "pointer": f"/{long}", "detail": "d", "attempt": 1}] * 5000,
        fields=[field(f"/{long}", match="exact", start=0, end=20_000, raw=long)] * 5000,
    )
    text = shown(of, long * 3)
    assert len(text.splitlines()) < 3 * SHOWN_LINES + 60
    for what in ("problems", "repairs", "fields"):
        assert f"… and {5000 - SHOWN_LINES} more {what}" in text
    assert "\x1b" not in text


def test_what_the_constraint_took_is_shown_the_most_first_and_little_is_not() -> None:
    place = {"part": "value", "tokens": 3, "highest": 0.5}
    masses = {"/total": 0.9, "/vendor": 1.25, "/date": 0.01, "": 0.2}
    of = row(audit="done", clipped=[{"pointer": pointer, "mass": mass, **place} for pointer, mass in masses.items()])
    lines = [line.strip("│ ") for line in shown(of).splitlines() if "clipped" in line]
    assert lines == [
        "clipped  /vendor value: 1.25 of 3 tokens, 0.50 at most",
        "clipped  /total value: 0.90 of 3 tokens, 0.50 at most",
        "clipped  (the record) value: 0.20 of 3 tokens, 0.50 at most",
    ]
    assert "clipped  not audited: busy" in shown(row(audit="busy", clipped=[]))
    assert "clipped" not in shown(row())
