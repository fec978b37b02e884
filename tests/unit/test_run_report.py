"""The report of a run: its figures against the Parquet, hostile text, and what it does not need."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from recomputed import assert_equal, figures_of, recomputed
from replay_runs import answers, commit
from support import GOOD, Answers, completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands_report import after_run
from pipeline.errors import OutputError
from pipeline.observe.visible import console_on
from pipeline.report.build import write_report

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></pre></details></main><!-- "
    "<style>*{display:none}</style> &amp; {{ 7*7 }} {% raw %} ' \" \u202e\x1b[31m\u2028 "
)
PATIENT = {"backoff_seconds": 0.0}

Make = Callable[..., Path]


@pytest.fixture
def committed(tmp_path: Path) -> Make:
    """Commits a run of a small job: `commit` of `replay_runs.py` in a folder of the test's own."""
    return partial(commit, tmp_path)


def page_of(run: Path, **options: Any) -> str:
    write_report(str(run), **options)
    return (run / "report.html").read_text(encoding="utf-8")


def test_every_figure_is_that_of_the_rows(committed: Make) -> None:
    run = committed(answers(), retry=PATIENT)
    shown = figures_of(page_of(run))
    assert_equal(shown, recomputed(run))
    assert shown["documents"][0] == len(answers())
    assert len({name.split("|")[0] for name in shown}) > 15


def test_it_shows_the_layer_the_field_and_the_document_that_broke(committed: Make) -> None:
    wrong = {**GOOD, "total": "a lot"}
    rows = {f"ok{n}": Answers(GOOD) for n in range(8)} | {f"bad{n}": Answers(wrong) for n in range(3)}
    page = page_of(committed(rows, retry={"max_attempts": 1}))
    first = re.sub(r"<[^>]+>", " ", page[page.index('<ol class="look">') : page.index("</ol>", page.index("look"))])
    assert re.search(r"schema layer\s+receipt@1\s+/total\s+3\s+of 11\s+documents are not valid", first)
    example = page[page.index('id="problem-1"') : page.index("</article>")]
    assert "<mark>a lot</mark>" in example  # where in the answer
    assert "Ann &amp; Co, total 19.90 bad0" in example  # the document, read again or kept
    assert "--id bad0" in example


def test_the_document_that_supports_a_value_is_marked(committed: Make) -> None:
    rows = [{"id": f"d{n}", "text": f"Shop of Ann & Co\nAll together 19.9 on {n}"} for n in range(3)]
    found = {row["id"]: Answers({"vendor": "Ann & Co", "lines": [], "total": 7}) for row in rows}
    page = page_of(committed(found, rows, policy={"ground": "degrade"}))
    assert "nothing in the document supports a required value" in page
    assert "/total" in page


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_hostile_text_is_text(committed: Make) -> None:
    rows = [{"id": f"{HOSTILE}{n}", "text": f"{HOSTILE * 9} {n}"} for n in range(4)]
    answer = {"vendor": HOSTILE, "lines": [HOSTILE] * 3, "total": 1}
    evil = completion(HOSTILE, "stop"), completion(json.dumps(answer), "length"), completion(json.dumps(answer))
    found = {row["id"]: Answers(evil[n % 3]) for n, row in enumerate(rows)}
    page = page_of(committed(found, rows))
    elements = _Elements()
    elements.feed(page)
    names = {tag for tag, _ in elements.tags}
    assert not names & {"script", "img", "iframe", "object", "embed", "form", "base"}
    assert [tag for tag, _ in elements.tags].count("style") == 1
    assert not [key for _, attributes in elements.tags for key in attributes if key.startswith("on")]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "{{ 7*7 }}" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", page)  # nothing acts on a reader


