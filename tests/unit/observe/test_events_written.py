"""Where events are written: how much there can be, and what happens when a disk is full, late or gone."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from event_lines import ORIGIN, REJECTED, RETRIED, lines_of

from pipeline.jobplacement import EventsConfig
from pipeline.observe.events.log import Log
from pipeline.observe.events.segments import Segments


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
    assert "late" in log.trouble()  # it is said, and once
    assert log.trouble() == ""
    go.set()
    while not log.flush():
        time.sleep(0.01)
    log.close()
    assert len(lines_of(tmp_path)) == 1
