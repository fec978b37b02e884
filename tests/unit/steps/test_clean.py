"""Cleaning a document: what is changed, what is left alone, and offsets that lead back to the raw text exactly."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.steps.clean import clean

KINDS = ("invisible", "whitespace", "ocr")
PIECES = st.sampled_from(
    [
        *("word", "1O.5O", "2O18", "l0,67", "B12", " ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\n\n\n\n"),
        *(
            "价格",
            "12,50元",
            "é",
            "e\u0301",
            "👩\u200d👧",
            "❤\ufe0f\u200d🔥",
            "می\u200cخواهم",
            "a\u00adb",
            "\u200b",
            "\ufeff",
        ),
        *("\x00", "\x0c", "\u202e", "1|.50", ".", ",", "O", "l", "\U0001d7d8", "\U000e0067"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60)


def cleaned(text: str, *kinds: str) -> str:
    return clean(text, kinds).text


@given(TEXTS, st.lists(st.sampled_from(KINDS), max_size=4))
def test_every_offset_leads_back_to_the_raw_text(text: str, kinds: list[str]) -> None:
    made = clean(text, kinds)
    offsets = [made.raw_offset(index) for index in range(len(made.text) + 1)]
    assert offsets == sorted(offsets)
    assert len(set(offsets[:-1])) == len(offsets) - 1
    assert offsets[-1] == len(text)
    raw = [text[offset] for offset in offsets[:-1]]
    changed = [(new, old) for new, old in zip(made.text, raw, strict=True) if new != old]
    assert all(
        old.isspace() or old in "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029" for new, old in changed if new in " \t\n"
    )
    assert all(
        (new, old) in {*zip("000111582", "OoQlI|SBZ", strict=True)} for new, old in changed if new not in " \t\n"
    )
    assert not changed or made.changes
    assert made.changes == sum(count for _, count in made.counts)


@given(TEXTS, st.lists(st.sampled_from(KINDS), max_size=4), st.data())
def test_what_was_not_changed_is_found_at_its_raw_span(text: str, kinds: list[str], data: st.DataObject) -> None:
    made = clean(text, kinds)
    start = data.draw(st.integers(0, len(made.text)))
    end = data.draw(st.integers(start, len(made.text)))
    low, high = made.raw_span(start, end)
    assert 0 <= low <= high <= len(text)
    assert (low == high) == (start == end)
    span = made.text[start:end]
    if low + len(span) == high and all(made.raw_offset(start + n) == low + n for n in range(len(span))):
        assert len(text[low:high]) == len(span)
    assert unicodedata.normalize("NFC", span) == span or len(text[low:high]) >= len(span)


@given(TEXTS)
def test_without_a_change_it_is_the_same_text_without_offsets(text: str) -> None:
    none = clean(text, ())
    assert none.text is text
    assert (none.offsets, none.changes, none.repairs()) == ((), 0, ())
    for kind in KINDS:
        once = clean(text, [kind])
        assert (once.changes == 0) == (once.text is text) == (not once.offsets)


@given(TEXTS, st.sampled_from(["invisible", "whitespace"]))
def test_cleaning_twice_is_cleaning_once(text: str, kind: str) -> None:
    once = cleaned(text, kind)
    assert cleaned(once, kind) == once


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a  b", "a b"),
        ("a \t b", "a\tb"),
        ("a\u00a0b\u3000c", "a b c"),
        ("a \r\n\r\n \r\n b \n", "a\n\n b\n"),
        ("a\rb", "a\nb"),
        ("a\t", "a"),
        ("\ta\tb", "\ta\tb"),
        ("a\n\nb", "a\n\nb"),
    ],
)
def test_whitespace(raw: str, text: str) -> None:
    assert cleaned(raw, "whitespace") == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\ufeffa\u200bb\u00ad", "ab"),
        ("\u202eabc\u202c", "abc"),
        ("page\x0cpage\x00", "page\npage"),
        ("tab\tline\r\n", "tab\tline\r\n"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("👩\u200d👧 ❤\ufe0f\u200d🔥 👋🏽", "👩\u200d👧 ❤\ufe0f\u200d🔥 👋🏽"),
        ("Auf\u200clage", "Auflage"),
        ("🏴\U000e0067\U000e0062\U000e007f a\U000e0067", "🏴\U000e0067\U000e0062\U000e007f a"),
    ],
)
def test_invisible(raw: str, text: str) -> None:
    assert cleaned(raw, "invisible") == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("1O.5O", "10.50"),
        ("2O18", "2018"),
        ("l0,67 EUR", "10,67 EUR"),
        ("合计1O.5O元", "合计10.50元"),
        ("O1.O4.2OI8", "01.04.2018"),
        ("lO:30", "10:30"),
        ("€12.S0,", "€12.50,"),
        ("1.2B4,00", "1.284,00"),
        ("1|.50", "11.50"),
    ],
)
def test_letters_in_numbers(raw: str, text: str) -> None:
    assert cleaned(raw, "ocr") == text


@pytest.mark.parametrize(
    "raw",
    [
        *(
            "B12",
            "S1",
            "10l",
            "5S 3B",
            "O2",
            "IO",
            "I.OO",
            "12|50.00",
            "|2.50",
            "v1.O2",
            "1B8",
            "A-1O1",
            "x2O18",
            "3-I5",
        ),
        *("http://a.b/2O18/", "1O1-B", "mo:10l", "ISO 9001", "8.OO.l", "O.OO"),
    ],
)
def test_what_may_be_a_code_or_a_unit_is_left_alone(raw: str) -> None:
    assert cleaned(raw, "ocr") == raw


def test_words_that_a_line_breaks_are_left_alone() -> None:
    assert cleaned("state-\nment 1O-\n5O", *KINDS) == "state-\nment 1O-\n5O"


def test_the_change_is_told_by_kind() -> None:
    (repair,) = clean("a\u200b  1O.5O", KINDS).repairs()
    assert (repair.kind, repair.attempt) == ("document_cleaned", 0)
    assert repair.detail == "invisible: 1 places, whitespace: 1 places, ocr: 2 places"


@pytest.mark.parametrize(
    "text", [" ", "1", "O", "1O", "l|", "\n", " \t", "\u200b", "'", "-O", "1.", "a\u200d", "\U000e0067"]
)
def test_the_largest_documents_take_a_bounded_time(text: str) -> None:
    started = time.process_time()
    clean(text * (225_000 // len(text)), KINDS)
    assert time.process_time() - started < 2
