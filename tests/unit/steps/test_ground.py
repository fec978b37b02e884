"""Support of the leaves of a record: fields with spans of the raw text, and what happens to what has none."""

from __future__ import annotations

from typing import Any

import pytest
from grounding import NUMBER, STRING, TEXT, grounded, schema, spans
from support import codes, plan_of

from pipeline.job import ExtractConfig, PolicyConfig
from pipeline.records import Draft, Field
from pipeline.steps.clean import Cleaned
from pipeline.steps.codes import cap_of
from pipeline.steps.ground import ground


def test_each_leaf_has_the_span_that_supports_it() -> None:
    body = schema(
        vendor=STRING,
        date=STRING,
        lines={"type": "array", "items": schema(name=STRING, price=NUMBER)},
        total=NUMBER,
        note={"type": ["string", "null"]},
        paid={"type": "boolean"},
    )
    record = {
        "vendor": "ANN & CO",
        "date": "2024-02-29",
        "lines": [{"name": "tea", "price": 2.5}, {"name": "salt", "price": 3}],
        "total": 19.9,
        "note": None,
        "paid": True,
    }
    draft = grounded(body, record)
    assert spans(draft) == {
        "/vendor": ("normalised", "Ann & Co"),
        "/date": ("normalised", "29 February 2024"),
        "/lines/0/name": ("exact", "tea"),
        "/lines/0/price": ("normalised", "2.50"),
        "/lines/1/name": ("exact", "salt"),
        "/lines/1/price": ("normalised", "3.00"),
        "/total": ("normalised", "19.90"),
    }
    assert codes(draft) == []


@pytest.mark.parametrize(
    ("policy", "cap"), [("observe", "valid"), ("degrade", "degraded"), ("retry", "degraded"), ("block", "rejected")]
)
def test_a_required_value_without_support_is_a_problem_by_policy(policy: str, cap: str) -> None:
    draft = grounded(schema(vendor=STRING), {"vendor": "Example Ltd"}, policy=policy)
    assert codes(draft) == ["ungrounded"]
    assert draft.problems[0].pointer == "/vendor"
    assert cap_of(draft.problems[0]) == cap
    assert spans(draft) == {"/vendor": ("none", None)}


def test_off_looks_for_nothing() -> None:
    draft = Draft(value={"vendor": "Example Ltd"}, parsed=True)
    config = ExtractConfig(policy=PolicyConfig(ground="off"), cite="lines")
    assert ground(draft, Cleaned(TEXT), plan_of(), config, 1) is draft


def test_nothing_is_looked_for_where_nothing_was_parsed() -> None:
    assert ground(Draft(), Cleaned(TEXT), plan_of(), ExtractConfig(), 1) == Draft()


def test_an_optional_value_without_support_is_told_and_is_no_problem() -> None:
    body = {"type": "object", "properties": {"vendor": STRING}}
    draft = grounded(body, {"vendor": "Example Ltd"})
    assert spans(draft) == {"/vendor": ("none", None)}
    assert codes(draft) == []


def test_null_and_booleans_and_blank_texts_are_not_looked_for() -> None:
    body = schema(a={"type": ["string", "null"]}, b={"type": "boolean"}, c=STRING)
    draft = grounded(body, {"a": None, "b": True, "c": " "})
    assert (draft.fields, codes(draft)) == ((), [])


def test_a_label_is_looked_for_and_its_absence_says_nothing() -> None:
    label = {"enum": ["tea", "invoice"]}
    assert spans(grounded(schema(kind=label), {"kind": "tea"})) == {"/kind": ("exact", "tea")}
    absent = grounded(schema(kind=label), {"kind": "invoice"})
    assert (absent.fields, codes(absent)) == ((), [])
    assert codes(grounded(schema(kind={**label, "x-ground": True}), {"kind": "invoice"})) == ["ungrounded"]


def test_a_currency_that_the_document_does_not_name_has_no_support_though_it_is_an_enum() -> None:
    body = schema(total=NUMBER, currency={"type": ["string", "null"], "enum": ["EUR", "USD", None]})
    text = "Summa 40,00 $"
    wrong = grounded(body, {"total": 40.0, "currency": "EUR"}, text)
    assert [problem.pointer for problem in wrong.problems] == ["/currency"]
    right = grounded(body, {"total": 40.0, "currency": "USD"}, text)
    assert codes(right) == []
    assert spans(right, text) == {"/total": ("normalised", "40,00"), "/currency": ("normalised", "$")}


