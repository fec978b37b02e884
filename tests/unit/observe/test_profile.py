"""What a profile counts of records, and that parts add up to the whole within bounds."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.observe.profile import MAX_FIELDS, MAX_LABEL, MAX_VALUES, Profile, profile_of
from pipeline.observe.shift import compare
from pipeline.observe.spread import MAX_BINS, MAX_CHARACTERS, MAX_TEXTS, Spread, cut


def numbered(records: list[Any]) -> list[tuple[str, Any]]:
    return [(f"d{n}", record) for n, record in enumerate(records)]


def states(profile: Profile, pointer: str) -> tuple[int, int, int, int]:
    one = profile.fields[pointer]
    return one.filled, one.null, one.empty, profile.absent(pointer)


def plain(profile: Profile) -> Any:
    """All that a profile holds, without the order in which a heap lies."""
    fields = {
        pointer: (
            one.filled, one.null, one.empty, one.kinds, one.values, one.free, one.lengths, one.items, one.numbers,
            one.texts.texts(),
        )
        for pointer, one in profile.fields.items()
    }  # fmt: skip
    return profile.records, profile.statuses, fields


def test_filled_null_empty_and_absent_are_told_apart() -> None:
    records = [
        {"a": "x", "in": {"b": 1}, "list": ["p", "q"]},
        {"a": None, "in": None, "list": []},
        {"a": "  ", "in": {"b": None}, "list": [None]},
        {"in": {}},
    ]
    profile = profile_of("s@1", numbered(records))
    assert profile.records == 4
    assert states(profile, "/a") == (1, 1, 1, 1)
    assert states(profile, "/in") == (2, 1, 1, 0)
    assert states(profile, "/in/b") == (1, 1, 0, 2)
    assert states(profile, "/list") == (2, 0, 1, 1)
    assert states(profile, "/list/*") == (1, 1, 0, 0)  # of the two documents that have an item
    assert profile.documents("/list/*") == 2


def test_kinds_values_lengths_and_numbers() -> None:
    records = [{"v": value} for value in ("MYR", "MYR", "EUR", True, 3, 4.5, [1, 2, 3], {"k": 1})]
    one = profile_of("s@1", numbered(records)).fields["/v"]
    assert one.kinds == {"string": 3, "boolean": 1, "number": 2, "array": 1, "object": 1}
    assert one.values == {"MYR": 2, "EUR": 1, "true": 1}
    assert one.lengths.counts == {3: 3}
    assert one.numbers.counts == {3: 1, 4.5: 1}
    assert one.items.counts == {3: 1}


def test_a_document_counts_once_however_long_its_list() -> None:
    records = [{"lines": [{"unit": "kg"}] * 500}, *({"lines": [{"unit": "g"}]} for _ in range(3))]
    profile = profile_of("s@1", numbered(records))
    assert profile.fields["/lines/*/unit"].values == {"kg": 1, "g": 3}


def test_the_item_that_stands_for_a_list_is_chosen_by_chance_and_always_the_same() -> None:
    records = numbered([{"lines": list(range(10))} for _ in range(400)])
    first, again = profile_of("s@1", records), profile_of("s@1", reversed(records))
    assert plain(first) == plain(again)
    counts = first.fields["/lines/*"].numbers.counts
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 80


def test_keys_with_slashes_and_stars_are_fields_of_their_own() -> None:
    profile = profile_of("s@1", numbered([{"a/b": 1, "a": {"b": None, "*x": 1}}]))
    assert states(profile, "/a~1b") == (1, 0, 0, 0)
    assert states(profile, "/a/b") == (0, 1, 0, 0)
    assert states(profile, "/a/*x") == (1, 0, 0, 0)


def any_record(generator: random.Random) -> dict[str, Any]:
    texts = ["Ann", "", "a line of text", "ein anderer", "  "]
    record: dict[str, Any] = {
        "kind": generator.choice(["a", "b", None]),
        "number": generator.choice([*(generator.gauss(5, 1e6) for _ in range(8)), -3, None]),
        "lines": [{"text": generator.choice(texts), "n": n} for n in range(generator.randrange(4))],
        "id": str(generator.random()),
    }
    return {name: value for name, value in record.items() if generator.random() < 0.9}


@pytest.mark.parametrize("seed", range(6))
def test_parts_add_up_to_the_whole_in_any_order(seed: int) -> None:
    generator = random.Random(seed)
    rows = numbered([any_record(generator) for _ in range(900)])
    whole = plain(profile_of("s@1", rows))
    cuts = sorted(generator.sample(range(1, 900), 5))
    parts = [rows[start:end] for start, end in zip([0, *cuts], [*cuts, 900], strict=True)]
    generator.shuffle(parts)
    total = Profile("s@1")
    for part in parts:
        total.merge(profile_of("s@1", part))
    assert plain(total) == whole
    assert total.fields["/id"].free  # 900 different texts
    assert total.fields["/number"].numbers.digits < 53  # more different numbers than are kept


def test_memory_is_bounded_whatever_the_records_hold() -> None:
    generator = random.Random(1)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    rows = [
        {"open": {f"{n} {m}": 1 for m in range(30)}, "text": "word " * 5000 + str(n), "number": generator.gauss(0, 1e9)}
        for n in range(700)
    ]
    profile = profile_of("s@1", numbered([*rows, {"deep": deep, "long " * 100: 1}]))
    assert len(profile.fields) <= MAX_FIELDS
    assert profile.left_out > 20_000 - MAX_FIELDS
    text = profile.fields["/text"]
    assert text.free and not text.values
    assert len(text.texts.texts()) == MAX_TEXTS
    assert max(map(len, text.texts.texts())) == MAX_CHARACTERS
    assert len(profile.fields["/number"].numbers.counts) <= MAX_BINS
    assert profile.fields["/number"].numbers.counts.total() == 700


def test_long_values_are_cut_and_still_told_apart() -> None:
    profile = profile_of("s@1", numbered([{"a": "x" * 500 + end} for end in "pqp"]))
    values = profile.fields["/a"].values
    assert sorted(values.values()) == [1, 2]
    assert max(map(len, values)) < MAX_LABEL + 20
    many = profile_of("s@1", numbered([{"a": str(n)} for n in range(MAX_VALUES + 1)])).fields["/a"]
    assert many.free and not many.values
    assert not profile_of("s@1", numbered([{"a": str(n)} for n in range(MAX_VALUES)])).fields["/a"].free


@pytest.mark.parametrize("value", [0, -0.0, 1e-320, sys.float_info.max, 10**400, -(10**400), 2018, 0.1])
def test_numbers_of_any_size_are_counted(value: Any) -> None:
    for digits in (53, 24, 10, 1, 0):
        rounded = cut(value, digits)
        if digits and abs(value) < 1e308 and abs(value) > 1e-300:
            assert abs(rounded - value) <= abs(value) * 2 ** (1 - digits)
    spread = Spread()
    spread.add(value)
    assert spread.counts.total() == 1


def test_quantiles_are_those_of_the_numbers() -> None:
    spread = Spread()
    assert spread.quantile(0.5) is None
    for n in range(30):
        spread.add(n)
    assert [spread.quantile(share) for share in (0.1, 0.5, 0.9, 1.0)] == [2, 14, 26, 29]  # 0.1 * 30 is not quite 3
    spread = Spread()
    for n in range(1, 10_001):
        spread.add(n)
    assert len(spread.counts) <= MAX_BINS
    assert [spread.quantile(share) for share in (0.1, 0.5, 0.9)] == pytest.approx([1000, 5000, 9000], rel=0.01)


KEYS = st.sampled_from(["*", "~*", "0", "", "/", "~", "a", "a/*"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", " ", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=12)


@given(RECORDS, RECORDS)
def test_whatever_keys_a_model_makes_up_counts_are_counts_and_can_be_compared(one: list[Any], other: list[Any]) -> None:
    before, now = profile_of("s@1", numbered(one * 8)), profile_of("s@1", numbered(other * 8))
    for profile in (before, now):
        for pointer in profile.fields.keys() | before.fields.keys() | now.fields.keys():
            assert profile.absent(pointer) >= 0
    for found in compare({"s@1": before}, {"s@1": now}).findings:
        assert 0 <= found.p <= 1
        assert 0 <= found.distance <= 1 + 1e-9
