"""Corrections become gold: each once, none lost, none over another that says otherwise; and the commands."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from replay_runs import answers, commit
from support import GOOD, RECEIPT, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import GristmillError, InputError
from pipeline.evaluate.gold import GoldConfig, fault_of, read_gold
from pipeline.evaluate.review.begun import without_absent
from pipeline.evaluate.review.changes import changes
from pipeline.evaluate.review.corrections import Correction
from pipeline.evaluate.review.golden import merge
from pipeline.evaluate.review.sheet import read_sheet
from pipeline.schema.validator import validator_of

Make = Callable[..., Path]
KEY = {"run": "r", "source": "in#1", "text_digest": "t", "schema_digest": "s"}


@pytest.fixture
def committed(tmp_path: Path) -> Make:
    """Commits a run of a small job: `commit` of `replay_runs.py` in a folder of the test's own."""
    return partial(commit, tmp_path)


def told(*arguments: Any) -> tuple[int, str]:
    shown = CliRunner().invoke(app, ["review", *map(str, arguments)], env={"COLUMNS": "150"})
    if isinstance(shown.exception, GristmillError):
        return shown.exception.exit_code, str(shown.exception)
    if shown.exception and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return shown.exit_code, shown.output


def correction(key: str = "a", record: Any = GOOD, schema: str = "receipt@1", **parts: Any) -> Correction:
    given: dict[str, Any] = {"place": "row 2", "by": "ann", "note": "", "changed": (), "key": KEY, **parts}
    return Correction(id=key, schema=schema, record=record, **given)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_gold_of_others_stays_byte_for_byte_and_nothing_is_doubled(tmp_path: Path) -> None:
    gold = tmp_path / "deep" / "gold.jsonl"
    gold.parent.mkdir()
    before = b'{"id" :  "x", "record": {"v": 1.50}, "acceptable": {"/v": [2]}}\r\n\n{"id": 7, "record": null}'
    gold.write_bytes(before)
    merged = merge(gold, [correction("a"), correction("b")], "now")
    assert (merged.added, merged.known) == (2, 0)
    kept = gold.read_bytes()
    assert kept.startswith(before.replace(b"\n\n", b"\n"))
    for _ in range(2):
        merged = merge(gold, [correction("a"), correction("b"), correction("7", None)], "later")
        assert (merged.added, merged.known, merged.conflicts) == (0, 3, [])
        assert gold.read_bytes() == kept
    rows = {row.id: row for row in read_gold(GoldConfig(str(gold)))}
    assert (sorted(rows), rows["a"].record, rows["a"].schema) == (["7", "a", "b", "x"], GOOD, "receipt@1")


