"""The summary of a run: rates by path with their own denominators, and alarms before anything else."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from rich.console import Console
from support import GOOD, Answers, completion, extracted

from pipeline.observe.console import summary
from pipeline.observe.tally import Tally, tally
from pipeline.records import Field, Manifest, Outcome


def shown(*outcomes: Outcome, total: Tally | None = None, style: bool = False) -> list[str]:
    total = total or tally(outcomes)
    counts: Any = {status: total.statuses[status] for status in ("valid", "degraded", "rejected")}
    manifest = Manifest("r", "j", total.documents, counts, "", {"receipt@1": "d"}, (), total.to_json())
    written = io.StringIO()
    console = Console(file=written, width=250, force_terminal=style, color_system="standard" if style else None)
    console.print(summary(manifest, "out"))
    return written.getvalue().splitlines()


def line(lines: list[str], *words: str) -> str:
    (found,) = [item for item in lines if all(word in item for word in words)]
    return found


def test_rates_stand_by_path_each_out_of_its_own_answers() -> None:
    bad = completion({"vendor": 5, "total": 1}, engine="small", constrained=True, output_tokens=10)
    good = completion(GOOD, engine="big", output_tokens=20)
    lines = shown(extracted(Answers(bad, good)), extracted(Answers(dataclasses.replace(bad, text=good.text))))
    engines = [item.split(",")[0].strip() for item in lines if item.startswith("answers of")]
    assert engines == ["answers of big", "answers of small"]
    small = line(lines, "constrained", "(50.0%)").replace("(", "").split()
    assert small[:4] == ["constrained", "1", "2", "2"]
    assert small[4:] == ["100.0%)", "0", "0.0%)", "1", "50.0%)", "1", "50.0%)", "0", "0.0%)", "20"]
    assert line(lines, " free ").split()[:5] == ["free", "2", "1", "1", "(100.0%)"]
    assert not [item for item in lines if "success" in item.lower()]


def test_alarms_come_first_in_red_and_a_broken_grammar_is_called_our_bug() -> None:
    broken = extracted(Answers(completion("{", constrained=True), GOOD), backoff_seconds=0)
    first, second, *rest = shown(broken, style=True)
    assert "ALARM constraint_failed 1" in first
    assert "31m" in first
    assert "format failures on a constrained path are a bug of ours" in second
    assert "31m" in second
    assert rest


def test_an_alarm_that_is_no_format_failure_is_not_called_one() -> None:
    lines = shown(extracted(Answers(completion("", "abort"), GOOD), backoff_seconds=0))
    assert "ALARM engine_abort 1" in lines[0]
    assert not [item for item in lines if "bug of ours" in item]


def test_a_run_without_alarms_or_answers_shows_neither() -> None:
    lines = shown(extracted(Answers(GOOD)))
    assert not [item for item in lines if "ALARM" in item or "bug of ours" in item]
    assert not [item for item in shown(total=Tally()) if "answers of" in item]


def test_what_retries_bought_and_what_was_grounded_is_told() -> None:
    tokens = {"prompt_tokens": 200, "cached_tokens": 190}
    bad = completion({"vendor": 5, "total": 1}, output_tokens=10, **tokens)
    again = extracted(Answers(bad, completion(GOOD, output_tokens=30, **tokens)))
    fields = (Field("/a", "exact"), Field("/b", "fuzzy"), Field("/c", "none"))
    lines = shown(dataclasses.replace(again, fields=fields))
    assert "1 of 1 documents asked (100.0%), resolved 1 (1 by answer 2 valid)" in line(lines, "asked the model again")
    assert "30 output tokens; 190 of 200 prompt tokens cached (95.0%)" in line(lines, "  for ")
    assert "2 of 3 looked for (66.7%)" in line(lines, "leaves found")