@pytest.mark.parametrize(
    ("says", "value", "found"),
    [
        ("exact", "Ann & Co", True),
        ("exact", "ann & co", False),
        ("normalised", "ann & co", True),
        ("normalised", "Total 19.90 EUT", False),
        ("fuzzy", "Total 19.90 EUT", True),
        (True, "Total 19.90 EUT", True),
        (True, "nowhere", False),
        (False, "nowhere", True),
        ("no such word", "nowhere", True),
    ],
)
def test_x_ground_says_how_literal_support_has_to_be(says: Any, value: str, found: bool) -> None:
    body = {"type": "object", "properties": {"a": {"type": "string", "x-ground": says}}}
    assert (codes(grounded(body, {"a": value})) == []) == found


def test_x_ground_holds_for_what_is_below_until_something_else_is_said() -> None:
    inner = schema(a=STRING, b={**STRING, "x-ground": True})
    body = schema(derived={**inner, "x-ground": False}, list={"type": "array", "x-ground": False, "items": STRING})
    draft = grounded(body, {"derived": {"a": "nowhere", "b": "no place"}, "list": ["never"]})
    assert [problem.pointer for problem in draft.problems] == ["/derived/b"]
    assert [field.pointer for field in draft.fields] == ["/derived/b"]


def test_x_ground_of_the_branch_that_the_value_takes_counts() -> None:
    body = schema(a={"anyOf": [{"type": "integer"}, {"type": "string", "x-ground": False}]})
    assert codes(grounded(body, {"a": "nowhere"})) == []
    assert codes(grounded(body, {"a": 77})) == ["ungrounded"]


def test_what_the_model_wrote_is_looked_for_before_what_a_normaliser_made_of_it() -> None:
    fields = (Field("/total", raw='"19.90 EUR"'), Field("/gone", touched=True))
    draft = grounded(schema(total=NUMBER), {"total": 19.9}, fields=fields)
    assert spans(draft)["/total"] == ("exact", "19.90 EUR")
    normalised = grounded(schema(total=NUMBER), {"total": 19.9}, fields=(Field("/total", raw='"wrong"'),))
    assert spans(normalised)["/total"] == ("normalised", "19.90")


def test_what_other_steps_know_of_a_field_stays() -> None:
    fields = (Field("/total", raw="19.9", touched=True, confidence=0.5), Field("/gone", touched=True))
    after = {field.pointer: field for field in grounded(schema(total=NUMBER), {"total": 19.9}, fields=fields).fields}
    assert after["/total"].raw == "19.9" and after["/total"].touched and after["/total"].confidence == 0.5
    assert after["/total"].match == "normalised"
    assert after["/gone"] == fields[1]


@pytest.mark.parametrize("raw", ["", "{", "[1]", "null", "true", '"\\ud800"', "[" * 100_000])
def test_a_raw_value_of_any_kind_does_no_harm(raw: str) -> None:
    draft = grounded(schema(total=NUMBER), {"total": 19.9}, fields=(Field("/total", raw=raw),))
    assert spans(draft)["/total"] == ("normalised", "19.90")


def test_grounding_twice_changes_nothing() -> None:
    body, record = schema(vendor=STRING, total=NUMBER), {"vendor": "Example Ltd", "total": 19.9}
    once = grounded(body, record)
    config = ExtractConfig(policy=PolicyConfig(ground="degrade"))
    assert ground(once, Cleaned(TEXT), plan_of(body), config, 1) == once


def test_spans_are_of_the_raw_text() -> None:
    raw = "a\u00a0\u00a0  b 合計 5"
    text, offsets = "a b 合計 5", (0, 1, 5, 6, 7, 8, 9, 10, 11)
    draft = grounded(schema(x=STRING), {"x": "合計"}, cleaned=Cleaned(text, offsets, 1))
    assert spans(draft, raw) == {"/x": ("exact", "合計")}
