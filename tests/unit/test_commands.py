"""Commands with hostile words: exit codes and messages, and no traceback."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import cli, commands_run
from pipeline.observe.visible import MAX_ID, console_on
from pipeline.records import Manifest

EVIL = ["[/b]", "[red]x[/red]", "a\x1b[2Jb", "\u202eb", os.fsdecode(b"\xff\xfe")]


def told(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Exit code and all output; the streams are strict, as those of a terminal are."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr(sys, "argv", ["gristmill", *arguments])
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    stream.flush()
    return int(stopped.value.code or 0), stream.buffer.getvalue().decode()


@pytest.mark.parametrize("word", EVIL)
@pytest.mark.parametrize("command", [["run"], ["inspect"], ["inspect", "--status"]])
def test_hostile_words_are_told_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str], word: str
) -> None:
    where = str(tmp_path) if "--status" in command else ""
    code, output = told(monkeypatch, *command, word, *([where] if where else []))
    assert code in (2, 6)
    assert "Traceback" not in output
    assert not set(output) & set("\x1b\u202e")
    assert word not in ("[/b]", "[red]x[/red]") or word in output


def test_an_id_of_undecodable_bytes_is_not_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pq.write_table(pa.table({"document_id": ["a"], "layer": [1]}), tmp_path / "part.parquet")
    file = {"path": "part.parquet", "status": "valid", "schema": "x@1", "rows": 1, "bytes": 1}
    manifest = Manifest("r", "j", 1, {"valid": 1}, "0", {}, (file,), {})
    (tmp_path / "manifest.json").write_text(json.dumps(dataclasses.asdict(manifest)))
    code, output = told(monkeypatch, "inspect", str(tmp_path), "--id", os.fsdecode(b"\xff"))
    assert (code, "matches" in output) == (0, True)


def test_hostile_ids_and_schemas_do_not_stop_a_run_at_its_start() -> None:
    console = console_on()
    console.file, console.width = io.StringIO(), 1000
    watcher = commands_run.Watcher(console)
    run: Any = SimpleNamespace(where="/out/[/b]\x1b", committed_units=lambda: {"u0"}, manifest=lambda: None)
    scanned = SimpleNamespace(
        units=(SimpleNamespace(id="u0", rows=1), SimpleNamespace(id="u1", rows=2)),
        documents=3,
        schema_counts={"[red]@1": 2, "": 1},
        duplicate_count=2,
        duplicate_examples=("[/b]", "\x1b[2J" + "y" * 500),
    )
    watcher("opened", run)
    watcher("scanned", scanned)
    output = console.file.getvalue()
    assert "[/b]" in output
    assert "2 [red]@1" in output
    assert "\\x1b[2J" in output
    assert "\x1b" not in output
    assert "y" * MAX_ID not in output
    assert "resuming /out/[/b]\\x1b: 1 documents" in output
