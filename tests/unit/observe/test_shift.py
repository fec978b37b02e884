"""Planted shifts are found with their counts, and where there is none, none is called."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.observe.profile import Profile, profile_of
from pipeline.observe.shift import Comparison, Count, Finding, compare

Records = list[Any]

ENGLISH = "The invoice has to be paid within fourteen days without any deduction, otherwise interest is due to us."
GERMAN = "Die Rechnung ist innerhalb von vierzehn Tagen ohne Abzug zu bezahlen, sonst werden Zinsen fällig werden."


def profile(records: Records, schema: str = "s@1", **statuses: int) -> dict[str, Profile]:
    made = profile_of(schema, ((str(n), record) for n, record in enumerate(records)))
    made.statuses.update(statuses)
    return {schema: made}


def compared(before: Records, now: Records, **options: float) -> Comparison:
    return compare(profile(before), profile(now), **options)


def found(comparison: Comparison, pointer: str, aspect: str) -> Finding:
    (one,) = (f for f in comparison.findings if (f.pointer, f.aspect) == (pointer, aspect))
    return one


def receipts(count: int, seed: int, **changed: Callable[[random.Random], Any]) -> Records:
    generator = random.Random(seed)
    made = []
    for n in range(count):
        record = {
            "number": f"{seed:02}-{n:04}",
            "currency": generator.choice(["MYR", "MYR", "MYR", "EUR", "USD"]),
            "total": round(generator.lognormvariate(3, 1), 2),
            "paid": generator.random() < 0.7,
            "note": generator.choice([None, ENGLISH]),
            "lines": [{"unit": generator.choice(["kg", "g", None])} for _ in range(generator.randrange(6))],
        }
        made.append({**record, **{name: change(generator) for name, change in changed.items()}})
    return made


PLANTED: dict[str, tuple[str, str, str, Callable[[random.Random], Any]]] = {
    "null": ("note", "/note", "presence", lambda r: ENGLISH if r.random() < 0.2 else None),
    "empty": ("lines", "/lines", "presence", lambda r: []),
    "enum": ("currency", "/currency", "values", lambda r: r.choice(["MYR", "EUR", "EUR"])),
    "new value": ("currency", "/currency", "values", lambda r: r.choice(["MYR", "MYR", "GBP"])),
    "boolean": ("paid", "/paid", "values", lambda r: r.random() < 0.4),
    "type": ("total", "/total", "presence", lambda r: str(r.random())),
    "number": ("total", "/total", "numbers", lambda r: round(r.lognormvariate(3.5, 1), 2)),
    "length": ("number", "/number", "length", lambda r: "x" * r.randrange(3, 9)),
    "items": ("lines", "/lines", "items", lambda r: [{"unit": "kg"}]),
    "item's value": ("lines", "/lines/*/unit", "values", lambda r: [{"unit": r.choice(["kg", "lb"])}] * 3),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_shift_is_found_where_it_is(kind: str) -> None:
    name, pointer, aspect, change = PLANTED[kind]
    comparison = compared(receipts(300, 1), receipts(300, 2, **{name: change}))
    assert found(comparison, pointer, aspect).verdict == "shifted"
    assert {one.pointer.split("/")[1] for one in comparison.shifted} == {name}


@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_shifted_nothing_is_called(seed: int) -> None:
    comparison = compared(receipts(300, 10 + seed), receipts(200, 20 + seed))
    assert comparison.shifted == ()
    assert comparison.tests >= 8
    assert {one.verdict for one in comparison.findings} == {"none"}


def test_a_record_is_no_different_from_itself() -> None:
    records = receipts(100, 1)
    comparison = compared(records, records)
    assert {one.distance for one in comparison.findings} == {0.0}
    assert min(one.p for one in comparison.findings) == pytest.approx(1.0)


def test_counts_are_those_of_the_records() -> None:
    before = [{"kind": kind} for kind in ["a"] * 60 + ["b"] * 40 + [None] * 10]
    now = [{"kind": kind} for kind in ["a"] * 20 + ["b"] * 40 + ["c"] * 30 + [None] * 30]
    comparison = compared(before, now)
    values = found(comparison, "/kind", "values")
    assert (values.before, values.now) == (100, 90)
    assert set(values.counts) == {Count("a", 60, 20), Count("b", 40, 40), Count("c", 0, 30)}
    assert values.counts[0].what == "a"  # differs most
    assert values.distance == pytest.approx(0.6 - 20 / 90)
    assert set(found(comparison, "/kind", "presence").counts) == {Count("filled", 100, 90), Count("missing", 10, 30)}


def test_quantiles_tell_how_numbers_moved() -> None:
    comparison = compared([{"n": n} for n in range(100)], [{"n": n + 40} for n in range(100)])
    one = found(comparison, "/n", "numbers")
    assert one.statistic == "Kolmogorov-Smirnov test"
    assert one.distance == pytest.approx(0.4)
    assert one.counts == (Count("10%", 9, 49), Count("50%", 49, 89), Count("90%", 89, 129))


def test_null_and_absent_are_one_since_columns_do_not_tell_them_apart() -> None:
    comparison = compared(
        [{"a": None, "b": 1}] * 50 + [{"a": 1, "b": 1}] * 50, [{"b": 1}] * 50 + [{"a": 1, "b": 1}] * 50
    )
    assert found(comparison, "/a", "presence").distance == 0


def test_a_field_that_only_one_side_has_is_missing_on_the_other() -> None:
    comparison = compared([{"a": 1}] * 40, [{"a": 1, "new": {"b": 2}}] * 40)
    for pointer in ("/new", "/new/b"):
        one = found(comparison, pointer, "presence")
        assert one.verdict == "shifted"
        assert Count("missing", 40, 0) in one.counts


def test_with_few_documents_it_is_said_that_nothing_can_be_told() -> None:
    comparison = compared([{"a": "x"}] * 3, [{"a": "y"}] * 3)
    (one,) = comparison.findings
    assert (one.verdict, one.statistic, one.p, one.distance, one.detectable) == ("few", "", 1.0, 1.0, 1.0)
    assert comparison.tests == 0
    assert compared([{"a": "x"}] * 8, [{"a": "y"}] * 8).findings[0].verdict == "shifted"


def test_a_small_shift_is_called_slight_however_sure_it_is() -> None:
    before = [{"a": "x" if n % 100 < 90 else "y"} for n in range(20_000)]
    now = [{"a": "x" if n % 100 < 88 else "y"} for n in range(20_000)]
    one = found(compared(before, now), "/a", "values")
    assert (one.verdict, round(one.distance, 2)) == ("slight", 0.02)
    assert one.adjusted < 1e-6
    assert found(compared(before, now, least=0.01), "/a", "values").verdict == "shifted"


def test_free_text_is_not_compared_value_by_value_and_enums_not_by_length() -> None:
    comparison = compared(receipts(100, 1), receipts(100, 2))
    aspects = {(one.pointer, one.aspect) for one in comparison.findings}
    assert ("/number", "values") not in aspects
    assert ("/currency", "values") in aspects
    assert ("/currency", "length") not in aspects


def passages(text: str, count: int) -> Records:
    return [{"text": f"{text} {chr(97 + n % 26)}{chr(97 + n // 26)}"} for n in range(count)]


def test_another_language_is_found() -> None:
    comparison = compared(passages(ENGLISH, 120), passages(ENGLISH, 60) + passages(GERMAN, 60))
    one = found(comparison, "/text", "language")
    assert one.verdict == "shifted"
    assert set(one.counts) == {Count("en", 120, 60), Count("de", 0, 60)}


def test_texts_that_became_too_short_to_tell_are_no_other_language() -> None:
    comparison = compared(passages(ENGLISH, 120), passages(ENGLISH, 60) + passages(ENGLISH[:40], 60))
    assert [one.aspect for one in comparison.shifted] == ["length"]


def test_short_texts_are_told_by_their_script() -> None:
    names = [{"name": f"Ann {chr(97 + n % 26)}{chr(97 + n // 26)}"} for n in range(60)]
    others = [{"name": f"张{chr(0x4E00 + n)}"} for n in range(60)]
    one = found(compared(names, others), "/name", "language")
    assert set(one.counts) == {Count("latin", 60, 0), Count("cjk", 0, 60)}


def test_statuses_are_compared_where_both_sides_know_them() -> None:
    records = [{"a": 1}] * 50
    before, now = profile(records, valid=50, rejected=1), profile(records, valid=50, rejected=40)
    one = found(compare(before, now), "", "status")
    assert (one.verdict, one.before, one.now) == ("shifted", 51, 90)
    assert [f.aspect for f in compare(profile(records), now).findings] == []


def test_schemas_of_one_side_are_named_and_not_compared() -> None:
    before, now = profile([{"a": 1}], "old@1") | profile([{"a": 1}]), profile([{"a": 1}], "new@1") | profile([{"a": 1}])
    comparison = compare(before, now)
    assert (comparison.gone, comparison.new, comparison.findings) == (("old@1",), ("new@1",), ())


def test_the_same_profiles_give_the_same_findings() -> None:
    before, now = receipts(80, 1), receipts(80, 2, currency=lambda r: r.choice("abcdefgh"))
    assert compared(before, now) == compared(before, now)


def test_nothing_is_compared_with_nothing() -> None:
    assert compare({}, {}).findings == ()
    assert compare(profile([]), profile([{"a": 1}])).findings == ()
