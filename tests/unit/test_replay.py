"""`gristmill replay`: one document of a committed run again, against runs that were written without Ray."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from replay_runs import EVIL, answers, commit
from rich.console import Group
from support import GOOD, RECEIPT, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import EngineError, InputError, JobFileError, OutputError
from pipeline.observe.replayed import rendered
from pipeline.observe.traced import Traced
from pipeline.observe.visible import console_on
from pipeline.replay import replay

Make = Callable[..., Path]


@pytest.fixture
def committed(tmp_path: Path) -> Make:
    """Commits a run of a small job: `commit` of `replay_runs.py` in a folder of the test's own."""
    return partial(commit, tmp_path)


def told(*arguments: str) -> tuple[int, str]:
    shown = CliRunner().invoke(app, ["replay", *arguments], env={"COLUMNS": "150"})
    if shown.exception and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return shown.exit_code, shown.output


def steps(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [step for step in document["steps"] if step["step"] == name]


@pytest.mark.slow  # a sandbox tries the schema
def test_the_jobs_engine_gives_the_committed_outcome_again(committed: Make) -> None:
    directory = committed(None, engine={"engine": "sampler", "max_model_len": 2048})
    document = replay(str(directory), "d1")
    assert (document["equal"], document["changed"], document["differences"]) == (True, [], {})
    names = [step["step"] for step in document["steps"]]
    assert names[:3] == ["clean", "render", "generate"]
    assert {"parse", "repair", "normalise", "validate", "rules", "ground", "route"} <= set(names)
    assert len(document["stopped"]) == len(steps(document, "generate"))
    assert document["outcome"]["status"] == document["committed"]["status"]


def test_the_jobs_recording_is_played_again(committed: Make) -> None:
    directory = committed({"valid": Answers(completion(GOOD, engine="test")), "retried": Answers({"vendor": 5}, GOOD)})
    for key in ("valid", "retried"):
        document = replay(str(directory), key)
        assert (document["equal"], document["changed"]) == (True, [])
        assert steps(document, "generate")[0]["engine"].startswith("recorded:")


def test_kept_answers_give_every_committed_outcome_again(committed: Make) -> None:
    directory = committed(answers())
    for key in answers():
        document = replay(str(directory), key, which="recorded")
        assert document["differences"] == {}, key
        assert document["equal"]
        assert len(steps(document, "generate")) == len(document["committed"]["attempts"]), key
    for key in ("cut", "hopeless", "surrogate"):
        code, output = told(str(directory), "--id", key, "--engine", "recorded", "--strict")
        assert (code, "equals the committed" in output) == (0, True)
        assert not set(output) & set("\x1b\u202e\x00")


def test_where_a_cut_answer_stopped_and_what_was_allowed_there(committed: Make) -> None:
    directory = committed({"cut": answers()["cut"]})
    document = replay(str(directory), "cut", which="recorded")
    (first, *_) = document["stopped"]
    assert first["accepted"] == first["characters"] == len('{"vendor":"Ann","lines":["te')
    assert (first["finished"], first["may_end"], first["pointer"]) == (False, False, "/lines/0")
    assert first["next"][0] == '"'
    assert first["allowed"] > 1000
    assert len(first["next"]) <= 20


def test_the_place_where_an_answer_breaks_its_grammar_is_exact(committed: Make) -> None:
    text = '{"vendor":"Ann 粥","total":nothing}'
    document = replay(str(committed({"d": Answers(text)})), "d", which="recorded")
    stopped = document["stopped"][0]
    assert text[: stopped["accepted"]] == '{"vendor":"Ann 粥","total":n'  # null could still come
    assert stopped["next"] == ("u", "ul", "ull")
    assert (stopped["may_end"], stopped["finished"]) == (False, False)


def test_an_answer_that_is_whole_may_only_end(committed: Make) -> None:
    text = '{"vendor":"Ann","total":null}'
    document = replay(str(committed({"d": Answers(completion(text, constrained=True))})), "d", which="recorded")
    stopped = document["stopped"][0]
    assert (stopped["finished"], stopped["may_end"], stopped["next"]) == (True, True, ())


def test_a_step_that_raises_is_shown_with_where(committed: Make) -> None:
    shown = Traced()
    try:
        raise ValueError("odd")
    except ValueError as error:
        shown("failed", error)
    document = {**replay(str(committed({"d": answers()["valid"]})), "d", which="recorded"), "steps": shown.steps}
    console = console_on()
    console.file, console.width = io.StringIO(), 150
    console.print(Group(*rendered(document)))
    assert "ValueError: odd" in console.file.getvalue()
    assert "test_replay.py" in console.file.getvalue()


def test_what_changed_since_is_told_loudly(committed: Make, tmp_path: Path) -> None:
    directory = committed({"d": answers()["valid"]})
    schema = tmp_path / "schemas" / "receipt" / "1" / "schema.json"
    schema.write_text(json.dumps({**RECEIPT, "required": ["vendor", "total", "date", "lines"], "title": "t"}))
    document = replay(str(directory), "d", which="recorded")
    assert any(line.startswith("schema receipt@1") for line in document["changed"])
    assert any(line.startswith("schema digest") for line in document["changed"])
    code, output = told(str(directory), "--id", "d", "--engine", "recorded")
    assert (code, "NOT AS IN THE RUN" in output) == (0, True)


def test_a_changed_policy_is_named_and_may_change_the_outcome(committed: Make, tmp_path: Path) -> None:
    directory = committed({"cut": answers()["cut"]})
    job = json.loads((directory / "run.json").read_text())["job"]
    path = tmp_path / "other.yaml"
    path.write_text(json.dumps({**job, "policy": {"degraded": False}}))
    code, output = told(str(directory), "--id", "cut", "--engine", "recorded", "--job", str(path), "--strict")
    assert code == 9
    assert "DIFFERS" in output
    assert "policy.degraded: true in the run, false now" in output


def test_kept_answers_need_no_model(committed: Make, tmp_path: Path) -> None:
    directory = committed({"cut": answers()["cut"]})
    record = json.loads((directory / "run.json").read_text())
    record["job"]["engine"] = {"engine": "vllm", "model": "/no/such/model"}
    (directory / "run.json").write_text(json.dumps(record))
    document = replay(str(directory), "cut", which="recorded")
    assert document["equal"]
    assert any(line.startswith("engine.engine") for line in document["changed"])
    assert document["stopped"][0]["next"]
    with pytest.raises(EngineError, match="model not found"):
        replay(str(directory), "cut")


def test_a_document_that_no_engine_was_asked_about(committed: Make) -> None:
    rows = [{"id": "empty", "text": " "}, {"id": "d", "text": "x"}, {"id": "d", "text": "again"}]
    directory = committed({"empty": Answers(GOOD), "d": Answers(GOOD)}, rows)
    for which in ("main", "recorded"):
        document = replay(str(directory), "empty", which=which)
        assert (document["equal"], document["stopped"], document["committed"]["attempts"]) == (True, [], [])
    repeated = replay(str(directory), "d", which="recorded")
    assert repeated["document"] == "x"
    assert any("2 rows have this id" in note for note in repeated["notes"])


def test_a_document_whose_schema_is_refused(committed: Make, tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "x", "s": "gone@1"}, {"id": "b", "text": "x", "s": "receipt@1"}]
    source = {"path": str(tmp_path / "in.jsonl"), "schema_column": "s"}
    directory = committed({"a": Answers(GOOD), "b": Answers(GOOD)}, rows, input=source)
    document = replay(str(directory), "a")
    assert document["equal"]
    assert any("gone@1" in note for note in document["notes"])
    assert told(str(directory), "--id", "a")[0] == 0


