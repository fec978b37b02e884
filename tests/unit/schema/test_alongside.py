"""A value beside its schema: which subschemas speak of which part."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.schema.alongside import all_branches, parts


def marks(schema: Any, value: Any, accepts: Any = None) -> dict[str, list[str]]:
    """Pointer → the marks `x-m` of the subschemas that speak of it, outermost first."""
    return {
        part.pointer: [node["x-m"] for node in part.nodes if "x-m" in node] for part in parts(schema, value, accepts)
    }


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": {"x-m": "a"}}}, {"a": 1, "b": 2}, {"/a": ["a"], "/b": []}),
        ({"properties": {"a/b~c": {"x-m": "a"}}}, {"a/b~c": 1}, {"/a~1b~0c": ["a"]}),
        ({"items": {"x-m": "i"}, "prefixItems": [{"x-m": "p"}]}, [1, 2], {"/0": ["p"], "/1": ["i"]}),
        ({"prefixItems": [{"x-m": "p"}], "unevaluatedItems": {"x-m": "u"}}, [1, 2], {"/0": ["p"], "/1": ["u"]}),
        (
            {"patternProperties": {"^n": {"x-m": "n"}, "o$": {"x-m": "o"}}, "additionalProperties": {"x-m": "other"}},
            {"no": 1, "na": 1, "x": 1},
            {"/no": ["n", "o"], "/na": ["n"], "/x": ["other"]},
        ),
        (
            {"allOf": [{"properties": {"a": {"x-m": "a"}}}], "unevaluatedProperties": {"x-m": "u"}},
            {"a": 1, "b": 1},
            {"/a": ["a"], "/b": ["u"]},
        ),
        (
            {"anyOf": [{"type": "string", "x-m": "text"}, {"type": "null", "x-m": "null"}], "x-m": "both"},
            None,
            {"": ["both", "null"]},
        ),
        (
            {"oneOf": [{"properties": {"k": {"const": c}, "v": {"x-m": c}}, "required": ["k"]} for c in "ab"]},
            {"k": "b", "v": 1},
            {"/v": ["b"]},
        ),
        ({"x-m": "ref", "$ref": "#/$defs/d", "$defs": {"d": {"x-m": "d"}}}, 1, {"": ["ref", "d"]}),
        ({"$defs": {"d": {"x-m": "d"}}, "allOf": [{"$ref": "#/$defs/d"}] * 2}, 1, {"": ["d"]}),
        (
            {"if": {"required": ["a"], "x-m": "if"}, "then": {"x-m": "then"}, "else": {"x-m": "else"}},
            {"a": 1},
            {"": ["if", "then"]},
        ),
        ({"if": {"required": ["a"], "x-m": "if"}, "else": {"x-m": "else"}}, {}, {"": ["else"]}),
        ({"dependentSchemas": {"a": {"x-m": "with a"}, "b": {"x-m": "with b"}}}, {"a": 1}, {"": ["with a"]}),
        (
            {"not": {"type": "null", "x-m": "not"}, "contains": {"x-m": "some"}, "propertyNames": {"x-m": "name"}},
            [1],
            {"": [], "/0": []},
        ),
        (True, {"a": 1}, {"": [], "/a": []}),
    ],
)
def test_which_subschemas_speak(schema: Any, value: Any, expected: dict[str, list[str]]) -> None:
    found = marks(schema, value) if schema is not True else marks({}, value)
    assert {pointer: found[pointer] for pointer in expected} == expected


def test_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_value() -> None:
    tree = {"x-m": "n", "properties": {"v": {}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
    value: Any = None
    for _ in range(50):
        value = {"v": 1, "next": value}
    found = marks(tree, value)
    assert len(found) == 101
    assert all(
        names == ["n"] for pointer, names in found.items() if pointer.endswith("next") and pointer.count("/") < 50
    )


def test_all_branches_count_before_a_value_is_judged() -> None:
    schema = {
        "anyOf": [{"type": "string", "x-m": "a"}, {"type": "null", "x-m": "b"}],
        "if": {"x-m": "if"},
        "then": {"x-m": "then"},
        "else": {"x-m": "else"},
    }
    assert marks(schema, 1, all_branches) == {"": ["a", "b", "if", "then", "else"]}


def test_required_is_what_the_parent_has_to_have() -> None:
    schema = {
        "required": ["a"],
        "dependentRequired": {"a": ["c"], "z": ["d"]},
        "allOf": [{"required": ["l"]}],
        "properties": {"l": {"items": {}}},
    }
    value = {"a": 1, "b": 1, "c": 1, "d": 1, "l": [1]}
    needed = {part.pointer for part in parts(schema, value) if part.required}
    assert needed == {"", "/a", "/c", "/l", "/l/0"}


def test_the_innermost_annotation_counts() -> None:
    schema = {"x-m": 1, "$ref": "#/$defs/d", "$defs": {"d": {"x-m": 2}}}
    (part,) = parts(schema, "x")
    assert part.annotation("x-m") == 2 and part.annotation("x-other") is None and part.is_leaf
