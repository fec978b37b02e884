"""`gristmill drift` over runs that were committed without Ray, and over files of records."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest
from replay_runs import commit
from support import GOOD, Answers, completion
from typer.testing import CliRunner

from pipeline import commands_drift
from pipeline.cli import app
from pipeline.errors import GristmillError, InputError, OutputError
from pipeline.observe.profile import profile_of
from pipeline.observe.shift import ALPHA, LEAST, compare
from pipeline.runtime.output.lookup import previous_run
from pipeline.runtime.output.profiles import MAX_DOCUMENTS, profiles_of_run
from pipeline.runtime.store import open_store

NAME = "receipt@1"


def run(tmp_path: Path, records: list[Any], prefix: str = "d", **job: Any) -> Path:
    """A run with these records, in the output of others there."""
    answers = {
        f"{prefix}{n}": Answers(completion(record, constrained=isinstance(record, dict)))
        for n, record in enumerate(records)
    }
    return commit(tmp_path, answers, **{"retry": {"max_attempts": 1}, **job})


def shown(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(app, ["drift", *arguments], env={"COLUMNS": "180"})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == code, found.output
    return found.output


def told(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(shown(*arguments, "--json"))
    return document


def gold(tmp_path: Path, records: list[Any], member: str = "") -> str:
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps({member: one} if member else one) + "\n" for one in records))
    return str(path)


CHEAP = [{**GOOD, "vendor": f"Ann & Co {n}", "total": n + 0.5} for n in range(40)]
DEAR = [{**GOOD, "vendor": f"Ann & Co {n}", "total": None if n % 2 else n + 100.5} for n in range(40)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and a later one of the same job in the same output; nobody changes them."""
    place = tmp_path_factory.mktemp("pair")
    return run(place, CHEAP, "a", placement={"unit_documents": 4}), run(place, DEAR, "b")


def test_a_run_is_held_against_the_one_before_it(pair: tuple[Path, Path]) -> None:
    before, now = pair
    document = told(str(now.parent))
    assert (document["before"]["where"], document["now"]["where"]) == (str(before), str(now))
    assert document["before"]["read"] == document["now"]["records"] == {NAME: 40}
    shifted = [f for f in document["findings"] if f["verdict"] == "shifted"]
    assert {(f["pointer"], f["aspect"]) for f in shifted} == {("/total", "presence"), ("/total", "numbers")}
    assert document["shifted"] == len(shifted)
    (presence,) = (f for f in shifted if f["aspect"] == "presence")
    assert {"what": "missing", "before": 0, "now": 20} in presence["counts"]
    assert told(str(now), "--against", str(before))["findings"] == document["findings"]
    assert told(str(now), "--against", str(now))["shifted"] == 0


def test_what_a_person_reads_and_the_exit_codes(pair: tuple[Path, Path]) -> None:
    before, now = pair
    text = shown(str(now), "--against", str(before), "--strict", code=9)
    for words in ("1 field shifted", "/total", "missing 0 → 20", "Fisher's exact test", "40 records before"):
        assert words in text, text
    assert "/vendor" not in text
    assert "/vendor" in shown(str(now), "--against", str(before), "--all")
    assert "0 fields shifted" in shown(str(before), "--against", str(before), "--strict")
    assert "slight" in shown(str(now), "--against", str(before), "--least", "0.9")


def test_a_run_equals_the_records_that_it_was_made_from(tmp_path: Path) -> None:
    """Dates, decimals, absent members and open objects come back from their columns as they were."""
    body: dict[str, Any] = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "sum": {"type": "number", "multipleOf": 0.01},
            "kind": {"type": ["string", "null"]},
            "open": {"type": "object", "additionalProperties": {"type": "number"}},
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"any": {}, "n": {"type": "integer"}}},
            },
        },
        "required": ["day"],
    }
    folder = tmp_path / "schemas" / "things" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(body))
    records = [
        {"day": f"2024-02-{n % 28 + 1:02}", "sum": n / 4, "open": {"x": n, "y": 1}}
        | ({"kind": None} if n % 3 else {})
        | ({"lines": [{"any": ["a", {"b": n}], "n": n}, {"any": 3}]} if n % 4 else {"lines": []})
        for n in range(30)
    ]
    place = run(tmp_path, records, input={"path": str(tmp_path / "in.jsonl"), "schema": "things@1"})
    read = profiles_of_run(open_store(str(place)))
    assert read.records == {"things@1": 30}
    written = profile_of("things@1", ((f"d{n}", record) for n, record in enumerate(records)))
    found = compare(read.profiles, {"things@1": written})
    assert {one.distance for one in found.findings} == {0.0}
    assert {"/open/x", "/lines/*/any/*/b", "/sum"} <= {one.pointer for one in found.findings}


