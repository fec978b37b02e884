"""The report without a sandbox: who catches what, what is refused, what `--strict` minds, which keys there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.compile.check import Trial, choose
from pipeline.compile.report import Asked, Told, asked_by, exit_code, of_schema
from pipeline.compile.report_budget import told
from pipeline.compile.report_sites import Spoken, held_sites, left_to_nobody, site_rows
from pipeline.compile.report_sources import Entry
from pipeline.compile.report_strict import CODES, strict_reasons
from pipeline.errors import SchemaError
from pipeline.job import JobConfig
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.shapes import Left
from tests.bounds import processor_seconds

ROOT = Path(__file__).resolve().parents[3]
BODY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": ["string", "null"], "maxLength": 5, "description": "What the item is called"},
        "size": {"type": ["integer", "null"], "minimum": 0, "maximum": 9, "description": "How large it is"},
    },
    "required": ["code", "size"],
    "additionalProperties": False,
}
CODE = ("/properties/code", "maxLength")
SIZE = ("/properties/size", "minimum")
BUDGET: dict[str, Any] = {
    "shortest_text": "{}",
    "shortest_tokens": 10,
    "typical_tokens": 12,
    "p99_tokens": 20,
    "recommended_tokens": 40,
    "worst_tokens": 50,
    "worst_bytes": 60,
    "unbounded_at": [],
    "calibrated_by": "examples",
    "sample_tokens": [12, 20],
    "skipped_samples": 0,
}


def trial(backend: str = "guidance", **values: Any) -> Trial:
    verdicts = {CODE: ("enforced", "{}"), SIZE: ("enforced", "{}")}
    return Trial(backend, **{"kind": "ok", "verdicts": verdicts, "walks": {"finished": 8}, **values})


def reported(*trials: Trial, body: Any = BODY, max_tokens: int | None = None, **budget: Any) -> dict[str, Any]:
    answer = {"kind": "ok", "words": "", "budget": BUDGET | budget, "system_tokens": 90, "prompt_tokens": 100}
    tried = {one.backend: one for one in trials or (trial(),)}
    said = Told(tried, told(answer, max_tokens, 1000), *choose(tried.values()), "abc")
    one = of_schema(Entry("thing@1", document_schema(body, "thing@1")), Asked(max_tokens=max_tokens), said)
    return one | {"strict": strict_reasons(one)}


def refused() -> dict[str, Any]:
    one = of_schema(Entry("x", refused=SchemaError("no such thing", "unknown_schema")), Asked(), None)
    return one | {"strict": strict_reasons(one)}


def codes(one: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in one["strict"]]


# --- who catches it


@pytest.mark.parametrize(
    ("verdict", "left", "who"),
    [
        ("enforced", (), "grammar"),
        ("over_tight", (), "grammar"),
        ("dropped", (), "validator"),
        ("unproven", (), "validator"),
        ("dropped", (Left(*CODE, "why"),), "validator"),
        ("enforced", (Left(*CODE, "held in part"),), "validator"),
        ("enforced", (Left("", "properties", "somewhere below"),), "grammar"),
        ("dropped", (Left("", "*", "all of it"),), "validator"),
    ],
)
def test_a_grammar_catches_what_a_trial_showed_it_to_hold(verdict: str, left: tuple[Left, ...], who: str) -> None:
    tried = trial(verdicts={CODE: (verdict, "{}")}, left=left)
    (row,) = (row for row in site_rows(BODY, {"guidance": tried}, tried) if row["keyword"] == CODE[1])
    assert row["caught_by"] == who
    assert (CODE in held_sites(tried)) == (who == "grammar")
    assert bool(row["backends"]["guidance"]["left"]) == bool(left)


def test_what_is_left_speaks_for_itself_and_for_what_lies_below() -> None:
    lefts = [Left("", "*", "all"), Left("", "properties", "near"), Left("/properties/cod", "*", "another")]
    assert Spoken(lefts).over(CODE) == lefts[1]
    assert Spoken(lefts[:1]).over(CODE) == lefts[0]
    assert Spoken(lefts[2:]).over(CODE) is None
    assert Spoken(lefts[1:]).over(("", "required")) is None


def test_many_sites_and_many_left_are_no_matter_of_minutes() -> None:
    names = [f"/properties/p{number}" for number in range(20_000)]
    many = trial(
        verdicts={(name, "type"): ("enforced", "") for name in names},
        left=tuple(Left(name, "pattern", "why") for name in names),
    )
    with processor_seconds(20):
        assert len(site_rows({}, {"guidance": many}, many)) == 40_000


@pytest.mark.parametrize(
    ("node", "keywords"),
    [
        ({"type": "string", "format": "telephone"}, ["format"]),
        ({"type": "string", "format": "date"}, []),
        ({"contentEncoding": "base64", "contentMediaType": "a/b"}, ["contentEncoding", "contentMediaType"]),
        ({"maxlength": 3}, ["maxlength"]),
        ({"then": {"type": "string"}}, ["then"]),
        ({"if": True, "then": {"type": "string"}}, []),
        ({"minContains": 2}, ["minContains"]),
        ({"x-unit": "m", "$comment": "c", "title": "t", "description": "d", "default": 1}, []),
        ({"properties": {"format": {"type": "string"}, "maxlength": {}}}, []),
    ],
)
def test_keywords_that_nobody_judges_are_told_as_such(node: dict[str, Any], keywords: list[str]) -> None:
    body = {"properties": {"a": node}}
    assert [keyword for pointer, keyword in left_to_nobody(body) if pointer == "/properties/a"] == keywords
    rows = site_rows(body, {"guidance": trial(verdicts={})}, None)
    assert [row["keyword"] for row in rows if row["caught_by"] == "nobody"] == keywords


def test_a_back_end_that_refuses_has_refused_every_site() -> None:
    rows = site_rows(BODY, {"xgrammar": trial("xgrammar", kind="refused", verdicts={}), "guidance": trial()}, trial())
    assert {row["backends"]["xgrammar"]["verdict"] for row in rows} == {"refused"}
    assert {row["caught_by"] for row in rows} == {"grammar"}


# --- refusals and strictness


def test_a_schema_is_refused_only_if_no_back_end_can_use_it() -> None:
    broken = trial("xgrammar", kind="refused", words="does not like it", verdicts={})
    good = reported(broken, trial())
    assert good["refused"] is None
    assert good["chosen"]["backend"] == "guidance"
    bad = reported(broken)
    assert bad["refused"] == {"code": "refused", "words": "xgrammar: does not like it"}
    assert bad["chosen"] is None


@pytest.mark.parametrize(("max_tokens", "code"), [(5, "below_shortest"), (950, "beyond_context"), (60, None)])
def test_a_budget_that_no_answer_can_keep_refuses_with_the_numbers(max_tokens: int, code: str | None) -> None:
    one = reported(max_tokens=max_tokens)
    assert (one["refused"] or {"code": None})["code"] == code
    assert code is None or str(max_tokens) in one["refused"]["words"]


def test_the_exit_code_says_refused_before_it_says_strict() -> None:
    fine, minded, bad = reported(), reported(trial(lost=("{}",))), refused()
    assert exit_code({"schemas": [fine]}, strict=True) == 0
    assert exit_code({"schemas": [fine, minded]}, strict=False) == 0
    assert exit_code({"schemas": [fine, minded]}, strict=True) == 9
    assert exit_code({"schemas": [fine, minded, bad]}, strict=True) == SchemaError.exit_code == 4


def _minded() -> Iterator[tuple[str, dict[str, Any]]]:
    unchecked = {**BODY, "properties": {**BODY["properties"], "code": {"type": "string", "contentEncoding": "base64"}}}
    yield "left_to_nobody", reported(body=unchecked)
    yield "lost", reported(trial(lost=("{}",)))
    yield "lost", reported(trial(verdicts={CODE: ("over_tight", "{}")}))
    yield "surprising", reported(trial(surprises=(CODE,)))
    yield "dead_end", reported(trial(walks={"finished": 7, "dead_end": 1}))
    yield "dead_end", reported(trial(walks={"error": 1}))
    yield "unproven", reported(trial(verdicts={CODE: ("unproven", ""), SIZE: ("enforced", "")}))
    yield "budget", reported(max_tokens=15)
    yield "lint", reported(body={**BODY, "propertise": {}})
    yield "drift", reported() | {"drift": {"worst": "breaking", "against": "thing@0"}}
    yield "drift", reported() | {"drift": {"worst": "narrowing", "against": "thing@0"}}
    yield "stale_lock", reported() | {"lock": {"state": "stale", "changes": [{}]}}


@pytest.mark.parametrize(("code", "one"), list(_minded()))
def test_each_thing_that_strict_minds(code: str, one: dict[str, Any]) -> None:
    assert code in [reason["code"] for reason in strict_reasons(one)]
    assert code in CODES


@pytest.mark.parametrize(
    "one",
    [
        reported(),
        reported() | {"drift": {"worst": "widening", "against": "thing@0"}},
        reported() | {"lock": {"state": "other", "changes": []}},
        reported(trial(), trial("xgrammar", lost=("{}",), surprises=(SIZE,), left=(Left(*CODE, ""),))),
        reported(trial(walks={"finished": 1, "cut": 7})),
    ],
)
def test_strict_does_not_mind_the_rest(one: dict[str, Any]) -> None:
    assert strict_reasons(one) == []


# --- the document


def test_every_schema_has_the_same_keys_and_they_are_documented() -> None:
    good, bad = reported(trial(raw={"refused": "", "verdicts": [["", "type", "enforced", ""]], "lost": 0})), refused()
    assert good.keys() == bad.keys()
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    keys = {*good, *good["backends"]["guidance"], *good["sites"][0], *good["budget"], *good["columns"][0], *CODES}
    assert not keys - named
    assert json.loads(json.dumps(good)).keys() == good.keys()
    assert good["backends"]["guidance"]["raw"]["verdicts"] == {"enforced": 1}


def test_a_job_says_what_is_asked() -> None:
    base = {"name": "j", "input": {"path": "x", "schema": "a@1"}, "output": "o"}
    more = {"sampling": {"max_tokens": 300, "narrow": {"max_items": 4}}, "retry": {"max_output_tokens": 200}}
    engine = {"engine": "sampler", "model": "/m", "backend": "xgrammar", "max_model_len": 4096}
    asked = asked_by(JobConfig.model_validate({**base, **more, "policy": {"abstain": "nullable"}, "engine": engine}))
    assert (asked.backends, asked.model, asked.max_tokens, asked.context) == (("xgrammar",), "/m", 200, 4096)
    assert (asked.policy.abstain, asked.policy.max_items) == ("nullable", 4)
    played = JobConfig.model_validate({**base, "engine": {"engine": "recorded", "recording": "r"}})
    assert (asked_by(played).model, asked_by(played).context) == ("embedded", None)
