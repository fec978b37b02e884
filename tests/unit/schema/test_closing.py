"""Closing tightens objects that mean their fields, and leaves open what is judged together with something else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schema.closing import close_objects
from pipeline.schema.validator import validator_of

A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
B = {"type": "object", "properties": {"b": {"type": "integer"}}}


def closed(schema: Any) -> tuple[str, ...]:
    return close_objects(schema)[1]


def test_every_object_that_lists_properties_is_closed_and_named() -> None:
    schema = {**A, "properties": {"p": A, "l": {"type": "array", "items": B}}, "$defs": {"d": A}}
    assert set(closed(schema)) == {"", "/properties/p", "/properties/l/items", "/$defs/d"}


@pytest.mark.parametrize(
    "schema",
    [
        {**A, "additionalProperties": True},
        {**A, "additionalProperties": {"type": "string"}},
        {**A, "patternProperties": {"^x": {}}},
        {**A, "unevaluatedProperties": False},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {**A, "minProperties": 2},
        {**A, "enum": [{"a": 1}, {"b": 1}]},
        {**A, "const": {"b": 1}},
        {"anyOf": [A, B], "required": ["a"]},
        {"anyOf": [A, {"type": "null"}], "dependentRequired": {"a": ["z"]}},
        {"anyOf": [{"anyOf": [A]}], "required": ["z"]},
        {"anyOf": [A], "minProperties": 2},
        {**A, "anyOf": [{"required": ["a"]}]},
        {**A, "if": {"required": ["a"]}, "then": {}},
        {**A, "dependentSchemas": {"a": {"required": ["b"]}}},
        {"allOf": [A, B]},
        {"not": A},
        {"$defs": {"base": A}, "$ref": "#/$defs/base", "properties": {"b": {}}},
        {"oneOf": [A, B]},
        {"allOf": [A], "anyOf": [B]},
        {"type": "array", "contains": A},
        {"properties": {"x": A}, "patternProperties": {"^x": B}},
        {"allOf": [{"properties": {"p": A}}, {"properties": {"p": B}}]},
        {"properties": {"p": A}, "allOf": [{"properties": {"p": B}}]},
        {"$defs": {"base": {"properties": {"p": A}}}, "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"p": B}}]},
    ],
)
def test_what_says_itself_or_is_judged_with_others_stays_open(schema: Any) -> None:
    assert closed(schema) == ()


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"anyOf": [A, {"type": "null"}]}, {"/anyOf/0"}),
        ({"oneOf": [A, {"type": "null"}]}, {"/oneOf/0"}),
        ({"anyOf": [A, B]}, {"/anyOf/0", "/anyOf/1"}),
        ({"anyOf": [A, {"type": "null"}], "required": ["a"]}, {"/anyOf/0"}),
        ({**A, "properties": {"p": A}, "anyOf": [{"required": ["p"]}]}, {"/properties/p"}),
        ({"$defs": {"d": A}, "$ref": "#/$defs/d"}, {"/$defs/d"}),
        ({"$defs": {"d": A}, "properties": {"x": {"$ref": "#/$defs/d", "description": "why"}}}, {"", "/$defs/d"}),
    ],
)
def test_what_is_judged_alone_is_closed(schema: Any, pointers: set[str]) -> None:
    assert set(closed(schema)) == pointers


def test_branches_with_different_constants_are_told_apart() -> None:
    def branch(kind: Any, name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": kind, name: {}}, "required": ["kind"]}

    apart = {"oneOf": [branch({"const": "a"}, "x"), branch({"enum": ["b", "c"]}, "y")]}
    alike = {"oneOf": [branch({"enum": ["a", "b"]}, "x"), branch({"const": "b"}, "y")]}
    assert set(closed(apart)) == {"/oneOf/0", "/oneOf/1"}
    assert closed(alike) == ()


def test_a_key_that_is_demanded_but_not_listed_becomes_listed() -> None:
    schema = {**A, "required": ["z", "a"], "dependentRequired": {"a": ["y", "z"]}}
    body, pointers = close_objects(schema)
    assert pointers == ("",)
    assert body == {**schema, "properties": {**A["properties"], "z": {}, "y": {}}, "additionalProperties": False}


@pytest.mark.parametrize("alike", [False, True])
def test_unions_of_many_branches_are_told_apart_in_little_time(alike: bool) -> None:
    kinds = [{"const": f"k{number}"} for number in range(3000)]
    kinds[-1] = kinds[0] if alike else kinds[-1]
    branches = [{"type": "object", "properties": {"kind": kind}, "required": ["kind"]} for kind in kinds]
    assert len(closed({"oneOf": branches})) == (0 if alike else 3000)


_LEAVES = st.sampled_from([{}, {"type": "integer"}, {"const": "k"}, {"type": "null"}])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b"])
    some = st.lists(inner, min_size=1, max_size=2)
    objects = st.fixed_dictionaries(
        {"properties": st.dictionaries(names, inner, min_size=1)},
        optional={
            "type": st.just("object"),
            "required": st.sampled_from([["a"], ["b"], ["c"]]),
            "minProperties": st.integers(1, 2),
            "dependentRequired": st.just({"a": ["d"]}),
        },
    )
    parts = st.dictionaries(st.sampled_from(["allOf", "anyOf", "oneOf"]), some, max_size=2)
    singles = st.dictionaries(st.sampled_from(["not", "if", "then", "contains", "items"]), inner, max_size=2)
    mixed = st.builds(lambda *many: {key: value for one in many for key, value in one.items()}, objects, parts, singles)
    return (
        objects
        | parts
        | singles
        | mixed
        | st.fixed_dictionaries({"patternProperties": st.fixed_dictionaries({"a": inner})})
    )


SCHEMAS = st.recursive(_LEAVES, _schemas, max_leaves=8)
VALUES = st.recursive(
    st.sampled_from([None, 1, "k"]),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)


@given(SCHEMAS, SCHEMAS, VALUES)
def test_closing_only_tightens(root: Any, definition: Any, value: Any) -> None:
    schema = {"$defs": {"d": definition}, **root}
    body, _ = close_objects(schema)
    assert not validator_of(body).is_valid(value) or validator_of(schema).is_valid(value)


@st.composite
def _declared(draw: Any, schema: Any) -> Any:
    """A value that uses only keys that some subschema judging it declares or demands (it need not be accepted)."""
    declared: dict[str, list[Any]] = {}
    pending = [schema]
    while pending:
        node = pending.pop()
        for name, child in node.get("properties", {}).items():
            declared.setdefault(name, []).append(child)
        for name in [*node.get("required", []), *node.get("dependentRequired", {}).get("a", [])]:
            declared.setdefault(name, [])
        pending += [child for keyword in ("allOf", "oneOf") for child in node.get(keyword, [])]
        pending += draw(st.sampled_from([[child] for child in node["anyOf"]])) if "anyOf" in node else []
        pending += [node[keyword] for keyword in ("not", "if", "then") if keyword in node]
    if not declared or draw(st.booleans()):
        return draw(st.sampled_from([None, 1, "k", []]))
    names = [name for name in declared if draw(st.booleans())]
    return {name: draw(_declared({"allOf": declared[name]})) for name in names}


@given(st.data(), SCHEMAS)
def test_closing_never_changes_what_becomes_of_declared_keys(data: st.DataObject, schema: Any) -> None:
    value = data.draw(_declared(schema))
    body, _ = close_objects(schema)
    if _sole_branches(schema):
        assert validator_of(body).is_valid(value) == validator_of(schema).is_valid(value)


def _sole_branches(schema: Any) -> bool:
    """No `anyOf` with two branches: there, a record of one branch with a key of the other is refused on purpose."""
    if isinstance(schema, dict):
        return len(schema.get("anyOf", ())) < 2 and all(map(_sole_branches, schema.values()))
    return all(map(_sole_branches, schema)) if isinstance(schema, list) else True
