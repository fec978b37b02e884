"""Declared normalisers: what is printed is read exactly or not at all, changes are named, the raw value stays."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import RECEIPT, codes

from pipeline.records import Draft, Field
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import document_schema
from pipeline.steps.normalise import normalise
from pipeline.steps.route import status_of
from pipeline.steps.validate import validate


def plan_for(body: Any) -> DecodingPlan:
    schema = document_schema(body, f"n@{abs(hash(json.dumps(body)))}")
    return build_plan(schema, "", backend="xgrammar", compact_json=True)


def leaf(*steps: Any, **schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {**schema, "x-normalise": list(steps)}}, "required": ["x"]}


def done(body: Any, value: Any, **draft: Any) -> Draft:
    return normalise(Draft(value={"x": value}, parsed=True, **draft), plan_for(body), 1)


GERMAN = {"decimal": {"locale": "de"}}


@pytest.mark.parametrize(
    ("steps", "schema", "raw", "value"),
    [
        (["trim"], {"type": "string"}, " \u00a0a b\n", "a b"),
        (["collapse"], {"type": "string"}, "a \n\t\u3000b", "a b"),
        (["upper"], {"type": "string"}, "ab", "AB"),
        (["lower"], {"enum": ["ab"]}, "Ab", "ab"),
        (["invisible"], {"type": "string"}, "a\u200b\u202eb\u00ad", "ab"),
        (["invisible"], {"type": "string"}, "a\x0cb", "a\nb"),
        (["digits"], {"type": "string", "pattern": r"^\d+$"}, "١٢٣", "123"),
        (["digits"], {"type": "string"}, "１２３४५", "12345"),
        (["trim", "upper", "digits"], {"type": "string"}, " a１ ", "A1"),
        ([GERMAN], {"type": "number"}, "1.234,50", 1234.5),
        ([GERMAN], {"type": ["integer", "null"]}, "1.234", 1234),
        ([GERMAN], {"type": "integer"}, "1.234,00", 1234),
        ([GERMAN], {"type": "string"}, "1.234,50", "1234.50"),
        ([GERMAN], {"type": ["string", "number"]}, "0,10", 0.1),
        ([GERMAN], {"enum": ["1.50", None]}, "1,50", "1.50"),
        ([GERMAN], {"enum": [1.5, None]}, "1,50", 1.5),
        (["decimal-comma"], {}, "-12,5", -12.5),
        (["decimal-point"], {}, "1 234.5", 1234.5),
        ([{"decimal": {"locale": "en-IN", "around": ["₹", "/-"]}}], {"type": "number"}, "₹ 12,34,567.50/-", 1234567.5),
        ([{"date": {"locale": "de"}}], {"type": "string", "format": "date"}, "1. März 2024", "2024-03-01"),
        ([{"date": {"locale": "en_US", "formats": ["dMMMyy"], "pivot": 1970}}], {}, "29FEB24", "2024-02-29"),
        (["currency"], {"enum": ["EUR", "USD"]}, "€", "EUR"),
        ([{"currency": {"default": ["CAD"]}}], {"type": "string"}, "$", "CAD"),
        ([{"date": {"locale": "de"}}, {"date": {"locale": "en_GB"}}], {}, "1 March 2024", "2024-03-01"),
    ],
)
def test_a_value_is_normalised_and_the_raw_one_stays(steps: Any, schema: Any, raw: Any, value: Any) -> None:
    draft = done(leaf(*steps, **schema), raw)
    assert draft.value == {"x": value}
    assert type(draft.value["x"]) is type(value)
    assert [(field.pointer, json.loads(field.raw or "null")) for field in draft.fields] == [("/x", raw)]
    assert draft.problems == ()
    assert draft.repairs == ()
    assert codes(validate(draft, plan_for(leaf(*steps, **schema)), 1, constrained=True)) == []


@pytest.mark.parametrize(
    ("steps", "schema", "value"),
    [
        ([GERMAN], {"type": "number"}, 1234.56),
        ([GERMAN], {"type": ["number", "null"]}, None),
        ([GERMAN], {}, True),
        ([{"date": {"locale": "de"}}], {"type": "string", "format": "date"}, "2024-02-29"),
        (["currency"], {"type": "string"}, "MYR"),
        (["trim", "upper"], {"type": "string"}, "AB"),
    ],
)
def test_what_has_the_form_already_is_the_same_draft(steps: Any, schema: Any, value: Any) -> None:
    plan, draft = plan_for(leaf(*steps, **schema)), Draft(value={"x": value}, parsed=True)
    assert normalise(draft, plan, 1) is draft


@pytest.mark.parametrize(
    ("steps", "schema", "value"),
    [
        ([GERMAN], {"type": "number"}, "1.23"),
        ([GERMAN], {"type": "number"}, "1234.56"),
        ([GERMAN], {"type": "number"}, "0.123"),
        ([GERMAN], {"type": "number"}, "00123"),
        ([GERMAN], {"type": "number"}, "12,50 €"),
        ([GERMAN], {"type": "number"}, "0,1234567890123456789"),
        ([{"decimal": {"locale": "de", "fraction": 2}}], {"type": "number"}, "1,234"),
        ([{"date": {"locale": "de"}}], {}, "30.02.2024"),
        ([{"date": {"locale": "en_US"}}], {}, "13/02/2024"),
        ([{"date": {"locale": "de"}}], {}, "01.02.04"),
        ([{"date": {"locale": "de"}}], {}, "2024-13-45"),
        ([{"date": {"locale": "th"}}], {}, "29/02/2567"),
        ([{"date": {"locale": "en_GB"}}], {}, "Friday, 29 February 2024"),
        (["currency"], {"type": "string"}, "$"),
        (["currency"], {"type": "string"}, "kr"),
        ([{"currency": {"default": ["EUR"]}}], {"type": "string"}, "$"),
        ([GERMAN], {"type": "number"}, "1" * 100_000),
    ],
)
def test_what_is_doubtful_stays_as_it_is_and_is_named(steps: Any, schema: Any, value: Any) -> None:
    draft = done(leaf(*steps, **schema), value)
    assert draft.value == {"x": value}
    assert [(p.code, p.pointer, p.attempt) for p in draft.problems] == [("not_normalised", "/x", 1)]
    assert draft.fields == ()
    assert status_of(draft) == "valid"


def test_the_model_is_told_to_copy_and_not_to_rewrite() -> None:
    body = leaf({"date": {"locale": "de"}}, type="string", format="date")
    judged = validate(done(body, "irgendwann"), plan_for(body), 1)
    violation = next(problem for problem in judged.problems if problem.code == "schema_violation")
    assert violation.pointer == "/x"
    assert "as it is printed" in violation.message
    assert "format" not in violation.message


def test_every_place_that_a_subschema_speaks_of_is_normalised() -> None:
    amount = {"type": "number", "x-normalise": ["decimal-comma"]}
    body = {
        "type": "object",
        "properties": {
            "a/b~": {"$ref": "#/$defs/amount"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"p": {"$ref": "#/$defs/amount"}}}},
            "either": {"anyOf": [{"type": "null"}, amount]},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, amount]},
            "kind": {"enum": ["a", "b"]},
        },
        "patternProperties": {"^x_": amount},
        "additionalProperties": {"type": "string"},
        "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
        "then": {"properties": {"x_1": {}}},
        "else": {"properties": {"late": amount}},
        "$defs": {"amount": amount},
    }
    raw = {"a/b~": "1,5", "lines": [{"p": "2,5"}, {}], "either": "3,5", "pair": ["4,5", "5,5"]}
    raw |= {"x_1": "6,5", "free": "7,5", "kind": "b", "late": "8,5"}
    draft = normalise(Draft(value=raw, parsed=True), plan_for(body), 1)
    assert draft.value == {
        **{"a/b~": 1.5, "lines": [{"p": 2.5}, {}], "either": 3.5, "pair": ["4,5", 5.5], "x_1": 6.5, "free": "7,5"},
        **{"kind": "b", "late": 8.5},
    }
    assert sorted(field.pointer for field in draft.fields) == sorted(
        ["/a~1b~0", "/lines/0/p", "/either", "/pair/1", "/x_1", "/late"]
    )
    assert raw["lines"] == [{"p": "2,5"}, {}]


def test_of_two_branches_the_one_that_accepts_decides_and_a_text_for_another_branch_is_no_miss() -> None:
    both = {"anyOf": [{"type": "number", "x-normalise": ["decimal-comma"]}, {"enum": ["n/a"]}]}
    body = {"type": "object", "properties": {"x": both}}
    assert done(body, "1,5").value == {"x": 1.5}
    assert done(body, "n/a").problems == ()
    two = {
        "anyOf": [
            {"type": "number", "x-normalise": ["decimal-comma"]},
            {"type": "string", "format": "date", "x-normalise": [{"date": {"locale": "de"}}]},
        ]
    }
    body = {"type": "object", "properties": {"x": two}}
    assert done(body, "1,5").value == {"x": 1.5}
    assert done(body, "1.3.2024").value == {"x": "2024-03-01"}


def test_what_a_repair_touched_stays_marked() -> None:
    draft = done(leaf("decimal-comma", type="number"), "1,5", fields=(Field("/x", touched=True), Field("/y")))
    assert draft.fields == (Field("/x", touched=True, raw='"1,5"'), Field("/y"))


def test_a_schema_without_normalisers_changes_nothing() -> None:
    draft = Draft(value={"vendor": " a "}, parsed=True)
    assert normalise(draft, plan_for(RECEIPT), 1) is draft
    assert normalise(Draft(), plan_for(leaf("trim")), 1) == Draft()


def test_half_a_surrogate_pair_is_kept_as_text_that_can_be_written() -> None:
    draft = done(leaf("trim"), " \ud800")
    assert draft.fields[0].raw == '" \\ud800"'
    draft.fields[0].raw.encode()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**11), max_value=10**11))
def test_a_printed_amount_comes_back_exactly(value: Decimal) -> None:
    printed = f"{value:,.3f}".translate(str.maketrans(",.", ".,"))
    made = done(leaf(GERMAN, type="number"), printed).value["x"]
    assert Decimal(repr(made)) == value
    assert done(leaf(GERMAN, type="string"), printed).value["x"] == f"{value if value else abs(value):.3f}"


@given(
    st.dates(datetime.date(1600, 1, 1), datetime.date(2199, 12, 31)),
    st.sampled_from(
        [
            "de",
            "en_US",
            "en_GB",
            "fr",
            "es",
            "pt_BR",
            "it",
            "nl",
            "pl",
            "cs",
            "ru",
            "hu",
            "zh",
            "ja",
            "ko",
            "hi",
            "tr",
            "el",
            "ar",
        ]
    ),
    st.sampled_from(["medium", "long", "full"]),
)
def test_a_date_as_its_locale_prints_it_comes_back(date: datetime.date, locale: str, width: str) -> None:
    from babel.dates import format_date

    body = leaf({"date": {"locale": locale}}, type="string", format="date")
    assert done(body, format_date(date, width, locale)).value["x"] == date.isoformat()


@given(
    st.text(max_size=40) | st.text("0123456789.-/ ,年月日MarchFeb", max_size=20), st.sampled_from(["de", "en_US", "zh"])
)
def test_whatever_is_read_is_a_form_of_the_schema_and_nothing_raises(text: str, locale: str) -> None:
    for body in (
        leaf({"date": {"locale": locale}}, type="string", format="date"),
        leaf({"decimal": {"locale": locale}}, type="number"),
        leaf({"currency": {"locale": locale}}, type="string", pattern="^[A-Z]{3}$"),
    ):
        draft = done(body, text)
        assert draft.value["x"] == text or codes(validate(draft, plan_for(body), 1)) == []
        assert (draft.value["x"] == text) != bool(draft.fields)
