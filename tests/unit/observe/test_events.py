"""Lines of events: what stands in them, and what never does."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from event_lines import ABORTED, ORIGIN, REJECTED, RETRIED, SALVAGED, SECRET, logged
from support import GOOD, Answers, document, extracted

from pipeline.jobplacement import EventsConfig
from pipeline.observe.events.catalogue import ALWAYS, KINDS, MEMBERS, TEXT_MEMBERS
from pipeline.observe.events.line import MAX_STRING, MAX_TEXT, REDACTED, UNSHOWN, as_line, redactor
from pipeline.observe.events.log import Log
from pipeline.observe.events.outcomes import events_of
from pipeline.observe.events.page import PAGE, page
from pipeline.records import Outcome


def test_a_valid_first_answer_is_worth_no_line() -> None:
    assert not list(events_of(extracted(Answers(GOOD))))


@pytest.mark.parametrize(
    ("outcome", "events"),
    [
        (RETRIED, [("document_retried", "valid", 1, "schema_violation")]),
        (
            REJECTED,
            [("document_retried", "rejected", 1, "no_json"), ("document_rejected", "rejected", 2, "no_json")],
        ),
        (SALVAGED, [("document_degraded", "degraded", 1, "truncated")]),
        (
            ABORTED,
            [("document_alarm", "valid", 1, "engine_abort"), ("document_retried", "valid", 1, "engine_abort")],
        ),
        (
            extracted(Answers(GOOD), doc=document(problems=["duplicate_id"])),
            [("document_rejected", "rejected", 0, "duplicate_id")],
        ),
        (
            extracted(Answers(GOOD), doc=document(problems=["poison"])),
            [("document_poison", "rejected", 0, "poison")],
        ),
    ],
)
def test_what_an_outcome_is_worth(outcome: Outcome, events: list[tuple[Any, ...]]) -> None:
    found = list(events_of(outcome))
    told = [(e.name, e.members["status"], e.members["attempt"], e.members["code"]) for e in found]
    assert told == events
    assert all(event.members["document"] == "d1" for event in found)


def test_a_line_holds_what_the_page_says_and_no_text_unless_it_is_asked_for(tmp_path: Path) -> None:
    outcomes = (RETRIED, REJECTED, SALVAGED, ABORTED)
    plain, full = logged(tmp_path / "plain", *outcomes), logged(tmp_path / "full", *outcomes, text=True)
    assert [line["seq"] for line in plain] == list(range(1, len(plain) + 1))
    for line in plain:
        kind = KINDS[line["event"]]
        assert set(line) == {*ALWAYS, *kind.members}
        assert line["level"] == kind.level
    for line in full:
        assert set(line) - set(ALWAYS) <= {*KINDS[line["event"]].members, *KINDS[line["event"]].text}
    assert SECRET not in json.dumps(plain)
    (rejected,) = [line for line in full if line["event"] == "document_rejected"]
    assert rejected["document_text"] == f"A text with {SECRET}"
    assert rejected["raw_text"] == f"no, again {SECRET}"


def test_every_event_and_member_has_a_row_and_the_page_is_what_the_program_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m pipeline.observe.events.page`"
    used = {member for kind in KINDS.values() for member in kind.members}
    assert used == set(MEMBERS)
    assert {member for kind in KINDS.values() for member in kind.text} == set(TEXT_MEMBERS)
    assert all(f"| `{name}` |" in page() for name in (*KINDS, *MEMBERS, *TEXT_MEMBERS, *ALWAYS))


def test_nothing_is_written_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = threading.active_count()
    log = Log(EventsConfig(), ORIGIN)
    log.outcome(REJECTED)
    assert log.flush()
    assert not list(tmp_path.iterdir())
    assert threading.active_count() == before


def test_patterns_are_hidden_everywhere_before_anything_is_cut(tmp_path: Path) -> None:
    long = extracted(Answers("no"), doc=document("x" * (MAX_TEXT - 5) + SECRET + "x" * 50), max_attempts=1)
    lines = logged(tmp_path, REJECTED, long, text=True, redact=["sk-[0-9]+-secret", "receipt@1", "d1"])
    everything = json.dumps(lines)
    assert "sk-" not in everything
    assert "receipt@1" not in everything
    assert {line["document"] for line in lines} == {REDACTED}
    assert max(len(line.get("document_text", "")) for line in lines) == MAX_TEXT


def test_a_pattern_that_takes_for_ever_shows_nothing() -> None:
    assert redactor(["^(a|aa)+c?$"])("a" * 60 + "!") == UNSHOWN
    assert redactor(["b"])("abc") == f"a{REDACTED}c"


@pytest.mark.parametrize("pattern", ["(", "a*", ""])
def test_a_pattern_that_is_none_or_finds_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern 0"):
        EventsConfig(path="x", redact=(pattern,))


def test_no_text_ends_a_line_or_acts_on_a_terminal() -> None:
    nasty = "a\nb\x1b[2J\u2028\u202e\x7f\x9b\ud800" + "z" * MAX_STRING
    line = as_line({"event": "x", "document": nasty}, redactor(()))
    assert line.endswith(b"\n")
    assert all(0x20 <= byte < 0x7F for byte in line[:-1])
    assert json.loads(line)["document"][:12] == nasty[:12]
    assert len(json.loads(line)["document"]) == MAX_STRING


def test_a_hook_changes_and_drops_events_and_patterns_come_after_it(tmp_path: Path) -> None:
    def hook(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["event"] == "document_retried":
            return None
        return {**event, "team": f"blue {SECRET}", "document": event["document"].upper()}

    lines = logged(tmp_path, RETRIED, REJECTED, hook=hook, redact=["sk-[0-9]+"])
    assert [(line["event"], line["team"], line["document"]) for line in lines] == [
        ("document_rejected", f"blue {REDACTED}-secret", "D1")
    ]


@pytest.mark.parametrize("made", [RuntimeError(SECRET), {"x": object()}, {"x": float("nan")}, "no mapping"])
def test_what_a_broken_hook_would_leave_is_not_written_but_counted(tmp_path: Path, made: Any) -> None:
    def hook(event: dict[str, Any]) -> Any:
        if event["document"] == "d1" and event["event"] == "document_rejected":
            if isinstance(made, Exception):
                raise made
            return made
        return event

    lines = logged(tmp_path, REJECTED, RETRIED, hook=hook)
    assert [line["event"] for line in lines] == ["document_retried", "document_retried", "events_lost"]
    assert lines[-1]["count"] == 1
    assert SECRET not in json.dumps(lines)