def test_an_input_that_is_gone(committed: Make, tmp_path: Path) -> None:
    directory = committed({"good": answers()["valid"], "bad": answers()["hopeless"]})
    (tmp_path / "in.jsonl").unlink()
    kept = replay(str(directory), "bad", which="recorded")
    assert kept["equal"]
    assert any("kept" in note for note in kept["notes"])
    with pytest.raises(InputError, match="not kept"):
        replay(str(directory), "good", which="recorded")


def test_what_cannot_be_replayed_is_told(committed: Make, tmp_path: Path) -> None:
    directory = committed({"d": answers()["valid"]})
    with pytest.raises(InputError, match="no document with the id nobody"):
        replay(str(directory), "nobody")
    with pytest.raises(OutputError, match="no committed run"):
        replay(str(tmp_path / "nowhere"), "d")
    assert told(str(directory), "--id", "d", "--engine", "gpt")[0] == 2
    record = json.loads((directory / "run.json").read_text())
    del record["job"]
    (directory / "run.json").write_text(json.dumps(record))
    with pytest.raises((OutputError, JobFileError), match="job"):
        replay(str(directory), "d", which="recorded")


def test_json_is_one_document_that_holds_everything(committed: Make) -> None:
    text = "Ann & Co " + "x" * 3000 + EVIL
    directory = committed({"d": answers()["fenced"]}, [{"id": "d", "text": text}])
    code, output = told(str(directory), "--id", "d", "--engine", "recorded", "--json")
    document = json.loads(output)
    assert code == 0
    assert output.isascii()
    assert document["document"] == text.replace("\x00", "\ufffd")
    code, output = told(str(directory), "--id", "d", "--engine", "recorded")
    assert "more characters; --json has them" in output


def test_replay_of_one_schema_is_not_stopped_by_a_lookup_of_another(committed: Make, tmp_path: Path) -> None:
    for name, body in (("other", {"type": "object", "properties": {"code": {"type": "string"}}}), ("receipt", RECEIPT)):
        (tmp_path / "schemas" / name / "1").mkdir(parents=True)
        (tmp_path / "schemas" / name / "1" / "schema.json").write_text(json.dumps(body))
    (tmp_path / "codes.csv").write_text("code\nx\n")
    rows = [{"id": "a", "text": "x", "schema": "other@1"}, {"id": "b", "text": "Ann", "schema": "receipt@1"}]
    run = committed(
        {"a": Answers({"code": "x"}), "b": Answers({"vendor": "Ann", "total": None})},
        rows,
        input={"path": str(tmp_path / "in.jsonl"), "schema_column": "schema"},
        lookups=[{"pointer": "/code", "path": str(tmp_path / "codes.csv"), "column": "code"}],
    )
    assert [replay(str(run), key, which=which)["equal"] for which in ("recorded", "main") for key in "ab"] == [True] * 4