def test_it_needs_nothing_else(committed: Make) -> None:
    page = page_of(committed(answers(), retry=PATIENT))
    elements = _Elements()
    elements.feed(page)
    for tag, attributes in elements.tags:
        for name in ("src", "href", "action", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert "url(" not in page and "@import" not in page
    assert "default-src 'none'" in page
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {attributes["href"] for tag, attributes in elements.tags if tag == "a"}
    assert {f"#{one}" for one in ids} >= inside  # every link leads somewhere


def test_it_is_the_same_page_whatever_the_order_of_rows(committed: Make, tmp_path: Path) -> None:
    run = committed(answers(), retry=PATIENT)
    page = page_of(run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"].reverse()
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert page_of(run) == page


def test_an_input_that_is_gone_costs_the_excerpts_alone(committed: Make, tmp_path: Path) -> None:
    run = committed(answers(), retry=PATIENT)
    (tmp_path / "in.jsonl").unlink()
    page = page_of(run)
    assert "cannot be read again" in page
    assert_equal(figures_of(page), recomputed(run))


def test_a_later_run_is_held_against_the_one_before(committed: Make) -> None:
    good = {f"d{n}": Answers(GOOD) for n in range(60)}
    bad = {f"d{n}": Answers({**GOOD, "total": "?"} if n % 2 else GOOD) for n in range(60)}
    before, run = committed(good), committed(bad, slot="later", retry={"max_attempts": 1})
    page = page_of(run)
    shown = figures_of(page)
    assert shown["against|documents valid|before"] == (60, 60)
    assert shown["against|documents valid|now"] == (30, 60)
    assert math.isclose(shown["against|documents valid|points"][0], -50)
    assert f"Against run {before.name.removeprefix('run=')}" in page
    assert "retry.max_attempts" in page  # what was changed
    assert "no earlier committed run" in page_of(before)


def test_the_command_writes_it_anywhere_and_prices_it(committed: Make, tmp_path: Path) -> None:
    run = committed({"d1": Answers(GOOD)})
    target = tmp_path / "elsewhere.html"
    shown = CliRunner().invoke(app, ["report", str(run), "--output", str(target), "--price-per-gpu-hour", "2.5"])
    assert shown.exit_code == 0, shown.output
    assert str(target) in shown.output.replace("\n", "")
    assert not (run / "report.html").exists()
    assert figures_of(target.read_text(encoding="utf-8"))["money"] == (0.0, None)  # no GPU was asked for


def test_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no committed run"):
        write_report(str(tmp_path))


def test_keep_leaves_a_page_that_is_there(committed: Make) -> None:
    run = committed({"d1": Answers(GOOD)})
    assert "<title>" in page_of(run, keep=True)
    (run / "report.html").write_text("mine")
    assert page_of(run, keep=True) == "mine"


def test_a_report_that_cannot_be_made_is_told_and_takes_nothing_from_the_run(
    committed: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    run = committed({"d1": Answers(GOOD)})
    (data,) = run.glob("status=valid/*/*.parquet")
    data.write_bytes(b"no Parquet")
    after_run(console_on(), str(run), keep=False)
    told = capsys.readouterr().out.replace("\n", "")
    assert "the run is committed, but its report was not written" in told
    assert f"gristmill report {run}" in told
    assert not (run / "report.html").exists()


def test_a_schema_that_a_row_made_up_takes_a_line_and_no_more(committed: Make, tmp_path: Path) -> None:
    rows = [
        {"id": f"d{n}", "text": "Ann & Co", "kind": f"{'x' * 50_000}{n}" if n % 2 else "receipt@1"} for n in range(8)
    ]
    told = {"path": str(tmp_path / "in.jsonl"), "schema_column": "kind"}
    page = page_of(committed({row["id"]: Answers(GOOD) for row in rows}, rows, input=told))
    assert len(page) < 500_000
    shown = figures_of(page)
    assert len({name for name in shown if name.startswith("layer|xxx") and name.endswith("|documents")}) == 4


def test_an_alarm_is_told_whichever_documents_are_read(committed: Make) -> None:
    rows = {f"d{n}": Answers(GOOD) for n in range(12)}
    for alarming in ("d0", "d5", "d11"):
        found = {**rows, alarming: Answers(completion("", "error", error="engine_failed"))}
        units = {"kind": "local", "unit_documents": 2}
        run = committed(found, placement=units, slot=alarming, retry={"max_attempts": 1, **PATIENT})
        shown = figures_of(page_of(run, most=2))
        assert shown["read"][0] < len(rows)
        assert shown["alarm|engine_error"] == (1, None)
