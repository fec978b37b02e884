"""The same documents constrained and free: which class each falls in, what agrees, and what a reader is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from replay_runs import commit
from support import Answers, completion
from typer import Exit
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands_differential import running, typed
from pipeline.evaluate.side_rates import SideRates, expanded_tail

EVIL = "\x1b[2J[/b]<script>alert(1)</script>\u202e"
DOCUMENTS = 24


def good(number: int, **values: Any) -> dict[str, Any]:
    return {"vendor": f"Shop {number % 3}", "date": "2024-02-29", "lines": ["tea"], "total": 10.5 + number, **values}


def made(folder: Path, answer: Callable[[int], Any], *, constrained: bool, **job: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    answers = {f"d{n:03}": Answers(completion(answer(n), constrained=constrained)) for n in range(DOCUMENTS)}
    sampling = {"max_tokens": 120, "constrained": constrained}
    return str(commit(folder, answers, sampling=sampling, retry={"max_attempts": 1}, **job))


def free(number: int) -> Any:
    if number < 6:
        return f"Sure! {EVIL}"  # no JSON at all
    if number < 10:
        return good(number, vendor=EVIL)
    if number < 12:
        return good(number, total=None)
    if number < 16:
        return "```json\n" + json.dumps(good(number, vendor=f"SHOP {number % 3}")) + "\n```"
    return good(number)


def bound(number: int) -> Any:
    return '{"vendor": "never en' if number >= 22 else good(number)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    place = tmp_path_factory.mktemp("differential")
    return made(place / "a", bound, constrained=True), made(place / "b", free, constrained=False)


def shown(*words: str) -> str:
    found = CliRunner().invoke(app, ["differential", *words], env={"COLUMNS": "220", "NO_COLOR": "1"})
    assert found.exit_code == 0, found.exception
    return found.output


def test_each_document_is_in_one_class_and_the_classes_are_what_was_planted(runs: tuple[str, str]) -> None:
    found = json.loads(shown(*runs, "--json"))
    counts = {name: one["count"] for name, one in found["classes"].items()}
    assert counts == {
        "lost": 2,
        "gained": 6,
        "same": 10,
        "content": 6,
        "rejected": 0,
        "neither": 0,
        "required_more": 8,  # no record at all, and a total that is null
        "required_fewer": 2,
    }
    for rate in found["classes"].values():
        assert rate["low"] <= rate["value"] <= rate["high"] and rate["of"] == DOCUMENTS


def test_fields_agree_in_any_notation_and_differences_have_intervals(runs: tuple[str, str]) -> None:
    found = json.loads(shown(*runs, "--json"))
    fields = {one["pointer"]: one for one in found["fields"]}
    vendor, total = fields["/vendor"], fields["/total"]
    assert (vendor["exact"], vendor["normalised"], vendor["other"]) == (8, 4, 4)
    assert (total["only_constrained"], total["exact"]) == (2, 14)
    assert fields["/date"]["agrees"]["value"] == 1.0
    assert fields["/date"]["agrees"]["low"] < 1.0  # 16 documents that agree do not say that all do
    legal = next(one for one in found["measures"] if one["name"] == "legal")
    assert legal["gap"]["value"] == pytest.approx((18 - 22) / DOCUMENTS)
    assert legal["gap"]["low"] < legal["gap"]["value"] < legal["gap"]["high"]
    as_it_came = next(one for one in found["measures"] if one["name"] == "as_it_came")
    assert as_it_came["free"]["count"] == 14  # four stood in a fence
    tokens = next(one for one in found["measures"] if one["name"] == "output_tokens")
    assert tokens["gap"]["low"] < tokens["gap"]["value"] < tokens["gap"]["high"]


def test_examples_are_told_safely_on_a_terminal_and_on_the_page(runs: tuple[str, str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = shown(*runs, "--output", str(page))
    assert "Legal only under the constraint: 6 of 24" in text and "only free: 2 of 24" in text
    assert "never en" in text and "\x1b" not in text and "\u202e" not in text
    html = page.read_text(encoding="utf-8")
    assert "<script>" not in html and "\x1b" not in html and "\u202e" not in html
    assert 'data-f="class|gained" data-v="6"' in html
    found = json.loads(shown(*runs, "--json"))
    assert all(len(one[side]) < 250 for one in found["cases"] for side in ("constrained", "free"))
    kinds = [one["kind"] for one in found["cases"]]
    assert (kinds.count("gained"), kinds.count("lost"), kinds.count("same")) == (5, 2, 0)
    assert len({one["document_id"] for one in found["cases"]}) == len(found["cases"])


def test_runs_the_wrong_way_round_and_of_another_prompt_are_told(runs: tuple[str, str], tmp_path: Path) -> None:
    text = shown(runs[1], runs[0])
    assert "24 documents of the constrained run were answered without the constraint" in text
    other = made(tmp_path, free, constrained=False, clean=["whitespace"])
    assert "Not only the constraint differs between the runs: model, prompt, too." in shown(runs[0], other)


def test_documents_of_one_run_only_are_in_no_class_and_said(tmp_path: Path, runs: tuple[str, str]) -> None:
    rows = {f"d{n:03}": Answers(completion(good(n))) for n in (*range(20), 100, 101)}
    other = str(commit(tmp_path, rows, sampling={"max_tokens": 120, "constrained": False}))
    found = json.loads(shown(runs[0], other, "--json"))
    assert found["documents"] == 20 and found["apart"] == 6
    assert any("6 rows are of documents that are not in both runs" in note for note in found["notes"])


def test_what_follows_a_run_takes_all_that_a_run_tells(capfd: pytest.CaptureFixture[str]) -> None:
    def work(observe: Any) -> None:
        observe("warned", "mind \x1b[2J")
        observe("numbers", object())  # for metrics that nobody asks for here
        observe("done", "out/run=0")

    running("gristmill differential job.yaml", work)
    shown = capfd.readouterr()
    assert "mind \\x1b" in shown.err and not shown.out


def test_an_interrupted_experiment_is_continued_by_what_was_typed(capfd: pytest.CaptureFixture[str]) -> None:
    command = typed("differential", ["my job.yaml"], limit=20, orders=None)

    def work(_observe: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Exit) as ended:
        running(command, work)
    assert ended.value.exit_code == 130
    assert "gristmill differential 'my job.yaml' --limit=20" in capfd.readouterr().err


def rates_of(pairs: list[tuple[float, float]]) -> SideRates:
    rates = SideRates(resamples=400)
    for number, (one, other) in enumerate(pairs):
        rates.add(f"d{number}", {("a", "x"): (one, 1.0), ("b", "x"): (other, 1.0)})
    return rates


@pytest.mark.parametrize(
    "pairs", [[(1.0, 1.0)] * 8, [(0.5, 0.5)] * 8, [(0.25 * (n % 5), 0.25 * (n % 5)) for n in range(8)]]
)
def test_runs_that_agree_on_few_documents_may_still_differ(pairs: list[tuple[float, float]]) -> None:
    gap = rates_of(pairs).difference(("a", "x"), ("b", "x"))
    assert gap.value == 0.0 and gap.low is not None and gap.high is not None
    assert gap.low < -0.2 and gap.high > 0.2


def test_an_interval_of_amounts_is_of_pairs_and_wider_for_few_documents() -> None:
    long = [(100.0 * (n % 7 + 1), 200.0 * (n % 7 + 1) + n % 3) for n in range(60)]
    rates = rates_of(long)
    factor = rates.factor(("a", "x"), ("b", "x"))
    assert factor.low is not None and factor.high is not None
    assert 2.0 < factor.low < factor.value < factor.high < 2.01  # lengths differ widely, the factor hardly does
    mean = rates.mean(("a", "x"))
    assert mean.low is not None and mean.high is not None and mean.low < 400 - 10 and mean.high > 380 + 10
    # Student's 97.5 % quantile with 9 degrees of freedom is 2.262.
    assert expanded_tail(0.05, 10) == pytest.approx(NormalDist().cdf(-2.262 * (10 / 9) ** 0.5), rel=0.02)
    assert expanded_tail(0.05, 100_000) == pytest.approx(0.025, rel=0.01)