def test_gold_that_says_otherwise_is_told_and_replaced_only_on_request(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    merge(gold, [correction("a"), correction("b", schema="other@1")], "monday")
    kept = gold.read_bytes()
    other = {**GOOD, "total": 1, "lines": []}
    merged = merge(gold, [correction("a", other, by="zoe"), correction("c")], "tuesday")
    (conflict,) = merged.conflicts
    assert (conflict.id, conflict.line, conflict.by) == ("a", 1, "ann")
    assert set(conflict.pointers) == {"/total", "/lines/0", "/lines/1"}
    assert merged.added == 1
    assert gold.read_bytes().startswith(kept)
    for record, when in ((other, "tuesday"), (GOOD, "wednesday")):
        assert merge(gold, [correction("a", record, by="zoe")], when, replace=True).replaced == 1
    assert len(lines(gold)) == 3
    row = lines(gold)[0]
    assert row["record"] == GOOD
    assert [(one["review"]["by"], one["review"]["when"]) for one in row["review"]["before"]] == [
        ("ann", "monday"),
        ("zoe", "tuesday"),
    ]


def test_one_document_may_have_gold_for_each_schema(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    both = [correction("a"), correction("a", {"other": 1}, "other@1")]
    assert merge(gold, both, "now").added == 2
    gold.write_text('{"id": "a", "record": {}}\n')  # of a schema that it does not name: the first takes its place
    gold.chmod(0o600)
    merged = merge(gold, both, "now", replace=True)
    assert (merged.replaced, merged.added) == (1, 1)
    assert {row["schema"]: row["record"] for row in lines(gold)} == {"receipt@1": GOOD, "other@1": {"other": 1}}
    assert gold.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    ["{", "[1]", '{"id": "a"}', '{"record": {}}', '{"id": true, "record": 1}', '{"id":"a","id":"b","record":1}'],
)
def test_a_damaged_gold_is_not_touched(tmp_path: Path, content: str) -> None:
    gold = tmp_path / "gold.jsonl"
    for text in (content + "\n", '{"id": "a", "record": 1}\n' * 2, "[" * 99_999):
        gold.write_text(text)
        with pytest.raises(InputError, match=r"line \d"):
            merge(gold, [correction()], "now")
        assert gold.read_text() == text
    with pytest.raises(InputError, match=r"\.jsonl"):
        merge(tmp_path / "gold.parquet", [correction()], "now")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["gold.jsonl"]


def test_two_who_import_at_once_lose_nothing(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    names = [f"{person}{number}" for person in "abcd" for number in range(10)]

    def work(person: str) -> None:
        for name in names:
            if name.startswith(person):
                merge(gold, [correction(name), correction("same")], "now")

    threads = [threading.Thread(target=work, args=(person,)) for person in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row["id"] for row in lines(gold)) == sorted([*names, "same"])


def test_a_stored_record_is_shown_without_the_members_it_never_had() -> None:
    body = {**RECEIPT, "additionalProperties": False}
    stored = {"vendor": None, "date": None, "lines": None, "total": None}
    # A required member stays, so that a person sees what is to be filled in.
    assert without_absent(stored, body) == {"vendor": None, "total": None}


def test_a_person_corrects_a_run_and_the_corrections_are_gold(committed: Make, tmp_path: Path) -> None:
    some = {key: answers()[key] for key in ("cut", "broken", "hopeless", "valid")}
    run, sheet, gold = committed(some), tmp_path / "o.jsonl", tmp_path / "gold.jsonl"
    code, output = told("export", run.parent, sheet, "--status", "degraded", "--status", "rejected")
    assert (code, "rows of" in output) == (0, True)
    assert told("export", run, sheet)[0] == 6
    code, output = told("import", sheet, "--gold", gold, "--schemas", tmp_path / "schemas")
    assert (code, "0 added" in output, gold.exists()) == (0, True, False)
    rows = lines(sheet)
    assert {row["id"] for row in rows} == {"cut", "broken", "hopeless"}
    cut, broken = (next(row for row in rows if row["id"] == name) for name in ("cut", "broken"))
    assert cut["record"] == {"vendor": "Ann", "total": None}
    assert broken["record"] == {"vendor": None, "date": None, "lines": None, "total": None}
    cut |= {"verdict": "ok", "record": {"vendor": "Ann & Co", "total": 19.9}}
    broken |= {"verdict": "ok", "by": "zoe", "record": {"vendor": 5}}
    sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("import", sheet, "--gold", gold, "--schemas", tmp_path / "schemas", "--by", "ann")
    code, output = told(*arguments)
    assert (code, "1 added" in output, "line" in output, "broken" in output) == (9, True, True, True)
    (row,) = lines(gold)
    assert (row["id"], row["record"], row["review"]["by"], row["review"]["verdict"]) == (
        *("cut", {"vendor": "Ann & Co", "total": 19.9}),
        *("ann", "corrected"),
    )
    assert {"pointer": "/total", "was": None, "is": 19.9} in row["review"]["changed"]
    broken["record"] = {"vendor": "Ann & Co", "total": None}
    sheet.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, output = told(*arguments, "--json")
    assert (code, json.loads(output)["added"], json.loads(output)["known"]) == (0, 1, 1)
    validator = validator_of(RECEIPT)
    assert [fault_of(row.record, validator) for row in read_gold(GoldConfig(str(gold)))] == ["", ""]


def test_rows_are_chosen_by_code_and_sampled_by_seed(committed: Make, tmp_path: Path) -> None:
    run = committed({f"d{n}": Answers(completion('{"vendor":"Ann","lines":["te', "length")) for n in range(9)})
    picked = []
    for turn, seed in enumerate((1, 1, 2)):
        code, output = told("export", run, tmp_path / f"{turn}.csv", "--documents", 3, "--seed", seed)
        assert (code, "9 rows match; 3 were picked" in output) == (0, True)
        picked.append([row.key["id"] for row in read_sheet(tmp_path / f"{turn}.csv")])
    assert picked[0] == picked[1] != picked[2]
    assert told("export", run, tmp_path / "x.csv", "--code", "repetition")[0] == 3
    assert told("export", run, tmp_path / "x.csv", "--code", "nonsense")[0] == 2
    assert told("export", run, tmp_path / "x.csv", "--status", "good")[0] == 2
    assert not (tmp_path / "x.csv").exists()


def test_documents_that_repeat_an_id_or_are_gone_are_told(committed: Make, tmp_path: Path) -> None:
    cut = Answers(completion('{"vendor":"Ann","lines":["te', "length"))
    rows = [{"id": "a", "text": "one"}, {"id": "a", "text": "two"}, {"id": "b", "text": "three"}]
    run = committed({"a": cut, "b": cut}, rows)
    code, output = told("export", run, tmp_path / "o.csv", "--status", "degraded", "--status", "rejected")
    assert (code, "1 rows repeat an id" in output) == (0, True)
    (tmp_path / "in.jsonl").unlink()
    code, output = told("export", run, tmp_path / "p.csv")
    assert (code, "documents are gone" in output) == (3, True)


def test_changes_name_each_place_and_tell_true_from_one() -> None:
    before, after = {"a": 1, "b": [1, 2], "c/d": None, "e": True}, {"a": 1.0, "b": [1, 3, 4], "e": 1, "f": {}}
    assert list(changes(before, after)) == [
        {"pointer": "/b/1", "was": 2, "is": 3},
        {"pointer": "/b/2", "is": 4},
        {"pointer": "/c~1d", "was": None},
        {"pointer": "/e", "was": True, "is": 1},
        {"pointer": "/f", "is": {}},
    ]
