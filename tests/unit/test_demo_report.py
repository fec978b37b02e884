"""The demo's report: what it says without a run, and of documents that it does not know."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from jobs import demo_report


@pytest.mark.parametrize("arguments", [[], ["nowhere[/b]"]])
def test_without_a_manifest_it_says_so(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_report, "OUTPUT", tmp_path / "demo")
    assert demo_report.main(arguments) == 1
    told = capsys.readouterr().err
    assert "no committed run" in told
    assert str(arguments[0] if arguments else tmp_path / "demo") in told.replace("\n", "")


def test_unknown_documents_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truths = tmp_path / "demo.jsonl"
    truths.write_text(
        json.dumps({"id": "d1", "ground_truth": {"a[/b]": 1}, "text": "\u2028\x85"}, ensure_ascii=False) + "\n"
    )
    monkeypatch.setattr(demo_report, "OUT", truths)
    rows = [{"document_id": name, "schema": "s@1", "record": {"a[/b]": 1}} for name in ("d1", "gone")]
    table = demo_report.quality(rows)
    assert table.row_count == 1
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert "a[/b]" in console.file.getvalue()
    monkeypatch.setattr(demo_report, "OUT", tmp_path / "never gathered")
    assert demo_report.quality(rows).row_count == 0
