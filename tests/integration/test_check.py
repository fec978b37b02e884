"""`gristmill check` as a user meets it. The sandbox starts twice for all of this: other calls find answers on disk."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline import cli
from pipeline.compile import lock
from pipeline.compile.lock_changes import changes
from pipeline.schema.registry import available

ROOT = Path(__file__).resolve().parents[2]
EVIL = "a\x1b[2J\u202e[red]x[/red]\x7f"

CLEAN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": ["string", "null"], "maxLength": 8, "description": "What was bought"},
        "count": {"type": ["integer", "null"], "minimum": 0, "maximum": 99, "description": "How many of it"},
    },
    "required": ["item", "count"],
    "additionalProperties": False,
}
HOSTILE = {
    "type": "object",
    "properties": {EVIL: {"type": "string", "format": EVIL, "description": EVIL}},
    "required": [EVIL],
}
UNSATISFIABLE = {"type": "object", "properties": {"a": False}, "required": ["a"]}
FILES = {"clean": CLEAN, "hostile": HOSTILE, "impossible": UNSATISFIABLE, "remote": {"$ref": "https://x.test/y"}}


class Command:
    """Runs `gristmill check` in this process: its libraries are loaded in the sandbox, not here."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        words = ["gristmill", "check", "--schemas", str(ROOT / "schemas"), *arguments]
        self._monkeypatch.setattr(sys, "argv", words)
        self._monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        output, errors = self._capsys.readouterr()
        return int(stopped.value.code or 0), output, errors

    def file(self, name: str) -> str:
        return str(self.folder / f"{name}.json")

    def write(self, name: str, body: Any) -> str:
        (self.folder / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
        return self.file(name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("check")
    for name, body in FILES.items():
        (folder / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    (folder / "broken.json").write_text("{", encoding="utf-8")
    return folder


@pytest.fixture
def command(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(files, monkeypatch, capsys)


def test_refused_schemas_stand_beside_good_ones_in_one_document(command: Command) -> None:
    words = ["receipt@1", *map(command.file, [*FILES, "broken"]), "nothing@1"]
    code, output, _ = command(*words, "--json")
    document = json.loads(output)
    assert (code, document["exit_code"]) == (4, 4)
    told = {one["source"].rpartition("/")[2]: one for one in document["schemas"]}
    refused = {name: one["refused"]["code"] for name, one in told.items() if one["refused"]}
    assert refused == {
        "impossible.json": "unsatisfiable",
        "remote.json": "bad_ref",
        "broken.json": "not_json",
        "nothing@1": "unknown_schema",
    }
    good = told["receipt@1"]
    assert {site["caught_by"] for site in good["sites"]} <= {"grammar", "validator"}
    assert {trial["admission"] for trial in good["backends"].values()} == {"admitted"}
    assert all(trial["compile_seconds"] > 0 and trial["mask_seconds"]["p99"] > 0 for trial in good["backends"].values())
    assert good["budget"]["numbers"]["shortest_tokens"] < good["budget"]["prompt_tokens"]
    assert [row["path"] for row in good["columns"]] == ["company", "date", "address", "currency", "total"]
    assert good["lock"]["state"] == "fresh", good["lock"]
    assert len({tuple(one) for one in document["schemas"]}) == 1
    # The second time all comes from disk, and is the same.
    again = json.loads(command(*words, "--json")[1])
    assert again == document


@pytest.mark.parametrize("how", [[], ["--all"], ["--json"]])
def test_hostile_schemas_print_as_they_are_written(command: Command, how: list[str]) -> None:
    code, output, errors = command(command.file("hostile"), *how)
    assert code == 0
    assert not set(output + errors) & set("\x1b\u202e\x7f")
    assert "[red]x[/red]" in output
    assert "nobody" in output
    assert "Traceback" not in errors


def test_strict_minds_a_keyword_that_nobody_checks(command: Command) -> None:
    code, output, _ = command(command.file("hostile"), "--strict")
    assert code == 9
    assert "left_to_nobody" in output
    code, output, _ = command(command.file("clean"), "--strict")
    assert code == 0, output


def test_an_old_version_is_compared_with(command: Command) -> None:
    wider = command.write("old", {**CLEAN, "required": ["item"]})
    code, output, _ = command(command.file("clean"), "--against", wider, "--strict")
    assert code == 9
    assert "against old@0" in output
    found = json.loads(command(command.file("clean"), "--against", command.file("clean"), "--json")[1])
    assert found["schemas"][0]["drift"]["worst"] == "compatible"


def test_a_job_gives_schemas_and_limits(command: Command) -> None:
    job = {
        "name": "j",
        "input": {"path": "in.jsonl", "schema": "receipt@1"},
        "output": "out",
        "schemas": str(ROOT / "schemas"),
        "engine": {"engine": "sampler", "backend": "guidance"},
        "sampling": {"max_tokens": 12},
    }
    path = command.folder / "job.yaml"
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    code, output, _ = command("--job", str(path))
    assert code == 4
    assert "below_shortest" in output
    assert "max_tokens is 12" in output
    assert "xgrammar" not in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a schema"),
        (["receipt@1", "--backend", "outlines"], "not auto, xgrammar or guidance"),
        (["receipt@1", "package@1", "--against", "receipt@1"], "name one schema"),
        (["receipt@1", "--against", "receipt@0"], "unknown schema"),
        (["receipt@1", "--job", "none.yaml"], "none.yaml"),
    ],
)
def test_options_that_cannot_be_meant(command: Command, arguments: list[str], words: str) -> None:
    code, output, errors = command(*arguments)
    assert code == 2
    assert words in " ".join((output + errors).split())


def test_a_file_has_no_lock_and_a_model_must_be_there(command: Command) -> None:
    assert command(command.file("clean"), "--write-lock")[0] == 2
    assert command("receipt@1", "--model", "./no-such-model")[0] == 5
    assert command("receipt@1", "--samples", "no-such-file")[0] == 3


def test_committed_locks_are_what_trials_find_now(command: Command, tmp_path: Path) -> None:
    root = tmp_path / "schemas"
    shutil.copytree(ROOT / "schemas", root)
    names = available(root)
    document = json.loads(command("--schemas", str(root), *names, "--write-lock", "--raw", "--json")[1])
    for name, one in zip(names, document["schemas"], strict=True):
        place = name.replace("@", "/")
        kept, now = lock.read(ROOT / "schemas" / place), lock.read(root / place)
        assert kept
        assert now
        assert not list(changes(kept, now)), f"{name}: write it anew with --write-lock if that is meant"
        assert one["lock"]["state"] == "written"
        assert all(trial["raw"]["refused"] or trial["raw"]["verdicts"] for trial in one["backends"].values())
