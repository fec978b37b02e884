"""Frozen sets: what a run kept, played again without a model; what is hidden in them; what changes are told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from replay_runs import EVIL, answers, commit
from support import GOOD, RECEIPT, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import GristmillError
from pipeline.evaluate.review.check import check
from pipeline.evaluate.review.frozen import read_set
from pipeline.evaluate.review.redaction import NotHidden, Redaction

Make = Callable[..., Path]
ALL = ("--status", "valid", "--status", "degraded", "--status", "rejected")


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


def kept_nowhere(folder: Path, *words: str) -> bool:
    """Whether no file of a set holds a word, as it stands or escaped."""
    content = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())
    return not any(word in content or json.dumps(word)[1:-1] in content for word in words)


def reseal(folder: Path, case: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Write a version as somebody would who can make digests."""
    content = json.dumps(case).encode() + b"\n"
    (folder / "cases.jsonl").write_bytes(content)
    files = {**manifest["files"], "cases.jsonl": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "files": files}))


def test_every_kind_of_outcome_comes_out_again_without_model_input_or_schemas(committed: Make, tmp_path: Path) -> None:
    run, where = committed(answers()), tmp_path / "set"
    code, output = told("freeze", run, where, *ALL)
    assert (code, f"{len(answers())} cases of this run" in output) == (0, True)
    assert "otherwise" not in output
    rows = {case.document["id"]: case.outcome for case in read_set(where).cases}
    for path in ("in.jsonl", "schemas/receipt/1/schema.json"):
        (tmp_path / path).unlink()
    found = check(where)
    assert (found.cases, found.results, found.changed) == (len(answers()), [], [])
    assert (rows["valid"]["status"], rows["valid"]["record"], rows["cut"]["layer"]) == ("valid", GOOD, 3)
    assert kept_nowhere(where, str(tmp_path / "in.jsonl"))
    code, output = told("check", where)
    assert (code, "13 of 13 cases as frozen" in output) == (0, True)


def test_what_another_policy_or_schema_does_to_kept_answers_is_told(committed: Make, tmp_path: Path) -> None:
    run, where = committed({key: answers()[key] for key in ("cut", "valid")}), tmp_path / "set"
    told("freeze", run, where, *ALL)
    job = json.loads((run / "run.json").read_text())["job"]
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job))
    assert told("check", where, "--job", path)[0] == 0
    path.write_text(json.dumps({**job, "policy": {"degraded": False}}))
    code, output = told("check", where, "--job", path)
    assert code == 9
    assert "degraded then, rejected now" in output
    path.write_text(json.dumps(job))
    schema = tmp_path / "schemas" / "receipt" / "1" / "schema.json"
    schema.write_text(json.dumps({**RECEIPT, "required": ["vendor", "total", "date", "lines"]}))
    found = {one.id: one for one in check(where, path).results}
    assert found["cut"].words is False
    assert found["valid"].now == "valid"
    schema.write_text(json.dumps({**RECEIPT, "properties": {**RECEIPT["properties"], "date": {"type": "integer"}}}))
    code, output = told("check", where, "--job", path, "--json")
    result = {one["id"]: one for one in json.loads(output)["results"]}
    assert (code, result["valid"]["frozen"]) == (9, "valid")
    assert result["valid"]["now"] != "valid"


def test_accepted_outcomes_are_a_new_version_and_the_old_one_stays(committed: Make, tmp_path: Path) -> None:
    run, where = committed({"cut": answers()["cut"], "valid": answers()["valid"]}), tmp_path / "set"
    told("freeze", run, where, *ALL)
    job = json.loads((run / "run.json").read_text())["job"]
    path = tmp_path / "job.yaml"
    params = {"params": {"api_key": "hunter2"}}  # a set is no place for it
    path.write_text(json.dumps({**job, **params, "policy": {"degraded": False}}))
    assert told("check", where, "--accept")[0] == 0
    assert [one.name for one in where.iterdir()] == ["v0001"]  # nothing differed
    code, output = told("check", where, "--job", path, "--accept")
    assert (code, "accepted as" in output) == (0, True)
    assert told("check", where)[0] == 0
    assert kept_nowhere(where, "hunter2")
    assert (read_set(where).version, len(read_set(where).cases)) == (2, 2)
    assert {case.outcome["status"] for case in read_set(where).cases} == {"valid", "rejected"}
    assert {case.outcome["status"] for case in read_set(where / "v0001").cases} == {"valid", "degraded"}
    assert told("check", where / "v0001")[0] == 0
    assert told("check", where / "v0001", "--accept")[0] == 3
    assert told("freeze", run, where / "v0001")[0] == 3


