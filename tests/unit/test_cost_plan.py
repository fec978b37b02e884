"""`gristmill plan` without Ray: the sample, an earlier run's figures, what should be looked at, exit codes."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from replay_runs import answers, commit
from support import GOOD, Answers, completion, plan_of
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.cost.attempts import expected_attempts
from pipeline.cost.earlier import earlier
from pipeline.cost.given import Given
from pipeline.cost.plan import cost_plan
from pipeline.cost.sample import picked, sample
from pipeline.errors import JobFileError, OutputError
from pipeline.job import JobConfig
from pipeline.runtime.input import scan
from pipeline.runtime.output.run_record import recorded_job
from pipeline.runtime.store import open_store

Make = Callable[..., Path]

EVIL = "[/b]\x1b[2J@1"


@pytest.fixture
def committed(tmp_path: Path) -> Make:
    """Commits a run of a small job: `commit` of `replay_runs.py` in a folder of the test's own."""
    return partial(commit, tmp_path)


@pytest.fixture
def job_path(tmp_path: Path, committed: Make) -> Path:
    """The file of a job whose run is committed: 3 documents, of which one was asked about twice."""
    given = {"good": Answers(GOOD), "fine": Answers(GOOD), "retried": Answers({"vendor": 5, "total": "x"}, GOOD)}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job_of(committed(given)).model_dump(mode="json", by_alias=True)))
    return path


def job_of(directory: Path) -> JobConfig:
    return recorded_job(open_store(str(directory)))[0]


def told(*arguments: Any) -> tuple[int, str]:
    shown = CliRunner().invoke(app, ["plan", *map(str, arguments)], env={"COLUMNS": "200"})
    if isinstance(shown.exception, JobFileError):
        return shown.exception.exit_code, str(shown.exception)
    if shown.exception and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return shown.exit_code, shown.output


def sampler_job(tmp_path: Path, rows: list[dict[str, Any]], **parts: Any) -> JobConfig:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = {"name": "t", "input": {"path": str(path), "schema": "receipt@1"}, "output": str(tmp_path / "out")}
    return JobConfig.model_validate({**base, "engine": {"engine": "sampler", "max_model_len": 700}, **parts})


def test_documents_that_no_engine_decodes_for_cost_nothing(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "Ann"}, {"id": "b", "text": ""}, {"id": "a", "text": "again"}]
    rows += [{"id": "c", "text": "tea " * 450}, {"id": "d", "text": "tea " * 300_000}]
    job = sampler_job(tmp_path, rows, sampling={"max_tokens": 200})
    seen = sample(scan(job.input).units, job, {"receipt@1": plan_of()}, 100, 0)["receipt@1"]
    assert (seen.documents, seen.unasked, seen.too_long) == (5, 2, 2)
    assert sorted(map(bool, seen.prompts)) == [False] * 4 + [True]
    assert seen.asked.value == 1
    assert seen.longest > 550 > max(seen.prompts) > seen.prefix > 50
    roomy = sampler_job(tmp_path, rows, sampling={"max_tokens": 20})
    assert sample(scan(roomy.input).units, roomy, {"receipt@1": plan_of()}, 100, 0)["receipt@1"].too_long == 1


def test_prompts_are_counted_as_the_engine_reads_them(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "one" + "\u200b" * 20 + "two\nthree"}]
    counted = []
    for parts in ({}, {"clean": ["invisible"]}, {"cite": "lines"}):
        job = sampler_job(tmp_path, rows, sampling={"max_tokens": 20}, **parts)
        counted += sample(scan(job.input).units, job, {"receipt@1": plan_of()}, 9, 0)["receipt@1"].prompts
    plain, cleaned, cited = counted
    assert cleaned < plain < cited


