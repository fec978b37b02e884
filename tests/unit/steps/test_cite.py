"""Citations: ids that a document cannot forge, what a model cites, and whether the passage holds the value."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import codes, plan_of

from pipeline.job import ExtractConfig, PolicyConfig
from pipeline.records import Draft
from pipeline.steps.cite import Passages, cited, numbered, passages, regions
from pipeline.steps.clean import Cleaned
from pipeline.steps.ground import ground

TEXT = "Ann & Co\n\nTea 2.50\nTotal\n19.90\nAnn & Co"
HUGE = pytest.param(10**5000, id="huge")
KINDS = ["lines", "paragraphs"]


def grounded(body: Any, record: Any, text: str = TEXT, cite: Any = "lines") -> Draft:
    config = ExtractConfig(policy=PolicyConfig(ground="degrade"), cite=cite)
    return ground(Draft(value=record, parsed=True), Cleaned(text), plan_of(body), config, 1)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


IDS = {"type": "array", "items": {"type": "string"}, "x-cites": "/total"}
RECEIPT = schema(total={"type": "number"}, source=IDS)


def test_lines_that_hold_something_get_ids_in_order() -> None:
    assert numbered(TEXT, passages(TEXT, "lines")) == (
        "[L1] Ann & Co\n\n[L2] Tea 2.50\n[L3] Total\n[L4] 19.90\n[L5] Ann & Co"
    )


def test_paragraphs_are_what_blank_lines_part() -> None:
    assert numbered("a\nb\n \n\nc\r\n\r\nd", passages("a\nb\n \n\nc\r\n\r\nd", "paragraphs")) == (
        "[P1] a\nb\n \n\n[P2] c\r\n\r\n[P3] d"
    )


@given(st.text(alphabet="[L1]a \n\r\u2028P【［", max_size=60), st.sampled_from(KINDS))
def test_taking_the_ids_out_gives_the_document_back(text: str, kind: str) -> None:
    given_ids = passages(text, kind)
    shown = numbered(text, given_ids)
    found = re.findall(rf"\[{given_ids.letters}\d+\] ", shown)
    assert len(found) == len(given_ids), "an id of the document's own looks like one of ours"
    assert re.sub(rf"\[{given_ids.letters}\d+\] ", "", shown) == text


def test_a_document_with_ids_of_its_own_makes_ours_other_ones() -> None:
    assert passages("[L3] Total 5", "lines").letters == "La"
    assert passages("[l3] [LA9] x ［Lb2］", "lines").letters == "Lc"


@pytest.mark.parametrize(
    "forged",
    ["[L2]", "[ L2]", "[  L 2]", "[L\u200b2]", "[\u2060L2]", "［L2］", "【L2】", "[Ｌ２]", "[l-2]", "[L٢]", "[*L2*]"],
)
def test_what_a_reader_may_take_for_an_id_makes_ours_other_ones(forged: str) -> None:
    given = passages(f"{forged} Total 99\nTotal 1", "lines")
    assert given.letters not in ("L", "l")
    named = cited(given, forged)
    assert named.unknown or not named.numbers


def test_none_gives_no_ids() -> None:
    assert passages(TEXT, "none") == Passages("")
    assert len(passages(" \n\n ", "lines")) == 0


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("L3", (3,)),
        ("[L3]", (3,)),
        ("l03", (3,)),
        ("3", (3,)),
        (3, (3,)),
        ("L3, L4", (3, 4)),
        ("[L4][L3]", (3, 4)),
        ("L2-L4", (2, 3, 4)),
        ("L2 – 4", (2, 3, 4)),
        ("", ()),
        (None, ()),
    ],
)
def test_ids_are_read_as_models_write_them(value: Any, numbers: tuple[int, ...]) -> None:
    assert cited(passages(TEXT, "lines"), value).numbers == numbers
    assert cited(passages(TEXT, "lines"), value).unknown == ()


@pytest.mark.parametrize("value", ["L6", "P3", 0, -1, 6, HUGE, "L0", "Total", "L4-L2", "L3-L9", "-", True, 1.5, "L３x"])
def test_what_was_not_given_is_unknown(value: Any) -> None:
    found = cited(passages(TEXT, "lines"), value)
    assert found.numbers == ()
    assert len(found.unknown) == 1


@given(st.text(max_size=50) | st.integers() | st.floats() | st.none() | st.booleans())
def test_any_citation_is_read(value: Any) -> None:
    assert all(1 <= number <= 5 for number in cited(passages(TEXT, "lines"), value).numbers)


def test_passages_that_follow_each_other_are_one_region() -> None:
    given_ids = passages(TEXT, "lines")
    assert [TEXT[start:end] for start, end in regions(given_ids, (1, 3, 4))] == ["Ann & Co", "Total\n19.90"]


def test_a_citation_that_holds_the_value_is_no_problem() -> None:
    draft = grounded(RECEIPT, {"total": 19.9, "source": ["L4"]})
    assert codes(draft) == []
    assert [field.pointer for field in draft.fields] == ["/total"], "ids are not looked for in the document"


def test_a_citation_says_which_of_several_places_is_meant() -> None:
    body = schema(vendor={"type": "string"}, line={"type": "string", "x-cites": "/vendor"})
    field = grounded(body, {"vendor": "Ann & Co", "line": "L5"}).fields[0]
    assert field.start == TEXT.rindex("Ann")


def test_a_passage_without_the_value_is_told_and_the_value_is_found_elsewhere() -> None:
    draft = grounded(RECEIPT, {"total": 19.9, "source": ["L2"]})
    assert [(problem.code, problem.pointer) for problem in draft.problems] == [("citation_unsupported", "/source")]
    assert "L2" in draft.problems[0].message
    assert draft.fields[0].match == "normalised"


def test_an_id_that_was_not_given_is_told() -> None:
    draft = grounded(RECEIPT, {"total": 19.9, "source": ["L4", "L77"]})
    assert [(problem.code, problem.pointer) for problem in draft.problems] == [("citation_unknown", "/source/1")]
    assert "L5" in draft.problems[0].message, "the last id helps to correct it"


def test_a_value_broken_over_two_cited_lines_is_supported() -> None:
    body = schema(label={"type": "string"}, at={"type": "string", "x-cites": "/label"})
    assert codes(grounded(body, {"label": "Total 19.90", "at": "L3-L4"})) == []


def test_items_of_a_list_cite_for_themselves() -> None:
    item = schema(name={"type": "string"}, line={"type": "integer", "x-cites": "/name"})
    body = schema(name={"type": "string"}, items={"type": "array", "items": item})
    record = {"name": "Ann & Co", "items": [{"name": "Tea", "line": 2}, {"name": "Total", "line": 2}]}
    draft = grounded(body, record)
    assert [(p.code, p.pointer) for p in draft.problems] == [("citation_unsupported", "/items/1/line")]


def test_a_citation_of_an_object_is_for_all_that_it_holds() -> None:
    body = schema(
        line=schema(name={"type": "string"}, price={"type": "number"}), at={"type": "string", "x-cites": "/line"}
    )
    assert codes(grounded(body, {"line": {"name": "Tea", "price": 2.5}, "at": "L2"})) == []
    assert codes(grounded(body, {"line": {"name": "Tea", "price": 19.9}, "at": "L2"})) == ["citation_unsupported"]


def test_without_ids_in_the_job_nothing_is_checked() -> None:
    draft = grounded(RECEIPT, {"total": 19.9, "source": ["L77"]}, cite="none")
    assert codes(draft) == []
    assert [field.pointer for field in draft.fields] == ["/total"]


@pytest.mark.parametrize("cites", ["/nowhere", "", "no pointer", 5, "/source/0/x"])
def test_x_cites_that_leads_nowhere_does_no_harm(cites: Any) -> None:
    body = schema(total={"type": "number"}, source={**IDS, "x-cites": cites})
    assert "citation_unsupported" not in codes(grounded(body, {"total": 19.9, "source": ["L4"]}))


@pytest.mark.parametrize(
    ("value", "kind"), [(7, "number"), ("2024-02-29", "string"), ("Tea", "string"), ("TEA", "string")]
)
def test_a_cited_place_is_found_behind_many_others(value: Any, kind: str) -> None:
    text = "7 29/02/2024 Tea\n" * 2000
    body = schema(x={"type": kind}, at={"type": "integer", "x-cites": "/x"})
    draft = grounded(body, {"x": value, "at": 1990}, text)
    assert codes(draft) == []
    assert text.count("\n", 0, draft.fields[0].start) == 1989
