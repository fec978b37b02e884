"""What a job and a page of the documentation declare: lookups, languages, a currency that must stand on its line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from declaring import MONEY, RIGHT, found, judged
from support import Answers, codes, completion, document, extracted, plan_of

from pipeline.job import ExtractConfig
from pipeline.jobpolicy import LookupConfig
from pipeline.records import Draft
from pipeline.schema.annotations import check_annotations
from pipeline.steps.codes import cap_of

CURRENCY = {
    "type": "object",
    "properties": {
        "total": {"type": "number"},
        "currency": {"type": ["string", "null"], "enum": ["EUR", "USD", None]},
    },
    "required": ["total", "currency"],
    "x-validations": [
        {
            "rule": r"""self.currency == null || input.text.split('\n').exists(line,
                line.matches(string(int(self.total))) &&
                line.matches({'EUR': '€|EUR|euro', 'USD': '[$]|USD|dollar'}[self.currency]))""",
            "message": "the currency must stand on the line of the amount, or be null",
            "pointer": "/currency",
            "severity": "degrade",
        }
    ],
}


@pytest.mark.parametrize(
    ("text", "currency", "status"),
    [
        ("Summa 40,00 $", "EUR", "degraded"),
        ("Summa 40,00 $", "USD", "valid"),
        ("Summa 40,00", None, "valid"),
        ("Summa 40,00", "EUR", "degraded"),
        ("EUR accepted\nSumma 40,00", "EUR", "degraded"),
        ("Summa 40,00 €", "EUR", "valid"),
    ],
)
def test_a_currency_that_the_amount_line_does_not_show_degrades_and_stays(
    text: str, currency: Any, status: str
) -> None:
    record = {"total": 40.0, "currency": currency}
    check_annotations(CURRENCY)
    outcome = extracted(Answers(record), plan_of(CURRENCY), document(text), max_attempts=1)
    assert outcome.status == status
    assert outcome.record == record


LOOKUP = LookupConfig(pointer="/lines/*/name", path="names.csv", column="name")


def test_lookups() -> None:
    value = {**RIGHT, "lines": [{"name": "tea", "amount": 1}, {"name": "salt", "amount": 1}]}
    known = {("names.csv", "name"): {"tea"}}
    plan = plan_of(MONEY)
    config = ExtractConfig(lookups=(LOOKUP,))
    (problem,) = judged(plan, Draft(value, True), config=config, lookups=known)
    assert (problem.code, problem.pointer, problem.severity) == ("lookup_missing", "/lines/1/name", "block")
    other = ExtractConfig(lookups=(LOOKUP.model_copy(update={"schema_name": "other@1"}),))
    assert judged(plan, Draft(value, True), config=other) == []
    mild = ExtractConfig(lookups=(LOOKUP.model_copy(update={"severity": "observe", "schema_name": "receipt@1"}),))
    assert [cap_of(one) for one in judged(plan, Draft(value, True), config=mild, lookups=known)] == ["valid"]
    with pytest.raises(KeyError):  # a fault of the program, not of the document
        judged(plan, Draft(value, True), config=config)


GERMAN = "Die Rechnung ist innerhalb von vierzehn Tagen ohne Abzug zu bezahlen, sonst werden Zinsen berechnet."
ENGLISH = "The invoice has to be paid within fourteen days without any deduction, otherwise interest is charged."


def test_language() -> None:
    body = {"type": "object", "properties": {"a": {"type": ["string", "null"], "x-language": "de"}}}
    assert found(body, {"a": GERMAN}) == [] and found(body, {"a": None}) == [] and found(body, {"a": "Tea"}) == []
    (problem,) = found(body, {"a": ENGLISH})
    assert (problem.code, problem.pointer, problem.severity) == ("language_mismatch", "/a", "degrade")
    assert "reads as en" in problem.message
    listed = {"type": "array", "items": {"type": "string", "x-language": {"languages": ["en"], "severity": "block"}}}
    assert [(one.pointer, one.severity) for one in found(listed, [ENGLISH, GERMAN])] == [("/1", "block")]


def test_the_case_of_a_defaulted_currency(shared: Any) -> None:
    rows = map(json.loads, (shared / "cases" / "failures.jsonl").read_text(encoding="utf-8").splitlines())
    case = next(row for row in rows if row["id"] == "F091")["input"]
    body = {**case["schema"], "x-validations": CURRENCY["x-validations"]}
    engine = Answers(completion(case["model_output"]))
    outcome = extracted(engine, plan_of(body), document(case["document"]), max_attempts=2)
    assert outcome.status == "degraded" and outcome.record["currency"] == "EUR" and "rule_broken" in codes(outcome)
    assert len(engine.prompts) == 1  # a check that only degrades asks for no other answer


PAGE = (Path(__file__).parents[3] / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page_hold_what_it_says() -> None:
    first, second = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    right = {**RIGHT, "issued": "2024-02-01", "due": "2024-03-01", "lines": [{"name": "tea", "amount": 10.1}]}
    assert found({**MONEY, **first}, right) == []
    assert [one.pointer for one in found({**MONEY, **first}, {**right, "lines": []})] == ["/subtotal"]
    assert [one.severity for one in found({**MONEY, **first}, {**right, "due": "2024-01-01"})] == ["degrade", "degrade"]
    body = {**CURRENCY, "x-validations": [second]}
    assert found(body, {"total": 40.0, "currency": "USD"}, document("Summa 40,00 $")) == []
    assert [one.code for one in found(body, {"total": 40.0, "currency": "EUR"}, document("Summa 40,00 $"))] == [
        "rule_broken"
    ]
