"""Smallest values and drawn ones."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.schema.probe.draw import Drawer, covered_by, covering, draw
from pipeline.schema.probe.minimal import Minimal, TooLargeError, shortest
from pipeline.schema.shape.read import read
from pipeline.schema.validator import validator_of
from tests.support import schemas

TREE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "value": {"type": "integer", "minimum": 10},
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
            },
            "required": ["value", "left", "right"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/tree",
}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (TREE, '{"value":10,"left":null,"right":null}'),
        ({"type": "array", "minItems": 2, "items": {"enum": ["long one", "b"]}}, '["b","b"]'),
        ({"type": "array", "prefixItems": [{"type": "null"}], "minItems": 2, "items": {"const": 7}}, "[null,7]"),
        ({"type": "string", "pattern": "^a{2,}b?$"}, '"aa"'),
        ({"type": "string", "minLength": 3}, '"aaa"'),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, "0.1"),
        ({"type": "integer", "minimum": 7, "maximum": 100, "multipleOf": 25}, "25"),
        ({"type": "object", "properties": {"long": {"const": 1}, "b": {"const": 22}}, "minProperties": 1}, '{"":0}'),
        (
            {
                "type": "object",
                "properties": {"long": {"const": 1}, "b": {"const": 22}},
                "minProperties": 1,
                "additionalProperties": False,
            },
            '{"b":22}',
        ),
        ({"anyOf": [{"const": "text"}, {"type": "boolean"}, {"type": "array", "maxItems": 3}]}, "[]"),
    ],
)
def test_the_shortest_value_is_as_short_as_any(body: dict[str, Any], text: str) -> None:
    shapes = read(body)
    value = shortest(shapes)
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert written == text
    assert Minimal(shapes).size(shapes.root) == len(text)


def test_a_smallest_value_that_is_too_large_is_refused_not_built() -> None:
    with pytest.raises(TooLargeError):
        shortest(read({"type": "array", "minItems": 10**9}))


def _drawn(body: dict[str, Any], most: int = 60) -> list[Any]:
    return [drawn.value for drawn in covering(read(body), random.Random(0), most)]


def test_covering_reaches_options_members_counts_and_keys() -> None:
    body = {
        "type": "object",
        "properties": {
            "color": {"enum": ["red", "green", "blue"]},
            "tags": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
            "size": {"anyOf": [{"type": "integer", "minimum": 3, "maximum": 8}, {"type": "null"}]},
            "name": {"type": "string", "maxLength": 5},
        },
        "additionalProperties": False,
    }
    values = _drawn(body)
    assert {value.get("color") for value in values} == {"red", "green", "blue", None}
    assert {len(value["tags"]) for value in values if "tags" in value} >= {1, 2, 4}
    assert {value["size"] for value in values if "size" in value} >= {3, 8, None}
    names = [value["name"] for value in values if "name" in value]
    assert {0, 5} <= set(map(len, names))
    assert all(any(char in name for name in names) for char in '"\n😀中')
    assert all(validator_of(body).is_valid(value) for value in values)


def test_recursion_and_deep_places_are_reached_with_few_values() -> None:
    leaf: dict[str, Any] = {"enum": ["deep"]}
    for name in "edcba":
        others = {f"{name}{index}": {"type": "integer"} for index in range(6)}
        leaf = {"type": "object", "properties": {**others, name: leaf}, "additionalProperties": False}
    assert any("deep" in json.dumps(value) for value in _drawn(leaf, 8))
    assert max(json.dumps(value).count('"value"') for value in _drawn(TREE, 40)) >= 4


def test_what_is_drawn_is_bounded() -> None:
    wide = {"type": "array", "items": {"$ref": "#"}, "minItems": 0, "maxItems": 10_000}
    values = _drawn({"$defs": {}, **wide}, 40)
    assert max(len(json.dumps(value)) for value in values) < 20_000


@settings(max_examples=60)
@given(schemas(), st.integers(0, 2**32))
def test_values_drawn_from_exact_shapes_are_valid(sample: Any, seed: int) -> None:
    body = sample[0]
    shapes = read(body)
    rng = random.Random(seed)
    values = [draw(shapes, rng), *(drawn.value for drawn in covered_by(Drawer(shapes, rng), 8))]
    for value in values:
        assert shapes.left or validator_of(body).is_valid(value), value
