"""Where leaves stand in a JSON text."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.walk import resolve
from pipeline.steps.answer.spans import scan, spans_of
from pipeline.steps.parse import MAX_DEPTH

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def leaves(value: Any, pointer: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        children = [(key.replace("~", "~0").replace("/", "~1"), child) for key, child in value.items()]
    elif isinstance(value, list):
        children = [(str(index), child) for index, child in enumerate(value)]
    else:
        return {pointer: value}
    found: dict[str, Any] = {}
    for key, child in children:
        found |= leaves(child, f"{pointer}/{key}")
    return found


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_each_leaf_is_found_where_it_is_written(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    spans, expected = spans_of(text), leaves(value)
    assert list(spans) == list(expected)
    for pointer, (start, end) in spans.items():
        written = text[start:end]
        leaf = expected[pointer]
        assert json.loads(f'"{written}"' if isinstance(leaf, str) else written) == leaf


def test_spans_of_strings_leave_the_quotes_out() -> None:
    text = ' {"a/b": "x\\"y", "~": ["", -1.5e3, null], "空": {"深": "日本"}} '
    found = {pointer: text[start:end] for pointer, (start, end) in spans_of(text).items()}
    assert found == {"/a~1b": 'x\\"y', "/~0/0": "", "/~0/1": "-1.5e3", "/~0/2": "null", "/空/深": "日本"}
    assert spans_of('"whole"') == {"": (1, 6)}
    assert spans_of(" 12 ") == {"": (1, 3)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1',
        '{"a":1}}',
        '{"a":1} {"b":2}',
        '{"a":1,}',
        "[1,]",
        '{"a":1,"a":2}',
        "[NaN]",
        "[01]",
        "[1.]",
        "[+1]",
        "['a']",
        '["\t"]',
        '["\\x"]',
        "[truely]",
        "\ufeff[1]",
        "[\u00a01]",
        "[１]",
        '{1:"a"}',
        "[1 2]",
        "[1}",
        '{"a":[1}]',
    ],
)
def test_what_is_not_strict_json_has_no_spans(text: str) -> None:
    assert spans_of(text) == {}


def test_a_text_that_breaks_gives_the_leaves_before_and_the_place() -> None:
    text = '{"a": 1, "b": [true, {"c": "fin", "d": 12'
    found = scan(text)
    assert list(found.spans) == ["/a", "/b/0", "/b/1/c"]
    assert (found.pointer, found.whole, text[found.end :]) == ("/b/1/d", False, "12")
    assert scan('say {"a": 1} so', 4).spans == {"/a": (10, 11)}


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.data())
def test_a_prefix_gives_no_other_leaves_than_the_whole(value: Any, data: Any) -> None:
    text = json.dumps(value)
    whole = spans_of(text)
    cut = data.draw(st.integers(0, len(text) - 1))
    found = scan(text[:cut])
    assert not found.whole
    assert found.spans.items() <= whole.items()
    assert found.end <= cut


@given(st.text(alphabet='{}[]",:0123456789.eE+-\\u ntrfalse\n\x00\ud800') | st.text())
def test_any_text_is_read_without_raising(text: str) -> None:
    assert spans_of(text) == {} or json.loads(text) is not ...


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a" * 1_000_000,
        '"' + "\\" * 1_000_001,
        "[" * 1_000_000,
        '{"a":' * 100_000,
        '{"' + "k" * 500_000 + '":[' + "1," * 100_000 + "1]}",
        "1" * 1_000_000,
        " " * 1_000_000,
        "[" + "1," * 200_000,
    ],
    ids=["string", "backslashes", "lists", "objects", "long key over many leaves", "digits", "blanks", "items"],
)
def test_hostile_texts_take_linear_time_and_memory(text: str) -> None:
    started = time.process_time()
    found = scan(text)
    assert time.process_time() - started < 3
    assert sum(map(len, found.spans)) <= 1 << 22


def test_depth_is_that_of_the_parser() -> None:
    assert spans_of("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH) == {"/0" * MAX_DEPTH: (MAX_DEPTH, MAX_DEPTH + 1)}
    assert spans_of("[" * (MAX_DEPTH + 1) + "1" + "]" * (MAX_DEPTH + 1)) == {}


def test_pointers_resolve() -> None:
    value = {"a/b": [{"~": "x"}]}
    assert {resolve(value, "#" + pointer) for pointer in spans_of(json.dumps(value))} == {"x"}