def test_every_document_has_the_same_chance_and_a_seed_picks_the_same(tmp_path: Path) -> None:
    job = sampler_job(tmp_path, [{"id": str(n), "text": "x"} for n in range(30)])
    units = scan(job.input, 7).units
    seen: Counter[tuple[int, int]] = Counter()
    for seed in range(600):
        chosen = picked(units, 6, str(seed))
        assert chosen == picked(units, 6, str(seed))
        seen.update((place, row) for place, rows in chosen.items() for row in rows)
    assert len(seen) == 30
    assert sum(seen.values()) == 600 * 6
    assert min(seen.values()) > 80  # of 120 expected
    assert {place: len(rows) for place, rows in picked(units, 99, "").items()} == {0: 7, 1: 7, 2: 7, 3: 7, 4: 2}


def test_an_earlier_run_tells_attempts_and_output(committed: Make) -> None:
    directory = committed(answers())
    job = job_of(directory)
    found = earlier(str(directory), job, {}, {})
    manifest = json.loads((directory / "manifest.json").read_text())
    totals, one = manifest["totals"], found.schemas["receipt@1"]
    assert one.success is not None
    assert one.output_tokens is not None
    given = sum(count for key, count in totals["paths"].items() if key.split(" ")[2] == "answers")
    assert totals["asked"] * expected_attempts(one.success.value, 2) == pytest.approx(given)
    assert one.output_tokens.value * given == pytest.approx(totals["output_tokens"])
    assert one.success.low < one.success.value < one.success.high
    assert (found.output_tokens, found.differs) == (totals["output_tokens"], ())
    slow = dataclasses.replace(found, seconds=100.0, start_seconds=None, engines=2, output_tokens=800)
    assert slow.tokens_per_second(20.0).value == pytest.approx(800 / 80 / 2)
    assert (slow.tokens_per_second(20.0).basis, slow.tokens_per_second(None).basis) == ("measured", "assumed")
    with pytest.raises(JobFileError, match="--start-minutes"):
        slow.tokens_per_second(100.0)


def test_the_start_that_a_run_measured_is_no_work_and_comes_to_each_run(job_path: Path) -> None:
    (manifest,) = job_path.parent.glob("out/**/manifest.json")
    members = json.loads(manifest.read_text())
    assert members["totals"]["clock"] == {}, "no command ran it"
    options = (job_path, "--json", "--run", job_path.parent / "out", "--output-tokens", 40)
    members["totals"]["clock"] = {"seconds": 130.0, "asking_seconds": 100.0}
    manifest.write_text(json.dumps(members))
    plan = json.loads(told(*options)[1])
    rate, work = plan["run"]["output_tokens"] / 100, plan["tokens"]["outputs"]["value"]
    assert plan["tokens_per_second"] == {"value": rate, "low": rate, "high": rate, "basis": "measured"}
    assert plan["as_placed"]["hours"]["value"] * 3600 == pytest.approx(work / rate + 30)
    assert any("0.5 minutes of start" in note for note in plan["notes"])
    other = json.loads(told(*options, "--start-minutes", 4)[1])
    assert other["as_placed"]["hours"]["value"] * 3600 == pytest.approx(work / rate + 240)
    code, words = told(*options, "--deadline", 0.008)
    assert (code, "leaves no time" in words) == (2, True)


def test_a_run_that_never_asked_twice_tells_by_its_first_answers(committed: Make) -> None:
    given = {"good": Answers(GOOD), "bad": Answers({"vendor": 5, "total": "x"}), "fine": Answers(GOOD)}
    directory = committed(given, retry={"max_attempts": 1})
    measured = earlier(str(directory), job_of(directory), {}, {}).schemas["receipt@1"]
    assert measured.success is not None
    assert measured.success.value == pytest.approx(2 / 3)


def test_a_run_of_another_job_or_none_is_refused(committed: Make, tmp_path: Path) -> None:
    directory = committed({"good": Answers(GOOD)})
    other = job_of(directory).model_copy(update={"name": "other"})
    with pytest.raises(JobFileError, match="is a run of the job `t`, not of `other`"):
        earlier(str(directory), other, {}, {})
    with pytest.raises(OutputError, match="no committed run"):
        earlier(str(tmp_path / "nothing"), other, {}, {})


