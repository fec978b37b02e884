"""Traps of grounding: parts of codes, marks that combine, swapped dates, digits of other scripts, hostile lengths."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import plan_of

from pipeline.job import ExtractConfig
from pipeline.records import Draft
from pipeline.steps.clean import Cleaned
from pipeline.steps.ground import ground
from pipeline.steps.support.source import Source, hits_of
from tests.bounds import processor_seconds


def found(text: str, value: Any) -> list[str]:
    return [text[hit.start : hit.end] for hit in hits_of(Source(text), value)]


@example("F-0", "A")
@given(st.from_regex(r"[A-Z]{1,2}-?[0-9]{1,4}", fullmatch=True), st.sampled_from("ABxy"))
def test_a_code_does_not_support_one_that_is_a_part_of_it(code: str, more: str) -> None:
    assert not found(f"code {code}{more} here", code)
    assert found(f"code {code} here", code) == [code]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(("text", "part"), [("Médoc", "doc"), ("Éa", "a"), ("Ångström", "str"), ("naïve", "ve")])
def test_a_word_is_not_parted_at_its_accents(text: str, part: str, form: Any) -> None:
    text = unicodedata.normalize(form, f"by {text} now")
    assert not found(text, part)
    assert found(text, text.split()[1]) == [text.split()[1]]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(2000, 2068), st.sampled_from("/-."))
def test_a_date_in_the_same_notation_has_the_same_order(one: int, two: int, year: int, sign: str) -> None:
    shown, swapped = f"{one:02}{sign}{two:02}{sign}{year}", f"{two}{sign}{one}{sign}{year % 100:02}"
    assert bool(found(f"on {shown}, paid", swapped)) == (one == two)
    assert found(f"on {shown}, paid", f"{one}{sign}{two}{sign}{year % 100:02}") == [shown]
    for month, day in {(one, two), (two, one)}:  # ISO says which is the month, the document does not
        assert found(f"on {shown}, paid", f"{year}-{month:02}-{day:02}") == [shown]


@given(st.integers(10, 10**9), st.sampled_from("\u0660\u06f0\u0966\u0e50\u17e0\u1040\uff10\U0001d7ce"))
def test_numbers_in_digits_of_other_scripts_are_numbers(number: int, zero: str) -> None:
    shown = "".join(chr(ord(zero) + int(digit)) for digit in str(number))
    assert found(f"= {shown} .", number) == [shown]
    assert not found(f"= {shown} .", number + 1)


def test_a_fraction_of_one_character_belongs_to_its_number() -> None:
    assert found("2½ cups, ¾ tsp", 2.5) == ["2½"]
    assert found("2½ cups, ¾ tsp", 0.75) == ["¾"]
    assert not found("2½ cups", 2)
    assert not found("2½ cups", 0.5)
    assert found("1٬234٫50", 1234.5) == ["1٬234٫50"]


@pytest.mark.parametrize("text", ["a", "a-", "e\u0301", "xa ", "1 ", "ab"])
def test_a_document_that_repeats_itself_costs_no_more_than_others(text: str) -> None:
    unit = text.strip("- ")
    values = [unicodedata.normalize("NFC", unit * count) for count in range(1, 201)]
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}
    with processor_seconds(5):  # it took 17 s
        done = ground(
            Draft({"a": values}, True), Cleaned(text * (225_000 // len(text))), plan_of(schema), ExtractConfig(), 1
        )
    assert done.fields
