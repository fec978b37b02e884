"""What a person may name as a schema or as samples, and what a run says of its plans."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pipeline import commands_run
from pipeline.compile.check import Trial
from pipeline.compile.plans import Plans
from pipeline.compile.report import short_form
from pipeline.compile.report_sources import MAX_SAMPLE_BYTES, load_entries, load_entry, read_samples
from pipeline.errors import InputError
from pipeline.observe.visible import console_on
from pipeline.schema.plan import refused_plan
from pipeline.schema.shape.shapes import Left
from tests.support import RECEIPT, plan_of

ROOT = Path(__file__).resolve().parents[3]


def test_the_short_form_of_plans() -> None:
    plan = plan_of(name="good@1")
    verdicts = {("", "type"): ("enforced", ""), ("", "required"): ("dropped", "")}
    tried = Trial("xgrammar", "ok", verdicts=verdicts, left=(Left("", "required", "why"),))
    plans = Plans({"bad@1": refused_plan("bad@1", "", "no"), "good@1": plan}, {"good@1": tried}, {"good@1": "because"})
    bad, good = short_form(plans)
    assert (bad["refused"], bad["sites"]) == ("no", None)
    assert (good["backend"], good["sites"], good["enforced"], good["why"]) == ("xgrammar", 2, 1, "because")


def test_a_run_prints_its_plans_and_nothing_of_a_schema_acts() -> None:
    console = console_on()
    console.file, console.width = io.StringIO(), 1000
    evil = "a\x1b[2J\n[red]"
    commands_run.Watcher(console)(
        "planned", Plans({"b@1": refused_plan("b@1", "", evil), "g@1": plan_of(name="g@1")}, {}, {})
    )
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 2
    assert "refused" in lines[0]
    assert "a\\x1b[2J\\n[red]" in lines[0]
    assert lines[1].startswith("g@1: xgrammar")


def test_a_schema_is_named_by_name_by_folder_or_by_file(tmp_path: Path) -> None:
    root = ROOT / "schemas"
    (tmp_path / "my thing.json").write_text(json.dumps(RECEIPT))
    by_name, by_folder = load_entry(root, "receipt@1"), load_entry("elsewhere", str(root / "receipt" / "1"))
    assert by_name.schema == by_folder.schema
    assert by_name.folder
    assert by_folder.folder
    assert by_name.folder.samefile(by_folder.folder)
    file = load_entry(root, str(tmp_path / "my thing.json"))
    assert (file.name, file.folder) == ("my_thing@0", None)


@pytest.mark.parametrize(
    "word", ["nothing@1", "", "\x00", "a" * 5000, "no/such.json", "\x1b[2J", "receipt", "x\x00.json"]
)
def test_what_is_no_schema_is_a_refusal_and_not_an_exception(word: str) -> None:
    entry = load_entry(ROOT / "schemas", word)
    assert entry.refused is not None
    assert entry.refused.code == "unknown_schema"
    assert entry.name == word


def test_two_files_of_one_name_are_two_schemas(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "a.json" for folder in ("x", "y")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(json.dumps(RECEIPT))
    entries = load_entries(tmp_path, [*map(str, paths), str(paths[0])])
    assert [entry.name for entry in entries] == ["a@0", "a_2@0"]


@pytest.mark.parametrize(
    "text", ["{", '{"a": 1}\n[', "[" * 100_000, "[" * 90 + "]" * 90, "NaN", r'"\ud800"', "x" * (1 << 20) + "x"]
)
def test_samples_that_are_no_records_are_refused_with_their_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=r"line \d"):
        read_samples(path)


def test_samples_are_read_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"a": 1}\n\n"\u2028"\n', encoding="utf-8")
    assert read_samples(path) == [{"a": 1}, "\u2028"]
    with pytest.raises(InputError, match="cannot read"):
        read_samples(tmp_path / "none")


def test_a_sample_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        for _ in range(MAX_SAMPLE_BYTES // (1 << 19) + 2):
            file.write(b'"' + b"x" * ((1 << 19) - 2) + b'"\n')
    with pytest.raises(InputError, match="Take fewer"):
        read_samples(path)


def test_an_example_that_nests_without_end_is_a_refusal(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text('{"type": "array", "items": {"$ref": "#"}}')
    (folder / "examples.jsonl").write_text(
        json.dumps({"document": "", "record": 0}).replace("0", "[" * 900 + "]" * 900)
    )
    entry = load_entry(tmp_path, "deep@1")
    assert entry.refused is not None