def test_a_second_freeze_adds_and_takes_the_place_of_the_same_document(committed: Make, tmp_path: Path) -> None:
    where = tmp_path / "set"
    told("freeze", committed({"a": answers()["cut"]}), where)
    other = committed({"a": answers()["cut"], "b": answers()["hopeless"]}, name="other")
    code, output = told("freeze", other, where)
    assert (code, "2 cases of this run (1 replace older ones), 0 of the version before" in output) == (0, True)
    third = committed({"c": answers()["cut"]}, name="third")
    code, output = told("freeze", third, where)
    assert (code, "1 cases of this run (0 replace older ones), 2 of the version before" in output) == (0, True)
    assert {case.document["id"] for case in read_set(where).cases} == {"a", "b", "c"}
    assert check(where).results == []
    assert told("freeze", third, where, "--code", "poison")[0] == 3
    assert read_set(where).version == 3


def test_a_set_that_was_edited_is_refused(committed: Make, tmp_path: Path) -> None:
    where = tmp_path / "set"
    told("freeze", committed({"a": answers()["cut"]}), where)
    for name in ("cases.jsonl", "schemas"):
        path = next(one for one in (where / "v0001").rglob("*.json*") if name in str(one))
        content = path.read_bytes()
        path.write_bytes(content.replace(b"vendor", b"seller"))
        code, output = told("check", where)
        assert (code, "was changed since it was frozen" in output) == (3, True)
        path.unlink()
        assert told("check", where)[0] == 3
        path.write_bytes(content)
    manifest = json.loads((where / "v0001" / "manifest.json").read_bytes())
    (tmp_path / "v0001.txt").write_text("x")
    outside = {**manifest, "files": {**manifest["files"], "../../v0001.txt": hashlib.sha256(b"x").hexdigest()}}
    (where / "v0001" / "manifest.json").write_text(json.dumps(outside))
    assert told("check", where) == (3, f"{where / 'v0001' / 'manifest.json'} names a file outside of the set.")
    case = json.loads((where / "v0001" / "cases.jsonl").read_bytes())
    for change in ({"attempts": [{}]}, {"document": {}}, {"document": []}, {"outcome": 1}, {"lookups": [1]}):
        reseal(where / "v0001", {**case, **change}, manifest)
        assert told("check", where)[0] == 3, change
    for content in (b"{", b"[]", b'{"format": 2, "version": 1, "files": {}}', b"[" * 99_999):
        (where / "v0001" / "manifest.json").write_bytes(content)
        assert told("check", where)[0] == 3
    assert told("check", tmp_path / "nothing")[0] == 3


SECRET, ESCAPED = "Zoë \\ “Q”", json.dumps("Zoë \\ “Q”")[1:-1]


