"""Where a document says a value: what counts as the same, what does not, and which characters a span holds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipeline.steps.support.fold import cuts_character, fold, is_mark, same_digits
from pipeline.steps.support.source import Hit, Region, Source, hits_of


def found(text: str, value: Any) -> list[tuple[str, str]]:
    return [(hit.match, text[hit.start : hit.end]) for hit in hits_of(Source(text), value)]


def first(text: str, value: Any) -> Hit:
    return hits_of(Source(text), value)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("in 2012, 1.12 and 112", 12),
        ("150 g", 5),
        ("150 g", "5"),
        ("1.50", 5),
        ("1,12", 12),
        ("version 1.2.3", 2),
        ("room B12", 12),
        ("key 3f2a", 3),
        ("9.00", "900"),
        ("9.00", 900),
        ("1 2", "12"),
        ("12", "1 2"),
        ("5 apples, 10 %", "5 %"),
        ("A-5", -5),
        ("2018-12-01", -12),
        ("therapist", "rapist"),
        ("Foobar", "Foo"),
        ("C++ and C#", "C"),
        ("5 apples", "5 %"),
        ("a cat", "A"),
        ("tell us", "US"),
        ("5", "-5"),
        ("ann.smith@example.com", "ann.smyth@example.com"),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U", "CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:U"),
        ("clause 4 of the year", "4 year"),
        ("4 disks of 64 MB", "4MB"),
        ("part 003, class G", "G3"),
        ("at 12:45", "45.00"),
        ("page 09", "9.00"),
        ("invoice INV-1234", "INV-1235"),
        ("9.00", "RM 9.00"),
        ("40,00 $", "EUR 40.00"),
        ("Summa 40,00 $", "EUR"),
        ("31/02/2018", "2018-02-31"),
        ("12/13/2018", "2018-01-12"),
        ("call 0312-2018", "2018-12-03"),
        ("", "x"),
        ("x", ""),
        ("x", " \n"),
        ("...", "!?"),
        ("abc", float("nan")),
        ("abc", float("inf")),
        pytest.param("0", 10**5000, id="an integer beyond what is written out"),
    ],
)
def test_what_is_no_support(text: str, value: Any) -> None:
    assert found(text, value) == []


@pytest.mark.parametrize(
    ("text", "value", "match", "span"),
    [
        ("total 12", 12, "exact", "12"),
        ("12kg", 12, "exact", "12"),
        ("每份 617大卡", 617, "exact", "617"),
        ("RM12", 12, "exact", "12"),
        ("91X46CM", 46, "exact", "46"),
        ("12.50", 12.5, "normalised", "12.50"),
        ("40,00", 40.0, "normalised", "40,00"),
        ("40", 40.0, "exact", "40"),
        ("1,234.50", 1234.5, "normalised", "1,234.50"),
        ("1.234,50", 1234.5, "normalised", "1.234,50"),
        ("1 234,50", 1234.5, "normalised", "1 234,50"),
        ("1\u202f234,50", 1234.5, "normalised", "1\u202f234,50"),
        ("1'234.50", 1234.5, "normalised", "1'234.50"),
        ("12,34,567.00", 1234567, "normalised", "12,34,567.00"),
        ("￥1,234.5", 1234.5, "normalised", "1,234.5"),
        ("１，２３４．５０", 1234.5, "normalised", "１，２３４．５０"),
        ("١٢٣", 123, "normalised", "١٢٣"),
        ("(12.00)", -12, "normalised", "(12.00)"),
        ("(12.00)", 12, "normalised", "12.00"),
        ("12.00-", -12, "normalised", "12.00-"),
        ("−12.00", -12, "normalised", "−12.00"),
        ("-$5", -5, "normalised", "-$5"),
        ("-647.30", 647.3, "normalised", "647.30"),
        (" .50", 0.5, "normalised", ".50"),
        ("15 %", 0.15, "normalised", "15 %"),
        ("15%", 15, "exact", "15"),
        ("3.2 million", 3200000, "normalised", "3.2 million"),
        ("320万股", 3200000, "normalised", "320万"),
        ("三百二十万元", 3200000, "normalised", "三百二十万"),
        ("二〇一八年", 2018, "normalised", "二〇一八"),
        ("难度：★★★", 3, "normalised", "★★★"),
        ("18,20,22", 20, "normalised", "20"),
        ("1.12.2018", 2018, "normalised", "2018"),
        ("0.10", Decimal("0.1"), "normalised", "0.10"),
        ("9007199254740993", 9007199254740993, "exact", "9007199254740993"),
        ("01/12/2018", "2018-12-01", "normalised", "01/12/2018"),
        ("12/01/2018", "2018-12-01", "normalised", "12/01/2018"),
        ("1.12.18", "2018-12-01", "normalised", "1.12.18"),
        ("1 December 2018", "2018-12-01", "normalised", "1 December 2018"),
        ("the 1st day of December, 2018", "2018-12-01", "normalised", "1st day of December, 2018"),
        ("Dec 1, 2018", "2018-12-01", "normalised", "Dec 1, 2018"),
        ("1. Dezember 2018", "2018-12-01", "normalised", "1. Dezember 2018"),
        ("1er décembre 2018", "2018-12-01", "normalised", "1er décembre 2018"),
        ("2018年12月1日", "2018-12-01", "normalised", "2018年12月1日"),
        ("No 20181201", "2018-12-01", "normalised", "20181201"),
        ("01-DEC-18", "2018-12-01", "normalised", "01-DEC-18"),
        ("1 December 2018", "2018-12-01T08:00:00Z", "normalised", "1 December 2018"),
        ("2018-12-01", "December 1, 2018", "normalised", "2018-12-01"),
        ("5.0 percent", "5 %", "normalised", "5.0 percent"),
        ("C/C++", "C", "exact", "C"),
        ("5 €", "EUR", "normalised", "€"),
        ("EUR 5", "€", "normalised", "EUR"),
        ("RM5", "MYR", "normalised", "RM"),
        ("40,00 $", "USD", "normalised", "$"),
        ("for two years from", "2 years", "normalised", "two years"),
        ("9.00", "9,00", "normalised", "9.00"),
        ("RM9.00", "RM 9.00", "normalised", "RM9.00"),
        ("NO 18,20,22, JALAN\nBUNGA", "NO 18, 20, 22, JALAN BUNGA", "normalised", "NO 18,20,22, JALAN\nBUNGA"),
        ("a com-\nputer here", "computer", "normalised", "com-\nputer"),
        ("soft\u00adware", "software", "normalised", "soft\u00adware"),
        ("ANN & CO.", "Ann & Co", "normalised", "ANN & CO"),
        ("Foo “bar” baz", 'Foo "bar" baz', "normalised", "Foo “bar” baz"),
        ("O’Brien", "O'Brien", "normalised", "O’Brien"),
        ("Ａｎｎ　Ｃｏ", "Ann Co", "normalised", "Ａｎｎ　Ｃｏ"),
        ("Straße 5", "STRASSE 5", "normalised", "Straße 5"),
        ("合 计：５元", "合计", "normalised", "合 计"),
        ("tel 03-5525 0588", "0355250588", "normalised", "03-5525 0588"),
        ("Johor Bahru SDN BND", "Johor Bahru SDN BHD", "fuzzy", "Johor Bahru SDN BND"),
        ("3.00\nTotal 19.90 EUR", "Total 19.90 EUT", "fuzzy", "Total 19.90 EUR"),
        ("the Xohor Bahru Sdn", "Johor Bahru Sdn", "fuzzy", "Xohor Bahru Sdn"),
        ("renal failures", "renal failure", "fuzzy", "renal failures"),
    ],
)
def test_what_is_support_and_where_it_stands(text: str, value: Any, match: str, span: str) -> None:
    padded = f"前 {text} \U0001f600"
    assert (match, span) in found(text, value)
    assert (match, span) in found(padded, value), "not the same in the middle of a text"


def test_a_date_that_has_two_readings_supports_both_and_less_surely() -> None:
    both = [first("01/12/2018", day).score for day in ("2018-12-01", "2018-01-12")]
    assert both[0] == both[1] < first("25/12/2018", "2018-12-25").score


def test_a_sign_of_many_currencies_supports_one_less_surely_than_a_sign_of_its_own() -> None:
    assert first("40 $", "USD").score < first("40 €", "EUR").score


def test_a_number_of_its_own_is_surer_than_one_in_a_date() -> None:
    text = "12/01/2018 table 12"
    assert first(text, 12).start == text.rindex("12")


def test_a_whole_word_is_taken_where_there_is_one() -> None:
    text = "12kg of Food, Foo 12"
    assert found(text, "Foo") == [("exact", "Foo")]
    assert first(text, "12").start == text.rindex("12")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cafe\u0301", "cafe"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f469"),
        ("\U0001f1e9\U0001f1ea", "\U0001f1e9"),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\U0001f1ea\U0001f1eb"),
        ("กำ", "ก\u0e4d"),
    ],
)
def test_a_character_is_never_cut(text: str, value: str) -> None:
    assert found(text, value) == []


def test_a_variation_selector_belongs_to_the_span() -> None:
    assert found("I ❤️ it", "❤") == [("exact", "❤️")]


def test_composed_and_decomposed_texts_are_the_same() -> None:
    assert found("Zoe\u0308 Mu\u0308ller!", "Zoë Müller") == [("normalised", "Zoe\u0308 Mu\u0308ller")]


def test_a_region_bounds_the_search() -> None:
    text = "total 5\ntotal 7"
    assert hits_of(Source(text), 5, Region(8, 15)) == []
    assert [hit.start for hit in hits_of(Source(text), "total", Region(8, 15))] == [8]
    assert [hit.start for hit in hits_of(Source(text), "TOTAL", Region(8, 15))] == [8]


def test_a_short_word_is_found_behind_many_words_that_hold_it() -> None:
    text = "xax " * 5000 + "a"
    assert first(text, "a").start == len(text) - 1


_PIECES = st.text(alphabet="aZé\u0301ß 1.,-\n’ﬁ合計５😀👍🏽\u200dИأ ", max_size=12)


@given(before=_PIECES, value=_PIECES, after=_PIECES)
@example("", "ﬁ", "")
def test_a_value_put_into_a_text_between_blanks_is_found_in_whole_characters(
    before: str, value: str, after: str
) -> None:
    assume(value.strip() and not cuts_character(f" {value} ", 1) and not is_mark(value.strip()[0]))
    assume("\u200d" not in (value.strip()[0], value.strip()[-1]))
    text = f"{before} {value} {after}"
    hits = hits_of(Source(text), value)
    assert hits and hits[0].match == "exact"
    for hit in hits:
        assert 0 <= hit.start < hit.end <= len(text)
        assert not cuts_character(text, hit.start) and not cuts_character(text, hit.end)


@given(text=st.text(max_size=40), value=st.text(max_size=12) | st.floats() | st.integers())
def test_any_text_and_value_give_spans_in_bounds(text: str, value: Any) -> None:
    for hit in hits_of(Source(text), value):
        assert 0 <= hit.start < hit.end <= len(text)
        assert 0 < hit.score <= 1
        assert not cuts_character(text, hit.start) and not cuts_character(text, hit.end)


@given(st.text(alphabet="aZé\u0301ßﬁ合５😀 .-\n™", max_size=30))
def test_offsets_of_a_folded_text_lead_back_in_order(text: str) -> None:
    folded = fold(text)
    spans = [folded.span(index, index + 1, whole=True) for index in range(len(folded.text))]
    assert all(span is not None and 0 <= span[0] < span[1] <= len(text) for span in spans)
    assert [span[0] for span in spans if span] == sorted(span[0] for span in spans if span)


def test_digits_are_the_same_only_with_the_same_marks() -> None:
    assert same_digits("9.00", "9,00") and same_digits("18, 20", "18 20") and same_digits("２", "2")
    assert not same_digits("9.00", "9 00") and not same_digits("1 2", "12") and not same_digits("123.4567", "1234567")
