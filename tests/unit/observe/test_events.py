"""Lines of events: what stands in them, what never does, how much there can be, and what happens when they cannot be
written."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support import GOOD, Answers, completion, document, extracted

from pipeline.jobplacement import EventsConfig
from pipeline.observe.events.catalogue import ALWAYS, KINDS, MEMBERS, TEXT_MEMBERS
from pipeline.observe.events.line import MAX_STRING, MAX_TEXT, REDACTED, UNSHOWN, Hook, as_line, redactor
from pipeline.observe.events.log import Log
from pipeline.observe.events.outcomes import events_of
from pipeline.observe.events.page import PAGE, page
from pipeline.observe.events.segments import Segments
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


def test_a_place_that_cannot_be_written_raises_nothing_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = Log(EventsConfig(path=str(tmp_path / "file" / "logs")), ORIGIN)
    log.outcome(REJECTED)
    assert log.flush()
    assert "p: NotADirectoryError" in log.trouble()
    log.outcome(REJECTED)
    assert log.flush()
    assert log.trouble() == ""
    log.close()


def test_a_disk_that_comes_back_is_told_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")
    log = Log(EventsConfig(path=str(tmp_path / "logs")), ORIGIN)
    log.outcome(REJECTED)
    log.flush()
    (tmp_path / "logs").unlink()
    log.outcome(RETRIED)
    log.close()
    lines = lines_of(tmp_path / "logs")
    assert [(line["event"], line.get("count")) for line in lines] == [("document_retried", None), ("events_lost", 2)]


def test_a_disk_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    """More events than may wait: the rest is counted, not waited for."""
    go = threading.Event()

    def hook(event: dict[str, Any]) -> dict[str, Any]:
        go.wait()
        return event

    log = Log(EventsConfig(path=str(tmp_path)), ORIGIN, hook)
    for _ in range(10_100):
        log.write("run_started")
    assert not log.flush(0.01)
    assert "Full" in log.trouble()
    go.set()
    while not log.flush():
        time.sleep(0.01)
    log.close()
    lines = lines_of(tmp_path)
    lost = sum(line["count"] for line in lines if line["event"] == "events_lost")
    assert lost >= 90
    assert lost + sum(line["event"] == "run_started" for line in lines) == 10_100


def test_files_are_bounded_and_the_last_lines_stay(tmp_path: Path) -> None:
    segments = Segments(tmp_path, "s", most=1000, keep=3)
    for number in range(500):
        segments.append(b'{"n":%03d}\n' % number)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert all(file.stat().st_size <= 1000 for file in files)
    kept = [int(line[5:8]) for file in files for line in file.read_text().splitlines()]
    assert kept == list(range(500 - len(kept), 500))
    with pytest.raises(OSError, match="longer than a file may be"):
        segments.append(b"x" * 1001)


def test_the_next_process_of_a_name_goes_on_after_a_line_that_its_death_tore(tmp_path: Path) -> None:
    first = Segments(tmp_path, "s", most=1000, keep=2)
    first.append(b'{"n":1}\n')
    with (tmp_path / "s.000001.jsonl").open("ab") as file:
        file.write(b'{"n":')
    Segments(tmp_path, "s", most=1000, keep=2).append(b'{"n":2}\n')
    assert (tmp_path / "s.000001.jsonl").read_bytes() == b'{"n":1}\n{"n":\n{"n":2}\n'


def test_who_waited_for_a_disk_in_vain_is_not_made_to_wait_again(tmp_path: Path) -> None:
    go = threading.Event()

    def hook(event: dict[str, Any]) -> dict[str, Any]:
        go.wait()
        return event

    log = Log(EventsConfig(path=str(tmp_path)), ORIGIN, hook)
    log.write("run_started")
    assert not log.flush(0.01)
    assert not log.flush(float("inf"))  # it would not come back
    go.set()
    while not log.flush():
        time.sleep(0.01)
    log.close()
    assert len(lines_of(tmp_path)) == 1