def test_what_is_hidden_is_in_no_file_however_it_was_escaped(committed: Make, tmp_path: Path) -> None:
    record = {"vendor": f"by {SECRET}", "total": 19.9}
    texts = {
        "plain": completion(json.dumps(record, ensure_ascii=False)),
        "escaped": completion(json.dumps(record)),
        "cut": completion(f'{{"vendor":"by {ESCAPED} and so o', "length"),
        "cut-in-an-escape": completion(f'{{"vendor":"by {ESCAPED} and \\u00', "length"),
        "prose": completion(f"I cannot tell about {SECRET}"),
        f"id {SECRET}": completion("{}"),
    }
    rows = [{"id": key, "text": f"sold by {SECRET} {json.dumps(SECRET)}, total 19.90, {key}"} for key in texts]
    run = committed({key: Answers(one) for key, one in texts.items()}, rows)
    where, pattern = tmp_path / "set", "Zo. . .Q."
    code, output = told("freeze", run, where, *ALL, "--redact", pattern)
    assert (code, f"hidden in {len(texts)} of them" in output) == (0, True), output
    assert kept_nowhere(where, SECRET, "Zoë", ESCAPED, pattern)
    assert check(where).results == []
    cases = {case.document["text"].rpartition(", ")[2]: case for case in read_set(where).cases}
    assert cases["escaped"].outcome["status"] == "valid"
    assert cases["escaped"].outcome["record"] == {"vendor": "by [redacted]", "total": 19.9}


def test_what_cannot_be_hidden_for_certain_is_not_frozen(committed: Make, tmp_path: Path) -> None:
    run, where = committed({"one": answers()["valid"], "b": Answers("a" * 60 + EVIL)}), tmp_path / "set"
    code, output = told("freeze", run, where, *ALL, "--redact", "^(a|aa)+c?$")
    assert (code, "cannot be hidden" in output) == (0, True)
    assert [case.document["id"] for case in read_set(where).cases] == ["one"]
    assert told("freeze", run, tmp_path / "other", "--redact", "(")[0] == 3
    # Hidden one after the other, the first pattern finds what the second one leaves.
    code, output = told("freeze", run, tmp_path / "left", *ALL, "--redact", "^& Co", "--redact", "Ann ")
    assert (code, "cannot be hidden" in output) == (3, True)
    hidden = Redaction(["ab"])
    with pytest.raises(NotHidden):
        hidden.check({"key": ["aabb", {"ab": 1}]})
    assert Redaction(["b"]).value({"b": "abc"}) == {"[redacted]": "a[redacted]c"}


def test_hiding_never_goes_on_beside_what_was_not_hidden(committed: Make, tmp_path: Path) -> None:
    run, where = committed({"a": answers()["cut"]}), tmp_path / "set"
    told("freeze", run, where)
    code, output = told("freeze", committed({"b": answers()["cut"]}, name="b"), where, "--redact", "Ann")
    assert (code, "frozen without it" in output, read_set(where).version) == (3, True, 1)


def test_lookups_travel_as_far_as_they_were_looked_up(committed: Make, tmp_path: Path) -> None:
    listed = tmp_path / "vendors.csv"
    listed.write_text("name\nAnn & Co\nNobody\n")
    lookup = {"pointer": "/vendor", "path": str(listed), "column": "name"}
    texts = {"known": Answers(completion(GOOD)), "unknown": Answers(completion({**GOOD, "vendor": "total"}))}
    run, where = committed(texts, lookups=[lookup]), tmp_path / "set"
    told("freeze", run, where, *ALL)
    listed.unlink()
    assert check(where).results == []
    cases = {case.document["id"]: case for case in read_set(where).cases}
    assert cases["known"].lookups[0]["values"] == ["Ann & Co"]
    assert cases["unknown"].outcome["problems"][-1]["code"] == "lookup_missing"
    assert kept_nowhere(where, "Nobody")


def test_words_for_people_are_told_and_change_no_exit_code(committed: Make, tmp_path: Path) -> None:
    where = tmp_path / "set"
    told("freeze", committed({"a": answers()["cut"]}), where)
    folder = where / "v0001"
    case = json.loads((folder / "cases.jsonl").read_text())
    case["outcome"]["problems"][0]["message"] = "as an earlier version said it"
    manifest = json.loads((folder / "manifest.json").read_text())
    reseal(folder, case, {**manifest, "versions": {**manifest["versions"], "ray": "0.1"}})
    code, output = told("check", where)
    assert (code, "1 in words only" in output, "ray: 0.1 then" in output) == (0, True, True)