@pytest.mark.parametrize("member", ["", "truth"])
def test_a_file_of_records(tmp_path: Path, pair: tuple[Path, Path], member: str) -> None:
    place = pair[1]
    options = ["--member", member] if member else []
    assert told(str(place), "--against", gold(tmp_path, DEAR, member), *options)["shifted"] == 0
    document = told(str(place), "--against", gold(tmp_path, CHEAP, member), *options)
    assert document["shifted"] == 2
    assert document["before"]["read"] == {NAME: 40}


def test_what_cannot_be_compared_is_told(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    place = str(pair[0])
    with pytest.raises(InputError, match=r"no earlier run of this job.*--against"):
        shown(place)
    with pytest.raises(OutputError, match="no committed run"):
        shown(place, "--against", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="no JSON record"):
        (tmp_path / "bad.jsonl").write_text("{")
        shown(place, "--against", str(tmp_path / "bad.jsonl"))
    with pytest.raises(InputError, match="record 1 is no object with the key 'truth'"):
        shown(place, "--against", gold(tmp_path, CHEAP), "--member", "truth")
    with pytest.raises(InputError, match="holds no record"):
        shown(place, "--against", gold(tmp_path, []))
    assert "no document of" in shown(place, "--against", place, "--schema", "other@1", code=2)
    assert "for a file" in shown(place, "--against", place, "--member", "x", code=2)


def test_only_committed_runs_of_the_same_job_come_before(tmp_path: Path) -> None:
    first = run(tmp_path, CHEAP[:2], "a")
    run(tmp_path, CHEAP[:2], "b", name="another")
    last = run(tmp_path, CHEAP[:2], "c")
    middle_of = previous_run(open_store(str(last)))
    assert middle_of is not None and middle_of.where == str(first)
    assert previous_run(open_store(str(first))) is None
    os.rename(first / "manifest.json", first / "kept.json")
    assert previous_run(open_store(str(last))) is None
    moved = tmp_path / "moved"
    os.rename(last, moved)
    assert previous_run(open_store(str(moved))) is None


def test_a_large_run_is_read_in_evenly_chosen_units_and_says_so(pair: tuple[Path, Path]) -> None:
    place = pair[0]
    store = open_store(str(place))
    read = profiles_of_run(store, documents=12)
    assert read.records == {NAME: 40}
    assert read.profiles[NAME].records == 12
    assert read.profiles[NAME].statuses == {"valid": 40}
    totals = sorted(read.profiles[NAME].fields["/total"].numbers.counts)
    assert totals[0] < 4 and totals[-1] > 24  # from all over the run
    assert "12 of 40 records" in shown(str(place), "--against", str(place), "--documents", "12")


def test_rejected_documents_have_no_record_and_still_count(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    now = run(tmp_path, [*CHEAP[:20], *(["no"] * 20)], "b")
    (status,) = (f for f in told(str(now), "--against", str(pair[0]))["findings"] if f["aspect"] == "status")
    assert status["verdict"] == "shifted"
    assert {"what": "rejected", "before": 0, "now": 20} in status["counts"]


def test_the_command_has_the_defaults_that_others_compare_with() -> None:
    defaults = {name: one.default for name, one in inspect.signature(commands_drift.run).parameters.items()}
    assert (defaults["alpha"], defaults["least"], defaults["documents"]) == (ALPHA, LEAST, MAX_DOCUMENTS)


def test_a_damaged_run_is_told_and_not_guessed(tmp_path: Path) -> None:
    place = run(tmp_path, CHEAP[:3])
    (file,) = place.glob("status=valid/*/*.parquet")
    file.write_bytes(b"PAR1")
    with pytest.raises(GristmillError, match="which the manifest names"):
        shown(str(place), "--against", str(place))


def test_text_of_documents_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J[red]\u202e"
    now = run(tmp_path, [{**GOOD, "vendor": evil}] * 30, "b")
    before = gold(tmp_path, [{**GOOD, "vendor": "Ann"}] * 30)
    text = shown(str(now), "--against", before)
    assert "\x1b" not in text and "\u202e" not in text
    assert "[red]" in text
    assert shown(str(now), "--against", before, "--json").isascii()
