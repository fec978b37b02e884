"""The report on other people's schemas must see every loss, every leak and every bad end, or its zeros mean nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import schema_coverage
from bench.coverage.judge import Judge
from bench.coverage.measure import JOB_MODULES, measured
from bench.coverage.quantiles import of_slots, of_values, slot
from bench.coverage.sets import Case, Instance, folder_set, handed, some
from bench.coverage.totals import totals
from pipeline.compile.sandbox import Job, Limits, Sandbox
from pipeline.schema.registry import document_schema

VENDOR = {"type": "object", "properties": {"vendor": {"type": "string", "maxLength": 3}}, "required": ["vendor"]}
OPEN = '{"type":"object","properties":{"vendor":{"type":"string"}},"required":["vendor"],"additionalProperties":false}'
TIGHT = OPEN.replace('"string"', '"string","enum":["b"]')
LIMITS = Limits(seconds=30.0, memory_mib=1024)
SHARES = {"p50": 0.5, "p99": 0.99}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("embedded", workers=1, job_modules=JOB_MODULES) as opened:
        yield opened


def case(schema: Any, *tests: tuple[Any, bool], key: str = "case") -> Case:
    return Case(key, schema, tuple(Instance(data, valid) for data, valid in tests))


def judged(schema: Any, data: Any, label: bool) -> dict[str, Any]:
    loaded = document_schema(schema, "case@1")
    return Judge(loaded.body, loaded.closed).judged({"data": data, "valid": label, "about": ""})


# --- sets


def test_a_folder_gives_schemas_in_every_form_that_collections_use(tmp_path: Path) -> None:
    row = {"schema": VENDOR, "tests": [{"description": "short", "data": {"vendor": "a"}, "valid": True}]}
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "plain.json").write_text(json.dumps(VENDOR))
    (tmp_path / "row.json").write_text(json.dumps(row))
    (tmp_path / "groups.json").write_text(json.dumps([row, {**row, "schema": True}]))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, [row, {"document": "x", "record": {}}, row])))
    (tmp_path / "bad.json").write_text("{not json")
    (tmp_path / "property.json").write_text(json.dumps({"type": "object", "schema": "https://example.com/s"}))
    (tmp_path / "plan.lock.json").write_text("{}")
    cases = {item.id: item for item in folder_set(tmp_path).cases}
    assert set(cases) == {
        *("bad.json", "deep/plain.json", "groups.json#0", "groups.json#1"),
        *("lines.jsonl:1", "lines.jsonl:3", "property.json", "row.json"),
    }
    assert cases["bad.json"].fault and not cases["row.json"].fault
    assert cases["deep/plain.json"].schema == cases["row.json"].schema == cases["lines.jsonl:3"].schema == VENDOR
    assert cases["row.json"].tests == (Instance({"vendor": "a"}, True, "short"),)


def test_a_limit_takes_from_all_over_the_set() -> None:
    cases = [case({}, key=str(number)) for number in range(100)]
    assert [item.id for item in some(cases, 4)] == ["0", "25", "50", "75"]
    assert len(some(cases, None)) == len(some(cases, 1000)) == 100


def test_a_draft_of_the_suite_is_declared_in_each_of_its_schemas(shared: Path) -> None:
    cases = handed("suite-draft7").cases
    assert cases
    assert all(item.schema["$schema"] for item in cases if isinstance(item.schema, dict))


# --- judging


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (VENDOR, {"vendor": "a", "more": 1}, "undeclared keys (closing policy)"),
        ({"type": "string", "format": "date"}, "2024-02-30", "format"),
        (VENDOR, {"vendor": "long"}, "keyword maxLength"),
        ({**VENDOR, "additionalProperties": False}, {"vendor": "a", "more": 1}, "keyword additionalProperties"),
        (
            {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}},
            {"day": "2024-02-30", "more": 1},
            "undeclared keys and format",
        ),
    ],
)
def test_where_we_differ_from_a_label_the_reason_is_told(schema: Any, data: Any, reason: str) -> None:
    found = judged(schema, data, True)
    assert (found["accepted"], found["reason"]) == (False, reason)
    assert "reason" not in judged(schema, data, False)


@pytest.mark.parametrize("data", [float("nan"), [float("inf")], {"vendor": "\ud800"}])
def test_what_is_not_json_is_not_judged(data: Any) -> None:
    assert judged({}, data, True)["unjudged"]


# --- times


def test_quantiles_of_counts_are_those_of_the_values() -> None:
    seconds = [0.000_01 * (number + 1) for number in range(1000)]
    counts: dict[int, int] = {}
    for value in seconds:
        counts[slot(value)] = counts.get(slot(value), 0) + 1
    exact = of_values([value * 1e6 for value in seconds], SHARES)
    assert of_slots(counts, SHARES) == pytest.approx({name: exact[name] for name in SHARES}, rel=0.06)
    assert of_values([3.0, 1.0, 2.0], SHARES) == {"p50": 2.0, "p99": 3.0, "max": 3.0}
    assert of_slots({}, SHARES) == of_values([], SHARES) == {}


# --- what is found


def walked(sandbox: Sandbox, text: str, left: list[list[str]]) -> Any:
    body = document_schema(VENDOR, "case@1").body
    values = [{"vendor": "a"}, {"vendor": "b"}, {"vendor": "long"}, {"vendor": "b", "more": 1}]
    items = [
        {"data": value, "text": json.dumps(value, separators=(",", ":")), "accepted": number < 2}
        for number, value in enumerate(values)
    ]
    payload = {"body": body, "backend": "xgrammar", "text": text, "left": left, "instances": items}
    result = sandbox.call(Job("coverage_walk", payload, LIMITS))
    assert result.kind == "ok", result.words
    return result.value


@pytest.mark.slow
def test_a_transport_schema_that_is_too_wide_or_too_tight_is_found_out(sandbox: Sandbox) -> None:
    wide = walked(sandbox, OPEN, [])
    assert wide["taken"] == [True, True, True, False]
    assert wide["unannounced"] == {"2": [["/properties/vendor", "maxLength"]]}
    assert walked(sandbox, OPEN, [["/properties/vendor", "maxLength", ""]])["unannounced"] == {}
    assert walked(sandbox, TIGHT, [])["taken"] == [False, True, False, False]
    assert sum(wide["masks"].values()) > 0 and wide["disagree"] == 0


def test_a_sound_schema_loses_nothing_and_a_raw_one_is_measured_beside_it(sandbox: Sandbox) -> None:
    anchored = {"type": "object", "properties": {"code": {"type": "string", "pattern": "b"}}, "required": ["code"]}
    row = measured(sandbox, case(anchored, ({"code": "abc"}, True), ({"code": "b"}, True), ({"code": "c"}, False)))
    report = totals([json.loads(json.dumps(row))])  # as it comes from disk
    assert (report["plans"]["made"], report["crashed"], report["hung"]) == (1, 0, 0)
    chosen = report["chosen"]
    assert (chosen["valid"], chosen["lost"], chosen["invalid"], chosen["unannounced"]) == (2, 0, 1, 0)
    # DESIGN.md: xgrammar reads a pattern without anchors as one of the whole text.
    assert report["raw"]["xgrammar"]["handed"]["by_our_validator"]["lost"] == 1
    assert report["raw"]["xgrammar"]["sites"]["sites"] == report["backends"]["xgrammar"]["sites"]["sites"] > 0


def test_schemas_without_a_plan_are_told_by_reason(sandbox: Sandbox) -> None:
    rows = [
        measured(sandbox, case({"$ref": "https://example.com/other"}), raw=False),
        measured(sandbox, case({"type": "object", "required": ["a"], "properties": {"a": False}}), raw=False),
        measured(sandbox, Case("broken", None, fault="no JSON"), raw=False),
    ]
    report = totals(rows)
    assert report["not_loaded"] == {"bad_ref": 1, "not_json": 1}
    assert report["plans"]["refused"] == {"unsatisfiable": 1}
    assert report["plans"]["made"] == report["crashed"] == report["hung"] == 0


def found_row(**changes: Any) -> dict[str, Any]:
    item = {"label": True, "accepted": True, "about": "", "text": "{}"}
    ours = {
        **{"kind": "ok", "words": "", "transport": "{}", "left": [], "surprises": [], "lost": [], "leaks": []},
        **{"verdicts": {}, "seconds": 1.0, "peak_mib": 1.0, "compile_seconds": 0.1, "valid": 1, "complete": True},
        **{"walks": {}, "walk": {"taken": [True], "unannounced": {}, "masks": {}, "disagree": 0}},
    } | changes
    row = {"id": "x", "handed": 1, "load_seconds": 0.1, "sites": 1, "instances": [item], "unjudged": []}
    return row | {"chosen": "xgrammar", "why": "", "ours": {"xgrammar": ours, "guidance": ours}}


def test_a_legal_instance_of_a_schema_that_is_called_unsatisfiable_is_lost() -> None:
    report = totals([found_row(kind="unsatisfiable", words="no document", walk={})])
    assert report["backends"]["xgrammar"]["handed"]["lost"] == 1
    assert report["cases"]["lost"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"lost": ["{}"]}, "lost"),
        ({"leaks": ["[]"], "surprises": [["/a", "type", ""]]}, "unannounced"),
        ({"walk": {"taken": [False], "unannounced": {}, "masks": {}, "disagree": 0}}, "lost"),
    ],
)
def test_every_loss_and_leak_is_listed_with_its_text(changes: dict[str, Any], kind: str) -> None:
    listed = totals([found_row(**changes)])["cases"][kind]
    assert {one["backend"] for one in listed} == {"xgrammar", "guidance"}
    assert all(one["id"] == "x" and one["text"] for one in listed)


@pytest.mark.parametrize(("kind", "crashed", "hung"), [("timeout", 0, 2), ("crash", 2, 0), ("memory", 2, 0)])
def test_bad_ends_are_counted(kind: str, crashed: int, hung: int) -> None:
    fault = {"kind": kind, "where": "trial", "words": ""}
    report = totals([found_row(kind=kind, words="", broken=fault, walk={})])
    assert (report["crashed"], report["hung"]) == (crashed, hung)


@pytest.mark.slow
def test_the_program_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vendor.json").write_text(json.dumps(VENDOR))
    target = tmp_path / "out.json"
    assert schema_coverage.main(["--folder", str(tmp_path / "mine"), "--json", str(target)]) == 0
    written = json.loads(target.read_text())
    assert written["sets"]["mine"]["plans"]["made"] == 1
    assert str(tmp_path) not in target.read_text()
    assert "plans made: 1" in capsys.readouterr().out
