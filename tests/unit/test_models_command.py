"""Models side by side: what is counted of each, and that the advice follows its rule and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replay_runs import commit
from support import Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import InputError, JobFileError
from pipeline.evaluate.advice import advise, comparisons
from pipeline.evaluate.arms import arm_of
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.gold import GoldConfig
from pipeline.evaluate.models import Candidate, Selection, Wanted, select
from pipeline.evaluate.models_runs import arms_of, from_job
from pipeline.evaluate.side_rates import NOTHING, Gap
from pipeline.job import JobConfig

DOCUMENTS = 60


def good(number: int, **values: Any) -> dict[str, Any]:
    return {"vendor": f"Shop {number % 3}", "date": "2024-02-29", "lines": ["tea"], "total": 10.5 + number, **values}


def made(folder: Path, answer: Callable[[int], Any], **job: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    answers = {f"d{n:03}": Answers(completion(answer(n), constrained=True)) for n in range(DOCUMENTS)}
    return str(commit(folder, answers, retry={"max_attempts": 1}, **job))


def half(number: int) -> Any:
    return {"vendor": 5} if number % 2 else good(number)


def shaky(number: int) -> Any:
    return good(number, total=number) if number < 15 else good(number)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("models")
    return {name: made(place / name, answer) for name, answer in {"good": good, "half": half, "shaky": shaky}.items()}


def shown(*words: str) -> str:
    found = CliRunner().invoke(app, ["models", *words], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert found.exit_code == 0, found.exception
    return found.output


def selected(*candidates: Candidate, **options: Any) -> Selection:
    place = Path(candidates[0].run.store.where).parents[1] / "schemas"
    bodies = bodies_of(candidates[0].run, str(place), ["receipt@1"], [])
    return select(candidates, bodies, Wanted(1000, resamples=200, **options))


def candidate(name: str, run: str, again: tuple[str, ...] = (), batches: tuple[str, ...] = ()) -> Candidate:
    others = [tuple(run_of(path)[0] for path in paths) for paths in (again, batches)]
    return Candidate(name, run_of(run)[0], *others)


def test_a_model_that_is_worse_is_out_and_the_reason_is_told(runs: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = shown(runs["good"], runs["half"], "--output", str(page))
    assert "take 1: recorded: the others are shown to be worse by valid documents." in text
    assert "2: recorded: valid documents -50.0 points" in text
    assert "Not run again, so nobody knows how stable it is" in text
    assert 'data-v="0.5"' in page.read_text(encoding="utf-8")
    found = json.loads(shown(runs["half"], runs["good"], "--json"))
    assert found["recommended"] == "2: recorded"  # whichever is named first
    (out,) = found["advice"]["out"]
    assert (out["model"], out["criterion"], out["against"]) == ("1: recorded", "valid", "2: recorded")
    assert found["models"][0]["shares"]["valid"]["count"] == 30
    assert found["level"] > 0.98  # five differences may be looked at


def test_the_same_answers_show_no_difference_and_nobody_is_recommended(runs: dict[str, str]) -> None:
    found = selected(candidate("x", runs["good"]), candidate("y", runs["good"]))
    assert found.advice.recommended is None and found.advice.left == ("x", "y")
    assert "no difference shown between x and y" in found.advice.words


def test_what_changes_when_run_again_and_in_other_batches_is_counted(runs: dict[str, str]) -> None:
    steady = candidate("steady", runs["good"], (runs["good"],), (runs["good"],))
    moving = candidate("moving", runs["good"], (runs["shaky"], runs["good"]), (runs["shaky"],))
    found = selected(moving, steady)
    first, second = (row.shares for row in found.models)
    assert (first["repeat"].count, first["repeat"].of) == (15, 2 * DOCUMENTS)
    assert (first["batch"].count, first["batch"].of) == (15, DOCUMENTS)
    assert second["repeat"].count == second["batch"].count == 0
    assert second["batch"].high is not None and second["batch"].high > 0.04  # 0 of 60 is not never
    assert found.advice.recommended == "steady"
    assert found.advice.out[0].criterion == "repeat"


def test_gold_comes_before_validity(runs: dict[str, str], tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    rows = [{"id": f"d{n:03}", "record": shaky(n)} for n in range(DOCUMENTS)]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = GoldConfig(str(gold))
    found = selected(candidate("good", runs["good"]), candidate("shaky", runs["shaky"]), gold=config)
    assert found.models[1].shares["gold"].value == 1.0
    assert found.models[0].shares["gold"].value == pytest.approx(1 - 15 * 0.25 / DOCUMENTS)
    assert found.advice.recommended == "shaky" and found.advice.out[0].criterion == "gold"


def test_cost_decides_only_between_those_that_nothing_else_tells_apart() -> None:
    values = {("a", "valid"): 0.9, ("b", "valid"): 0.9, ("c", "valid"): 0.2}

    def difference(one: str, other: str, name: str) -> Gap:
        gap = values[other, name] - values[one, name]
        return Gap(gap, gap - 0.1, gap + 0.1) if (one, name) in values else NOTHING

    costs = {"a": (2.0, 1.8, 2.2), "b": (1.0, 0.9, 1.1), "c": (0.1, 0.05, 0.2)}
    found = advise(("a", "b", "c"), lambda model, name: values.get((model, name)), difference, costs)
    assert found.recommended == "b"
    assert [(one.model, one.criterion) for one in found.out] == [("c", "valid"), ("a", "cost")]
    near = {**costs, "a": (1.1, 0.95, 1.3)}
    found = advise(("a", "b", "c"), lambda model, name: values.get((model, name)), difference, near)
    assert found.left == ("a", "b") and "no difference shown between a and b" in found.words
    assert comparisons(3) == 15


def job(tmp_path: Path, **parts: Any) -> JobConfig:
    base = {"name": "n" * 60, "input": {"path": "in.jsonl", "schema": "receipt@1", "limit": 7, "since": "last"}}
    base |= {"output": str(tmp_path), "engine": {"engine": "sampler"}, "stop_if": {"truncation": 0.1}}
    return JobConfig.model_validate({**base, **parts})


def test_an_arm_is_the_job_but_for_its_change_and_runs_to_its_end(tmp_path: Path) -> None:
    arm = arm_of(job(tmp_path), "models", "a-model-with-a-very-long-name", 5, slot="again")
    assert arm.name == f"{'n' * 39}.a-model-with-a-very-long" and arm.output == f"{tmp_path}/models"
    assert (arm.input.limit, arm.input.since, arm.slot, arm.stop_if.truncation) == (5, None, "again", None)
    assert arm_of(job(tmp_path), "models", "x", 500).input.limit == 7
    assert (arm.engine, arm.sampling, arm.retry) == (job(tmp_path).engine, job(tmp_path).sampling, job(tmp_path).retry)
    small = job(tmp_path).engine.model_copy(update={"max_model_len": 200})
    with pytest.raises(JobFileError, match=r"cannot be run as `x`.*leaves no room for a prompt"):
        arm_of(job(tmp_path), "models", "x", engine=small)


def test_an_engine_runs_again_and_in_other_batches_also_of_few_documents(tmp_path: Path) -> None:
    many, few = (job(tmp_path, input={"path": "in.jsonl", "schema": "receipt@1", "limit": n}) for n in (1000, 8))
    arms = arms_of(many, "x", many.engine, None, 2)
    assert [arm.engine.max_num_seqs for arm in arms] == [32, 32, 32, 8]
    assert len({arm.slot for arm in arms}) == 4  # else the second would be found to be done
    assert [arm.engine.max_num_seqs for arm in arms_of(few, "x", few.engine, None, 0)] == [32, 2]
    one = many.engine.model_copy(update={"max_num_seqs": 1})
    assert len(arms_of(many, "x", one, None, 1)) == 2


def test_engines_have_to_be_two_and_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job(tmp_path).model_dump(mode="json", by_alias=True)))
    for engines, words in ((["main"], "give two engines"), (["main", "main"], "two engines are called `main`")):
        with pytest.raises(JobFileError, match=words):
            from_job(str(path), engines, None, 1, None, lambda *_: None)  # type: ignore[arg-type]
    assert CliRunner().invoke(app, ["models", str(path)]).exit_code == 2
    wanted = Wanted(10, GoldConfig(str(tmp_path / "nowhere.jsonl")))
    other = tmp_path / "other.yaml"
    other.write_text("engine: sampler\nseed: 2\n")
    with pytest.raises(InputError, match=r"nowhere\.jsonl"):  # before anything runs
        from_job(str(path), ["main", str(other)], None, 1, wanted, lambda *_: None)
    path.write_text(json.dumps(job(tmp_path, placement={"kind": "serve"}).model_dump(mode="json", by_alias=True)))
    with pytest.raises(JobFileError, match="the application's engine answers"):
        from_job(str(path), ["main", str(other)], None, 1, wanted, lambda *_: None)