def test_what_is_no_longer_as_in_the_run_is_told(committed: Make) -> None:
    job = job_of(committed({"good": Answers(GOOD)}))
    changed = job.model_copy(update={"sampling": job.sampling.model_copy(update={"temperature": 0.7})})
    document = cost_plan(changed, Given(run=changed.output), strict=True)
    looks = {one["code"]: one["words"] for one in document["look_at"]}
    assert "sampling.temperature" in looks["run_differs"]
    assert document["exit_code"] == 9


def test_the_plan_says_what_each_number_rests_on(job_path: Path) -> None:
    code, output = told(job_path, "--json")
    document = json.loads(output)
    assert code == 0
    assert (document["documents"]["total"], document["schemas"][0]["sampled"]["documents"]) == (3, 3)
    assert document["tokens"]["first_prompts"]["basis"] == "exact"
    assert document["tokens"]["attempts"] == {"value": 1.0, "low": 1.0, "high": 2.0, "basis": "assumed"}
    assert (document["engine_hours"], document["as_placed"], document["deadline"]) == (None, None, None)
    assert any("give --tokens-per-second" in note for note in document["notes"])
    run = json.loads(told(job_path, "--json", "--run", job_path.parent / "out")[1])
    assert run["tokens"]["attempts"]["value"] == pytest.approx(4 / 3)
    assert run["tokens"]["attempts"]["basis"] == run["tokens"]["output"]["basis"] == "measured"
    given = json.loads(told(job_path, "--json", "--success", "0.5", "--output-tokens", "40")[1])
    assert given["tokens"]["requests"]["value"] == pytest.approx(3 * 1.5)
    assert given["tokens"]["outputs"]["value"] == pytest.approx(3 * 1.5 * 40)


def test_a_deadline_that_wants_more_engines_than_the_job_has(job_path: Path) -> None:
    rates = ("--output-tokens", 100, "--success", 1, "--tokens-per-second", 1, "--reserve", 0)
    code, output = told(job_path, *rates, "--deadline", 0.05, "--strict", "--json")  # 300 s of work, 180 s of time
    document = json.loads(output)
    assert (code, document["deadline"]["engines"]["value"]) == (9, 2)
    assert document["deadline"]["at_value"]["hours"]["value"] == pytest.approx(300 / 2 / 3600)
    assert [one["code"] for one in document["look_at"]] == ["deadline"]
    code, output = told(job_path, *rates, "--deadline", 0.05)
    assert (code, "the deadline wants 2 engines" in output, "│ 5 min " in output) == (0, True, True)
    assert "│ 1.39 h " in told(job_path, *rates[:-3], 0.06)[1], "300 tokens, 0.06 in a second"
    assert told(job_path, *rates, "--deadline", 0.09, "--strict")[0] == 0


def test_nothing_is_written_but_the_scan_that_the_run_reads(job_path: Path) -> None:
    before = {path for path in job_path.parent.rglob("*") if path.is_file()}
    assert told(job_path)[0] == 0
    after = {path for path in job_path.parent.rglob("*") if path.is_file()}
    assert {path.parent.name for path in after - before} <= {"_scans"}


def test_options_that_contradict_each_other_end_with_code_2(job_path: Path) -> None:
    for options in (("--deadline", 2), ("--success", 7), ("--sample", 1)):
        assert told(job_path, *options)[0] == 2


def test_hostile_names_are_shown_and_do_not_act(committed: Make, tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "Ann", "s": "receipt@1"}, {"id": "b", "text": "Ann", "s": EVIL}]
    where = {"path": str(tmp_path / "in.jsonl"), "schema_column": "s"}
    directory = committed({"a": Answers(completion(GOOD)), "b": Answers(GOOD)}, rows, input=where)
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job_of(directory).model_dump(mode="json", by_alias=True)))
    for options in ((), ("--json",)):
        code, output = told(path, *options)
        assert (code, "schema_refused" in output, "[/b]" in output) == (0, True, True)
        assert "\x1b" not in output
    assert told(path, "--strict")[0] == 9
