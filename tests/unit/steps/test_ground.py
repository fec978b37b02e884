"""Support of the leaves of a record: fields with spans of the raw text, and what happens to what has none."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import codes, plan_of, schema_and_record

from pipeline.job import ExtractConfig, PolicyConfig
from pipeline.records import Draft, Field
from pipeline.steps.clean import Cleaned
from pipeline.steps.codes import cap_of
from pipeline.steps.ground import MAX_LEAVES, ground

TEXT = "Ann & Co\n29 February 2024\ntea 2.50\nsalt 3.00\nTotal 19.90 EUR"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def grounded(body: Any, record: Any, text: str = TEXT, policy: Any = "degrade", **values: Any) -> Draft:
    abstain, cite = values.pop("abstain", "none"), values.pop("cite", "none")
    config = ExtractConfig(policy=PolicyConfig(ground=policy, abstain=abstain), cite=cite)
    draft = Draft(value=record, parsed=True, **{k: v for k, v in values.items() if k != "cleaned"})
    return ground(draft, values.get("cleaned", Cleaned(text)), plan_of(body), config, 1)


def spans(draft: Draft, text: str = TEXT) -> dict[str, Any]:
    return {f.pointer: (f.match, text[f.start : f.end] if f.start is not None else None) for f in draft.fields}


STRING = {"type": "string"}
NUMBER = {"type": "number"}


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


def test_of_several_places_the_one_by_its_siblings_is_taken() -> None:
    text = "fee 5.00\nshipping 5.00\ntea 5.00\nsalt 5.00"
    body = schema(lines={"type": "array", "items": schema(name=STRING, price=NUMBER)})
    names = ["salt", "tea", "shipping", "fee"]
    draft = grounded(body, {"lines": [{"name": name, "price": 5.0} for name in names]}, text)
    places = {field.pointer: field.start for field in draft.fields}
    for index, name in enumerate(names):
        assert places[f"/lines/{index}/price"] == text.index(f"{name} 5.00") + len(name) + 1


def test_a_value_that_a_list_holds_again_takes_the_next_place() -> None:
    text = "Readings: 0 0 0"
    draft = grounded(schema(values={"type": "array", "items": {"type": "integer"}}), {"values": [0, 0, 0]}, text)
    assert [field.start for field in draft.fields] == [10, 12, 14]


def test_the_message_quotes_little_and_asks_for_null_only_where_null_is_allowed() -> None:
    record = {"a": "nowhere " * 50, "b": "nothing"}
    draft = grounded(schema(a=STRING, b={"type": ["string", "null"]}), record)
    first, second = [problem.message for problem in draft.problems]
    assert "null" not in first and len(first) < 160
    assert "null" in second
    abstaining = grounded(schema(a=STRING), {"a": "nowhere"}, abstain="nullable")
    assert "null" in abstaining.problems[0].message


def test_support_that_is_not_literal_enough_is_told_with_what_stands_there() -> None:
    draft = grounded(schema(a={**STRING, "x-ground": "exact"}), {"a": "ann & co"})
    assert '"Ann & Co"' in draft.problems[0].message


def test_values_beyond_the_bound_are_named_and_no_problem() -> None:
    body = schema(values={"type": "array", "items": STRING})
    draft = grounded(body, {"values": ["nowhere"] * (MAX_LEAVES + 3)})
    assert len(draft.fields) == MAX_LEAVES
    last = draft.problems[-1]
    assert (last.pointer, last.severity) == ("", "observe")
    assert "3 of" in last.message


@given(schema_and_record(), st.text(max_size=60))
def test_any_record_of_any_schema_is_grounded(pair: tuple[dict[str, Any], Any], text: str) -> None:
    draft = grounded(*pair, text=text)
    assert draft.value == pair[1]
    for field in draft.fields:
        if field.match == "none":
            assert (field.start, field.end) == (None, None)
        else:
            assert field.start is not None and field.end is not None and 0 <= field.start < field.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "1" * 300_000,
        "1,1." * 75_000,
        "[L1] " * 60_000,
        "e\u0301" * 100_000,
        "一" * 200_000,
        "- " * 150_000,
        "123 " * 75_000 + "1234",
        "1 December " * 30_000,
        "\ud800 " * 100_000,
    ],
    ids=["word", "digits", "marks", "ids", "combining", "chinese", "dashes", "spaced", "months", "surrogates"],
)
def test_a_hostile_document_takes_bounded_time(text: str) -> None:
    body = schema(a=STRING, b=NUMBER, c=STRING, d=STRING, e=STRING)
    record = {"a": "a", "b": 1, "c": "a b 1 e\u0301 " * 100, "d": "2018-12-01", "e": "一一"}
    started = time.process_time()
    grounded(body, record, text)
    assert time.process_time() - started < 3


def test_a_number_that_nobody_writes_out_is_told_without_being_written_out() -> None:
    draft = grounded(schema(a={"type": "integer"}), {"a": 10**5000})
    assert codes(draft) == ["ungrounded"]
    assert len(draft.problems[0].message) < 160
