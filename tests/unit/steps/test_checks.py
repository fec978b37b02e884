"""Repeated items, order and lookups."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.declared import Order, Unique
from pipeline.steps.declared.checks import looked_up, missing, out_of_order, repeated, values_at


def again(items: list[Any], *pointers: str) -> list[str]:
    return [found.pointer for found in repeated(items, Unique(pointers or ("",), "degrade"))]


@pytest.mark.parametrize(
    ("items", "pointers", "expected"),
    [
        ([1, 1.0, True, "1", None, None], (), ["/1"]),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, {"a": 1, "b": [True]}], (), ["/1"]),
        ([10.3, 10.30, 1e23, 10**23], (), ["/1", "/3"]),
        (["a", "b", "a", "a"], (), ["/2", "/3"]),
        ([{"sku": "x", "n": 1}, {"sku": "x", "n": 2}, {"sku": None}, {"sku": None}, {}, {}], ("/sku",), ["/1"]),
        ([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 2}], ("/a", "/b"), ["/2"]),
        ([{"a": {"b/c": 1}}, {"a": {"b/c": 1}}], ("/a/b~1c",), ["/1"]),
        ([[1, 2], [2, 1], "12"], (), []),
        ([{}, [], "", 0, False], (), []),
    ],
)
def test_repeated(items: list[Any], pointers: tuple[str, ...], expected: list[str]) -> None:
    assert again(items, *pointers) == expected


_JSON = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.5, -0.0]) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(_JSON, max_size=6))
def test_a_list_followed_by_itself_repeats_every_item(items: list[Any]) -> None:
    doubled = again([*items, *items])
    assert {f"/{index}" for index in range(len(items), 2 * len(items))} <= set(doubled)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1, "b": 2, "c": 2.0}, []),
        ({"a": 10.3, "b": 10.2, "c": 11}, ["/b"]),
        ({"a": "2024-01-02", "b": None, "c": "2024-01-01"}, ["/c"]),
        ({"a": "2024-01-02", "c": "2024-01-02"}, []),
        ({"a": "2024-01-01T00:00:00Z", "b": "2024-01-01T00:00:00+02:00"}, ["/b"]),
        ({"a": "2024-01-01", "b": "2024-01-01T00:00:00+14:00", "c": "2024-01-01"}, []),
        ({}, []),
    ],
)
def test_order(value: Any, expected: list[str]) -> None:
    found = list(out_of_order(value, Order(("/a", "/b", "/c"), "degrade")))
    assert [one.pointer for one in found if one.sure] == expected and all(one.sure for one in found)


@pytest.mark.parametrize("value", [{"a": "soon", "b": "2024-01-01"}, {"a": 1, "b": "2024"}, {"a": True, "b": False}])
def test_what_has_no_order_is_said_to_have_none(value: Any) -> None:
    (found,) = out_of_order(value, Order(("/a", "/b"), "degrade"))
    assert found.pointer == "/b" and not found.sure


def test_lookups() -> None:
    record = {
        "vendor": "Ann",
        "lines": [{"sku": "A1"}, {"sku": 7}, {"sku": 7.0}, {"sku": None}, {}],
        "map": {"k/1": "x"},
    }
    known = {"Ann", "A1", "7"}
    assert not list(missing(record, "/vendor", known))
    assert not list(missing(record, "/lines/*/sku", known))
    assert [one.pointer for one in missing(record, "/lines/*/sku", {"A1"})] == ["/lines/1/sku", "/lines/2/sku"]
    assert [one.pointer for one in missing(record, "/map/*", known)] == ["/map/k~11"]
    assert [one.pointer for one in missing(record, "/lines", known)] == ["/lines"]  # a list is in no column
    assert not list(missing(record, "/absent/*", known))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(("a", "a"), (7, "7"), (7.0, "7"), (-0.5, "-0.5"), (True, "true")),
        *((10**20, "1" + "0" * 20), (1e23, "1" + "0" * 23), ([], None), ({}, None)),
    ],
)
def test_looked_up_as(value: Any, text: str | None) -> None:
    assert looked_up(value) == text


@given(_JSON)
def test_pointers_of_values_lead_back_to_them(value: Any) -> None:
    for pattern in ("", "/*", "/*/*", "/a/*", "/0"):
        for pointer, found in values_at(value, pattern):
            assert list(values_at(value, pointer, wild=False)) == [(pointer, found)]
