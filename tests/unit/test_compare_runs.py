"""Two committed runs held against each other: what a user reads, and the exit code of a gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replay_runs import commit
from support import RECEIPT, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import OutputError
from pipeline.evaluate.compared import compare_runs
from pipeline.evaluate.gate import gate
from pipeline.jobgate import GateConfig
from pipeline.runtime.store import open_store

DOCUMENTS = 60
EVIL = "\x1b[2J[/b]<script>alert(1)</script>\u202e"


def good(number: int, **values: Any) -> dict[str, Any]:
    return {"vendor": f"Shop {number % 3}", "date": "2024-02-29", "lines": ["tea"], "total": 10.0 + number, **values}


def made(folder: Path, answer: Callable[[int], Any], documents: range = range(DOCUMENTS), **job: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    answers = {f"d{n:03}": Answers(answer(n)) for n in documents}
    return commit(folder, answers, **job)


def constrained(record: Any, **values: Any) -> Any:
    return completion(record, constrained=True, prompt_tokens=100, **values)


@pytest.fixture(scope="module")
def run_a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("a"), lambda n: constrained(good(n)))


def compared(a: Path, b: Path) -> Any:
    return compare_runs(open_store(str(a)), open_store(str(b)))


def shown(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["compare", *words], env={"COLUMNS": "200", "NO_COLOR": "1"})
    return found.exit_code, found.output


def test_what_newly_failed_and_passed_is_counted_and_named(tmp_path: Path, run_a: Path) -> None:
    def answer(n: int) -> Any:
        return constrained({"vendor": EVIL, "total": "much"}) if n < 15 else constrained(good(n))

    b = made(tmp_path, answer)
    found = compared(run_a, b)
    assert found.transitions["valid", "valid"] == DOCUMENTS - 15
    assert sum(found.transitions.values()) == found.pairing.documents == DOCUMENTS
    valid = found.measure("valid")
    assert (valid.a, valid.b, valid.up, valid.down) == (1.0, 0.75, 0, 15)
    assert valid.p == pytest.approx(2 * 0.5**15)
    assert valid.is_worse
    failed = [one for one in found.examples if one.what == "newly failed"]
    assert {one.document_id for one in failed} == {f"d{n:03}" for n in range(15)}
    assert all(one.a == "valid" and one.b.startswith("degraded: ") for one in failed)
    backwards = compared(b, run_a)
    assert backwards.measure("valid").verdict == "changed"
    assert not backwards.measure("valid").is_worse
    assert [one.what for one in backwards.examples][:15] == ["newly passed"] * 15


def test_fields_are_compared_value_by_value(tmp_path: Path, run_a: Path) -> None:
    def answer(n: int) -> Any:
        changed: dict[str, Any] = {}
        if n % 3 == 1:
            changed["vendor"] = "Shop 0"  # one value of three is never said any more
        if n < 20:
            changed["total"] = None
        elif n < 30:
            changed["total"] = 10 + n  # the same number, written in another way
        return constrained(good(n, **changed))

    found = compared(run_a, made(tmp_path, answer))
    by_pointer = {one.pointer: one for one in found.fields}
    assert (by_pointer["/total"].same, by_pointer["/total"].vanished) == (40, 20)
    assert (by_pointer["/vendor"].same, by_pointer["/vendor"].changed) == (40, 20)
    assert by_pointer["/date"].differ == by_pointer["/lines/*"].differ == 0
    moved = {(one.pointer, one.name): (one.up, one.down) for one in found.measures if one.verdict == "changed"}
    assert moved["/total", "filled"] == (0, 20)
    assert moved["/vendor", "value Shop 1"] == (0, 20)
    assert moved["/vendor", "value Shop 0"] == (20, 0)
    completeness = found.measure("completeness")
    assert completeness.a == 1.0
    assert completeness.b == pytest.approx(1 - 20 / (4 * DOCUMENTS))
    ruled = gate(found, GateConfig(min_documents=10))
    (shift,) = [rule for rule in ruled.rules if rule.name == "field_shift"]
    assert shift.state == "open" and shift.alarm
    assert ruled.decision != "promote"


def test_the_same_again_is_promoted_once_there_are_enough_documents(tmp_path: Path, run_a: Path) -> None:
    again = made(tmp_path, lambda n: constrained(good(n)))
    found = compared(run_a, again)
    assert not [one for one in found.measures if one.verdict == "changed"]
    assert found.fields and not any(one.differ for one in found.fields)
    assert not found.examples
    held = gate(found, GateConfig())
    assert held.decision == "hold"
    assert any("min_documents: 60" in words for words in held.reasons)
    valid = next(rule for rule in held.rules if rule.name == "max_valid_drop")
    assert valid.state == "open"
    assert 200 < valid.needed < 700
    wide = {name: 0.2 for name in GateConfig.model_fields if name.startswith("max_") and name != "max_field_change"}
    assert gate(found, GateConfig(min_documents=50, **wide)).decision == "promote"


def test_documents_of_one_run_only_are_told_and_in_no_pair(tmp_path: Path, run_a: Path) -> None:
    b = made(tmp_path, lambda n: constrained(good(n)), range(10, DOCUMENTS + 5))
    found = compared(run_a, b)
    assert (found.pairing.documents, found.pairing.only_a, found.pairing.only_b) == (50, 10, 5)
    assert found.pairing.ids_only_a[0] == "d000"
    assert found.pairing.ids_only_b[0] == "d060"
    assert any("10 documents are only in A and 5 only in B" in words for words in found.warnings)
    turned = compared(b, run_a).pairing
    assert (turned.only_a, turned.only_b, turned.ids_only_a[0]) == (5, 10, "d060")


def test_runs_without_a_common_document_are_refused(tmp_path: Path, run_a: Path) -> None:
    b = made(tmp_path, lambda n: constrained(good(n)), range(500, 503))
    with pytest.raises(OutputError, match="no document in common"):
        compared(run_a, b)


def test_rows_that_repeat_an_id_are_in_no_pair(tmp_path: Path, run_a: Path) -> None:
    rows = [{"id": f"d{n:03}", "text": f"text {n}"} for n in (0, 1, 1, 2)]
    answers = {f"d{n:03}": Answers(constrained(good(n))) for n in range(3)}
    found = compared(run_a, commit(tmp_path, answers, rows))
    assert (found.pairing.documents, found.pairing.repeated) == (3, 1)
    assert found.measure("valid").b == 1.0


def test_what_was_changed_is_named_and_two_things_at_once_are_warned_of(tmp_path: Path, run_a: Path) -> None:
    one = made(tmp_path / "one", lambda n: constrained(good(n)), sampling={"max_tokens": 60})
    found = compared(run_a, one)
    ((kind, name, before, now),) = [
        (c.kind, c.name, c.a, c.b) for c in found.changes if c.kind not in ("input", "model")
    ]
    assert (kind, name, before, now) == ("budget", "sampling.max_tokens", 120, 60)
    two = made(tmp_path / "two", lambda n: constrained(good(n)), sampling={"max_tokens": 60, "constrained": False})
    assert any("constraint" in words and "at once" in words for words in compared(run_a, two).warnings)


def test_answers_that_lost_their_constraint_roll_back_whatever_they_look_like(tmp_path: Path, run_a: Path) -> None:
    found = compared(run_a, made(tmp_path, lambda n: completion(good(n), prompt_tokens=100)))
    assert found.measure("valid").change == 0
    ruled = gate(found, GateConfig())
    assert ruled.decision == "roll_back"
    assert any(f"{DOCUMENTS} of {DOCUMENTS} documents were constrained in A" in words for words in ruled.reasons)
    assert gate(found, GateConfig(on_constraint_lost="ignore")).decision == "hold"


def test_the_command_tells_it_all_and_what_documents_say_does_not_act(tmp_path: Path, run_a: Path) -> None:
    def answer(n: int) -> Any:
        return constrained({"vendor": EVIL, "total": "much"}) if n < 30 else constrained(good(n, vendor=EVIL))

    b, page = made(tmp_path, answer), tmp_path / "page.html"
    code, text = shown(str(run_a), str(b), "--output", str(page), "--strict")
    assert code == 9
    assert "verdict: roll_back" in text
    assert "newly failed" in text and "max_valid_drop" in text
    assert "\x1b" not in text and "\u202e" not in text
    html = page.read_text(encoding="utf-8")
    assert "<script>" not in html and "\x1b" not in html and "\u202e" not in html
    assert 'data-f="measure|valid||b" data-v="0.5"' in html
    code, text = shown(str(run_a), str(b), "--json")
    document = json.loads(text)
    assert code == 0
    assert document["verdict"] == document["gate"]["decision"] == "roll_back"
    assert document["transitions"] == {"valid degraded": 30, "valid valid": 30}


def test_of_large_runs_the_same_documents_are_read_and_the_rest_is_told(tmp_path: Path) -> None:
    small = {"placement": {"unit_documents": 10}}
    a = made(tmp_path / "a", lambda n: constrained(good(n)), **small)
    b = made(tmp_path / "b", lambda n: constrained(good(n)), range(DOCUMENTS + 5), **small)
    for one, two in ((a, b), (b, a)):
        found = compare_runs(open_store(str(one)), open_store(str(two)), most=20)
        assert found.pairing.unread == DOCUMENTS - found.pairing.documents
        assert 15 <= found.pairing.documents <= 25
        assert not found.pairing.only_a and not found.pairing.only_b


def test_another_version_of_a_schema_is_paired_by_id_and_its_prompt_is_no_change_of_its_own(
    tmp_path: Path, run_a: Path
) -> None:
    folder = tmp_path / "schemas" / "receipt" / "2"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps({**RECEIPT, "required": ["vendor"]}))
    b = made(
        tmp_path,
        lambda n: constrained(good(n)),
        input={"path": str(tmp_path / "in.jsonl"), "schema": "receipt@2"},
    )
    found = compared(run_a, b)
    assert (found.pairing.documents, found.pairing.renamed) == (DOCUMENTS, DOCUMENTS)
    assert not any(one.differ for one in found.fields)
    changed = {one.name for one in found.changes if one.kind in ("schema", "prompt", "constraint")}
    assert changed == {"schema receipt@1", "schema receipt@2"}


def test_gold_says_which_of_two_runs_is_nearer_to_what_is_right(tmp_path: Path, run_a: Path) -> None:
    def answer(n: int) -> Any:
        return constrained(good(n, vendor="Another")) if n < 30 else constrained(good(n))

    b, gold = made(tmp_path, answer), tmp_path / "gold.jsonl"
    rows = [{"key": f"d{n:03}", "right": good(n)} for n in range(35)]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ("--gold", str(gold), "--gold-id", "key", "--gold-record", "right")
    code, text = shown(str(run_a), str(b), "--json", *options)
    assert code == 0
    (found,) = [one for one in json.loads(text)["measures"] if one["name"] == "gold"]
    assert (found["documents"], found["a"], found["up"], found["down"]) == (35, 1.0, 0, 30)
    assert found["b"] == pytest.approx((5 + 30 * 0.75) / 35)
    assert found["verdict"] == "changed"
    gold.write_text('{"key": "elsewhere", "right": {"vendor": "x"}}\n', encoding="utf-8")
    lost = CliRunner().invoke(app, ["compare", str(run_a), str(b), *options])
    assert "no document of both runs has gold" in str(lost.exception)


def test_rules_come_from_a_file_and_a_wrong_key_is_named(tmp_path: Path, run_a: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("min_documents: 1\nmax_valid_drip: 0.1\n", encoding="utf-8")
    found = CliRunner().invoke(app, ["compare", str(run_a), str(run_a), "--rules", str(rules)])
    assert found.exit_code != 0
    assert "max_valid_drop" in str(found.exception)
    rules.write_text("min_documents: 1\non_field_shift: ignore\n", encoding="utf-8")
    code, text = shown(str(run_a), str(run_a), "--rules", str(rules))
    assert code == 0
    assert "min_documents: 60 paired documents, 1 are asked for" in text
