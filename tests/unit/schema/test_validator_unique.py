"""`uniqueItems` says what the library says, in linear time."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeline.schema.validator import validator_of

UNIQUE = {"type": "array", "uniqueItems": True}
_SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 0.0, 1.0, 1.5, "", "1", "a", "true"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@given(st.lists(_VALUES, max_size=5))
def test_items_are_equal_when_the_library_says_so(items: list[Any]) -> None:
    expected: Any = Draft202012Validator(UNIQUE)
    assert validator_of(UNIQUE).is_valid(items) == expected.is_valid(items)


def test_many_objects_take_no_time() -> None:
    items = [{"a": number, "b": [number]} for number in range(20_000)]
    before = time.process_time()
    assert validator_of(UNIQUE).is_valid(items)
    assert not validator_of(UNIQUE).is_valid([*items, {"b": [7.0], "a": 7}])
    assert time.process_time() - before < 1
