"""Numbers, dates and currencies as they are printed: strict, and at one with what CLDR knows."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from pipeline.schema.locales.currencies import AMBIGUOUS, SIGNS, CurrencyStyle, current, read_currency
from pipeline.schema.locales.dates import date_style, read_date
from pipeline.schema.locales.letters import visible
from pipeline.schema.locales.numbers import COMMA, NumberStyle, read_number, signs_of


@pytest.mark.parametrize(
    ("locale", "text", "value"),
    [
        ("de", "12,-", "12"),
        ("de", "12,—", "12"),
        ("de", "12,50-", "-12.50"),
        ("de", "−5", "-5"),
        ("de", "1 234.567", None),
        ("de", "1.234.56", None),
        ("de", "1.234,567.0", None),
        ("de", "--5", None),
        ("de", "5-", None),
        ("de", ",", None),
        ("de", "", None),
        ("de_CH", "1’234.50", "1234.50"),
        ("fr", "1\u202f234,56", "1234.56"),
        ("fr", "1 234,56", "1234.56"),
        ("fr", "1\t234", None),
        ("en_US", "12,34,567.00", None),
        ("en_IN", "12,34,567.00", "1234567.00"),
        ("ar_EG", "١٬٢٣٤٫٥٦", "1234.56"),
        ("zh", "１，２３４．５０", "1234.50"),
        ("en_US", ".50", "0.50"),
        ("en_US", "1e5", None),
        ("en_US", "²", None),
        ("de", "1.²34", None),
        ("de", "1.፩34", None),
    ],
)
def test_numbers(locale: str, text: str, value: str | None) -> None:
    assert read_number(text, NumberStyle(signs_of(locale))) == (None if value is None else Decimal(value))


def test_only_declared_texts_may_stand_around_a_number() -> None:
    assert read_number("EUR 1.234,50", NumberStyle(COMMA)) is None
    assert read_number("- € 1.234,50 EUR", NumberStyle(COMMA, around=("€", "EUR"))) == Decimal("-1234.50")


@pytest.mark.parametrize(
    ("locale", "text", "day"),
    [
        ("it", "mar 5 mar 2024", "2024-03-05"),
        ("it", "mer 5 mar 2024", None),
        ("en_GB", "the 29th of Feb. 2024", "2024-02-29"),
        ("en_GB", "29 Feb 2024 or later", None),
        ("en_GB", "1-3 March 2024", None),
        ("en_CA", "01/02/2024", None),
        ("de", "29.02.2024 17:42", None),
        ("de", "29.02/2024", None),
        ("de", "29.02.0024", None),
        ("de", "፩ Februar 2024", None),
        ("de", "Donnerstag, den 29. Februar 2024", "2024-02-29"),
        ("zh", "2024年2月29日(星期四)", "2024-02-29"),
        ("zh", "2024年2月29日(星期五)", None),
        ("ja", "令和6年2月29日", None),
        ("fr", "1er juillet 2024", "2024-07-01"),
        ("fr", "1 jui 2024", None),
        ("ar", "٢٩/٠٢/٢٠٢٤", "2024-02-29"),
    ],
)
def test_dates(locale: str, text: str, day: str | None) -> None:
    assert read_date(text, date_style(locale)) == day
    assert day is None or read_date(text, date_style(locale, (), 1970)) == day


def test_years_of_two_digits_lie_in_the_declared_century() -> None:
    style = date_style("de", (), 1970)
    assert [read_date(f"1.2.{year}", style) for year in ("69", "70", "05")] == [
        "2069-02-01",
        "1970-02-01",
        "2005-02-01",
    ]
    assert read_date("29.02.0024", style) is None


def test_a_format_admits_nothing_else() -> None:
    style = date_style("en", ("MMM d, y", "d/M/y"))
    assert [read_date(text, style) for text in ("Feb 29, 2024", "29/2/2024", "2024-02-29")] == ["2024-02-29"] * 3
    assert read_date("29 Feb 2024", style) is None


@pytest.mark.parametrize(
    ("locale", "text", "code"),
    [
        ("", "US $", "USD"),
        ("", "RM", "MYR"),
        ("", "eur", "EUR"),
        ("", "￥", None),
        ("de", "US-Dollar", "USD"),
        ("de", "DM", None),
        ("en", "dollars", None),
        ("en", "Swiss francs", "CHF"),
        ("en_US", "$", None),
        ("en_ZA", "R", "ZAR"),
        ("", "R", None),
        ("en", "EUR 12", None),
        ("en", "", None),
    ],
)
def test_currencies(locale: str, text: str, code: str | None) -> None:
    assert read_currency(text, CurrencyStyle(locale)) == code


def test_no_sign_is_read_as_one_currency_that_stands_for_another_in_some_locale() -> None:
    from babel import Locale
    from babel.localedata import locale_identifiers

    meant: dict[str, set[str]] = {}
    for name in locale_identifiers():
        for code, sign in Locale.parse(name).currency_symbols.items():
            if code in current() and sign != code:
                meant.setdefault("".join(visible(sign).split()).removesuffix("."), set()).add(code)
    for sign, codes in meant.items():
        if len(codes) > 1 and sign != "￥":
            assert codes <= AMBIGUOUS[sign], sign
        if sign in SIGNS and sign != "CFP":
            assert codes == {SIGNS[sign]}, sign


def test_what_is_made_visible_holds_nothing_that_the_parser_calls_invisible() -> None:
    from pipeline.steps.answer.invisible import invisible

    parts = [
        "a",
        " ",
        "م",
        "क्",
        "👩",
        "❤",
        "🏴",
        "🏽",
        "あ",
        "字",
        "1",
        "\n",
        "\r\n",
        "\u20e3",
        "\U000e0100",
        "\U000e0067",
    ]
    parts += list("\ufe0f\u200d\u200c\u200b\ufeff\xad\r\x00\x85\u2028\u202e\u3164\u034f\U000e0001")
    rng = random.Random(4)
    for _ in range(5000):
        text = "".join(rng.choices(parts, k=rng.randint(1, 7)))
        made = visible(text)
        assert invisible(made) is None, ascii(text)
        assert visible(made) == made, ascii(text)
